"""`torch.linalg`: the operators of linear algebra, found in the table of rows when first used."""

from __future__ import annotations

from flambeau._ops.lookup import names_of
from flambeau._ops.templates.linalg_checks import LinAlgError

__all__ = ["LinAlgError"]

__getattr__, __dir__ = names_of("linalg")
