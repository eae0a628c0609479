"""Kernels written by hand on NumPy arrays: convolutions, pools, interpolation and the like."""
