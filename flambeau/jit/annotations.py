"""`torch.jit.annotations`: names of types in scripts."""

from __future__ import annotations

import typing
from typing import Any

from flambeau._core.missing import missing

TYPES = ("Any", "Dict", "List", "Optional", "Tuple", "Union")


def __getattr__(name: str) -> Any:
    if name in TYPES:
        return getattr(typing, name)
    if name.startswith("BroadcastingList"):
        from flambeau import _jit_internal as functional

        return getattr(functional, name)
    return missing(__name__, name)
