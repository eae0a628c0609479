"""Kernels of optimizer steps; `optim` launches them."""
