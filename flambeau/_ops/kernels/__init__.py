"""Kernels: the loop nests behind the rows, in the kernel language (docs/kernels.md)."""
