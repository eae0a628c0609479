"""Operators on GPUs. `dispatch.py`: the way of a call with tensors on a device; `table.py`: which
rows have kernels there; `host.py`: how all others are computed by the CPU; `transfer.py`: copies
between devices; `mismatch.py`: which tensors may meet."""
