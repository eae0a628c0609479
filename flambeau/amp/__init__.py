"""Automatic mixed precision: `autocast` regions and gradient scaling."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from flambeau.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


__getattr__ = lazily(__name__)
