"""`torch.optim.adamw`: AdamW is written beside Adam."""

from __future__ import annotations

from flambeau.optim.adam import AdamW

__all__ = ["AdamW"]
