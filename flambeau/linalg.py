"""`torch.linalg`: the operators of linear algebra, found in the table of rows when first used."""

from __future__ import annotations

from flambeau._ops.linalg.checks import LinAlgError
from flambeau._ops.table.lookup import names_of

__all__ = ["LinAlgError"]

__getattr__, __dir__ = names_of("linalg")
