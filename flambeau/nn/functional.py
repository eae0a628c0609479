"""`torch.nn.functional`: operators without state, found in the table of rows when first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from flambeau._core.missing import missing
from flambeau._ops.table import index
from flambeau._ops.table.namespace import get, get_inplace
from flambeau._ops.table.op import BY_NAME

PREFIX = "nn.functional."

ALSO_AT_ROOT = frozenset((*index.FACTS["builtin"].split(), "layer_norm", "rms_norm"))
"""Operators that torch has under both names; the row may be filed under either."""


def _find(name: str) -> Callable[..., Any] | None:
    for candidate in (PREFIX + name, name if name in ALSO_AT_ROOT else ""):
        if candidate in BY_NAME:
            return get(candidate)
        plain = candidate.removesuffix("_")
        if plain != candidate and any(op.inplace for op in BY_NAME.get(plain, ())):
            return get_inplace(plain)
    return None


def __getattr__(name: str) -> Any:
    if name == "grad":  # the gradients of convolutions, which torch has here too
        return importlib.import_module("flambeau.nn.grad")
    if name == "_Reduction":
        return importlib.import_module("flambeau.nn._reduction")
    if name == "_mha_shape_check":
        return importlib.import_module("flambeau._ops.attention.heads").is_batched
    found = _find(name)
    if found is None:
        return missing(__name__, name)
    if getattr(found, "__module__", "").startswith("flambeau._ops"):
        # Files and tracebacks know functions by their public place.
        found.__module__, found.__name__, found.__qualname__ = __name__, name, name
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    own = {name.removeprefix(PREFIX) for name in BY_NAME if name.startswith(PREFIX)}
    return sorted(own | {name for name in ALSO_AT_ROOT if name in BY_NAME})
