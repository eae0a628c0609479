"""Kernels for GPUs: the words that the kernel language gains, and the modules that they go into.

One text, two forms: `ptx.py` writes it for NVIDIA's processors, `emulated.py` for the CPU, where
every thread of a block is a fiber.
"""
