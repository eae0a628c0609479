"""`torch.cuda.amp`: the old names of `torch.amp`."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._core.dtype import float16
from flambeau._core.missing import missing
from flambeau.amp.old_names import (
    amp_definitely_not_available,
    autocast_for,
    custom_bwd,
    custom_fwd,
    grad_scaler_for,
)

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

autocast = autocast_for("cuda", float16)
GradScaler = grad_scaler_for("cuda")


FILES = ("autocast_mode", "common", "grad_scaler")


def __getattr__(name: str) -> Any:
    if name in FILES:  # PyTorch's import makes them known, too
        return importlib.import_module(f"{__name__}.{name}")
    return missing(__name__, name)
