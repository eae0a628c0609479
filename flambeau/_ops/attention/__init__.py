"""Attention: one product, many heads, and the fast path of inference."""
