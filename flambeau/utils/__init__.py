"""`torch.utils`: activation checkpointing; further parts as they come."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from flambeau._core.absent_modules import find_absent


def __getattr__(name: str) -> Any:
    if name == "swap_tensors":
        from flambeau._tensor.swapping import swap_tensors

        return swap_tensors
    absent = find_absent(f"{__name__}.{name}")
    if absent is not None:
        return absent
    if importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    from flambeau._core.missing import missing

    return missing(__name__, name)
