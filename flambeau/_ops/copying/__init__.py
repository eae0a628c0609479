"""Copies, casts, and the arguments of `to`."""
