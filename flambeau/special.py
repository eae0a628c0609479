"""`torch.special`: special functions, made from their rows when first used."""

from __future__ import annotations

from flambeau._ops.table.lookup import names_of

__getattr__, __dir__ = names_of("special")
