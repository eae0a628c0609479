"""`torch.masked`: reductions over the elements that a mask lets through, found in their rows."""

from __future__ import annotations

from flambeau._ops.table.lookup import names_of

__getattr__, __dir__ = names_of("masked")
