"""The driver, the allocator, streams, events and graphs on a GPU; PyTorch beside them.

    python -m scripts.gpu_check.driver --out FILE.json

Without a GPU the fake driver is asked, with kernels in Python; what needs PyTorch's CUDA is left
out then. Checks come first, costs after them; every item stands in the file as soon as it is done.
"""

import ctypes
import os


def has_gpu() -> bool:
    """Whether a driver of NVIDIA's is here and starts."""
    try:
        return not ctypes.CDLL("libcuda.so.1").cuInit(0)
    except OSError:
        return False


if not has_gpu():
    os.environ.setdefault("FLAMBEAU_EMULATE_CUDA", "1")
