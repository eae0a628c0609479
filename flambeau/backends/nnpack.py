"""`torch.backends.nnpack`: a library of convolutions, not there; its flag is kept."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from flambeau.backends import _flags

_ALL = (_flags.kept(True, "set_enabled_NNPACK"),)


def is_available() -> bool:
    """Whether NNPACK is used: no."""
    return False


def set_flags(_enabled: bool) -> tuple[Any, ...]:
    """Permit NNPACK, or forbid it; what was set before."""
    return _flags.written(_ALL, (_enabled,))


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Another permission within a `with`."""
    return _flags.within(_ALL, (enabled,))
