"""`torch.backends.mkl`."""

from typing import Any

from flambeau._core.missing import missing


def is_available() -> bool:
    """Whether Intel's MKL is used: no. NumPy's BLAS may be one, but flambeau does not see it."""
    return False


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
