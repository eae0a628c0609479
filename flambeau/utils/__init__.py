"""`torch.utils`: activation checkpointing; further parts as they come."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "swap_tensors":
        from flambeau._tensor.swapping import swap_tensors

        return swap_tensors
    if importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    from flambeau._core.missing import missing

    return missing(__name__, name)
