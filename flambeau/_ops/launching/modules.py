"""Modules that prepare and launch kernels, imported when one is first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def launcher(name: str) -> Any:
    """The module of a name in `_ops`: `launcher("conv.launch")`."""
    return import_module(f"flambeau._ops.{name}")
