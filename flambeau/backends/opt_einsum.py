"""`torch.backends.opt_einsum`: a library that flambeau never asks; `einsum` goes left to right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether opt_einsum chooses the order of contractions: no."""
    return False


def get_opt_einsum() -> Any:
    """The module that chooses the order of contractions: None."""
    return None


def set_flags(_enabled: bool | None = None,
              _strategy: str | None = None) -> tuple[bool, str | None]:  # fmt: skip
    """Set what is given; what both were.

    Raises:
        ValueError: opt_einsum is asked for, which is not there.
    """
    if _enabled:
        raise ValueError(
            f"opt_einsum is not available, so setting `enabled` to {_enabled} will not reap the "
            "benefits of calculating an optimal path for einsum. torch.einsum will fall back to "
            "contracting from left to right. To enable this optimal path calculation, please "
            "install opt-einsum."
        )
    if _strategy is not None:
        raise ValueError(
            f"opt_einsum is not available, so setting `strategy` to {_strategy} will not be "
            "meaningful. torch.einsum will bypass path calculation and simply contract from left "
            "to right. Please install opt_einsum or unset `strategy`."
        )
    before = enabled, strategy
    if _enabled is not None:
        globals()["enabled"] = _enabled
    return before


@contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Other flags within a `with`."""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)
