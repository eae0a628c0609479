"""`torch.backends.miopen`: AMD's library for GPUs, not there; its flag is kept."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from flambeau.backends import _flags

_immediate = _flags.kept(False, "set_immediate_miopen")


def set_flags(_immediate: bool | None = None) -> tuple[Any, ...]:
    """Set the flag; what it was."""
    return _flags.written(_ALL, (_immediate,))


def flags(immediate: bool = False) -> AbstractContextManager[None]:
    """Another value of the flag within a `with`."""
    return _flags.within(_ALL, (immediate,))


_ALL = (_immediate,)
_flags.give(__name__, immediate=_immediate)
