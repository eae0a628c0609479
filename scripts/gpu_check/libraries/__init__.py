"""NVIDIA's libraries on a GPU: values against NumPy in double precision, then times beside PyTorch.

    python -m scripts.gpu_check.libraries --out FILE.json

Works on memory of the driver alone: neither tensors nor kernels are needed. Without a GPU the
checks run on the emulated one, and no times are taken. The file is written after every item.
"""

import os

from flambeau._runtime.cuda import libcuda
from flambeau._runtime.cuda.driver import play

if "FLAMBEAU_EMULATE_CUDA" not in os.environ and libcuda.found() is None:
    os.environ["FLAMBEAU_EMULATE_CUDA"] = "1"
    play()
