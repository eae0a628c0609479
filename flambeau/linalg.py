"""`torch.linalg`: the operators of linear algebra, found in the table of rows when first used."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing
from flambeau._ops.namespace import get
from flambeau._ops.op import BY_NAME
from flambeau._ops.templates.linalg_checks import LinAlgError

PREFIX = "linalg."
__all__ = ["LinAlgError"]


def __getattr__(name: str) -> Any:
    if PREFIX + name not in BY_NAME:
        return missing(__name__, name)
    found = get(PREFIX + name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    own = {name.removeprefix(PREFIX) for name in BY_NAME if name.startswith(PREFIX)}
    return sorted({*own, "LinAlgError"})
