"""`torch.backends.mkldnn`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._core.missing import missing

enabled = True  # a permission, as in torch; there is nothing that it could permit


def is_available() -> bool:
    """Whether oneDNN is used: no."""
    return False


@contextmanager
def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
          fp32_precision: str = "none") -> Iterator[None]:  # fmt: skip
    """Another permission within a `with`; there is nothing that the others could change."""
    before = globals()["enabled"]
    globals()["enabled"] = enabled
    try:
        yield
    finally:
        globals()["enabled"] = before


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
