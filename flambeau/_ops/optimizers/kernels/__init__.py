"""Loop nests in the kernel language (docs/kernels.md)."""
