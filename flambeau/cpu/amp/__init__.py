"""`torch.cpu.amp`: the old names of `torch.amp`."""

from __future__ import annotations

from typing import Any

from flambeau._core.dtype import bfloat16
from flambeau._core.missing import lazily
from flambeau.amp.old_names import autocast_for, grad_scaler_for

__all__ = ["GradScaler", "autocast"]

autocast = autocast_for("cpu", bfloat16)
GradScaler = grad_scaler_for("cpu")


__getattr__ = lazily(__name__)
