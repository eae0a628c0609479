"""How much `torch.distributed` is asked to check and to tell: kept, and without effect here.

Collectives are compared and errors name ranks at every level.
"""

from __future__ import annotations

import enum
import os

VARIABLE = "TORCH_DISTRIBUTED_DEBUG"


class DebugLevel(enum.IntEnum):
    """OFF, INFO or DETAIL."""

    OFF = 0
    INFO = 1
    DETAIL = 2

    def __str__(self) -> str:
        return f"DebugLevel.{self.name}"


class _State:
    level: DebugLevel | None = None
    """None: nobody has set or asked for it."""


def get_debug_level() -> DebugLevel:
    """The level that was set, or that the environment has in TORCH_DISTRIBUTED_DEBUG.

    Example:
        >>> import flambeau.distributed as dist
        >>> dist.set_debug_level(dist.DebugLevel.INFO)
        >>> print(dist.get_debug_level())
        DebugLevel.INFO
        >>> dist.set_debug_level(dist.DebugLevel.OFF)
    """
    if _State.level is None:
        set_debug_level_from_env()
    return _State.level or DebugLevel.OFF


def set_debug_level(level: DebugLevel) -> None:
    """Set the level.

    Raises:
        TypeError: it is none of `DebugLevel`.
    """
    if not isinstance(level, DebugLevel):
        raise TypeError(
            "set_debug_level(): incompatible function arguments. The following argument types are "
            f"supported:\n    1. (arg0: DebugLevel) -> None\n\nInvoked with: {level!r}"
        )
    _State.level = level


def set_debug_level_from_env() -> None:
    """Set the level to what TORCH_DISTRIBUTED_DEBUG says; OFF without it.

    Raises:
        ValueError: it says something else.
    """
    name = os.environ.get(VARIABLE, "OFF").upper()
    if name not in DebugLevel.__members__:
        raise ValueError(f"The value of {VARIABLE} must be OFF, INFO, or DETAIL.")
    _State.level = DebugLevel[name]
