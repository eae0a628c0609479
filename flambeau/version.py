"""`torch.version`: the PyTorch version that is followed, and the accelerators built in: none."""

from flambeau._version import TORCH_VERSION

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = TORCH_VERSION
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"  # PyTorch's word where a build has no commit of PyTorch to name
