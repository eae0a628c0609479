"""Functions of functions. What works today: modules called with other tensors than their own."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing
from flambeau.func.modules import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
