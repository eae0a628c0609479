"""Operators over lists of tensors: `torch._foreach_add` and its like."""
