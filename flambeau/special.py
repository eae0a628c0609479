"""`torch.special`: special functions, made from their rows when first used."""

from __future__ import annotations

from typing import Any

from flambeau._ops.namespace import get
from flambeau._ops.op import BY_NAME

_PREFIX = "special."


def __getattr__(name: str) -> Any:
    if f"{_PREFIX}{name}" not in BY_NAME:
        raise AttributeError(f"module 'torch.special' has no attribute '{name}'")
    found = globals()[name] = get(f"{_PREFIX}{name}")
    return found


def __dir__() -> list[str]:
    return sorted(name.removeprefix(_PREFIX) for name in BY_NAME if name.startswith(_PREFIX))
