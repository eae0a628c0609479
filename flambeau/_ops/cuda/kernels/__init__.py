"""Kernels for GPUs that are written by hand."""
