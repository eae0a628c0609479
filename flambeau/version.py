"""`torch.version`: the PyTorch version that is followed, and the accelerators built in: none.

`cuda` is a version while CUDA is emulated (`flambeau.cuda.emulate`), else None.
"""

from typing import Any

from flambeau._core.device import Cuda
from flambeau._core.missing import missing
from flambeau._version import TORCH_VERSION

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = TORCH_VERSION
debug = False
cuda: str | None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"  # PyTorch's word where a build has no commit of PyTorch to name


def __getattr__(name: str) -> Any:
    return Cuda.version if name == "cuda" else missing(__name__, name)
