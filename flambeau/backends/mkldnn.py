"""`torch.backends.mkldnn`."""

from typing import Any

from flambeau._core.missing import missing

enabled = True  # a permission, as in torch; there is nothing that it could permit


def is_available() -> bool:
    """Whether oneDNN is used: no."""
    return False


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
