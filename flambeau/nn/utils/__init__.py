"""Helpers around modules: clipping gradients, packing sequences, parameters as vectors."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._core.missing import missing

FILES = {
    "clip_grad": (
        "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm"
    ),
    "convert_parameters": "parameters_to_vector vector_to_parameters",
}
HOME = {name: file for file, names in FILES.items() for name in names.split()}
SUBMODULES = frozenset((*FILES, "rnn"))


def __getattr__(name: str) -> Any:
    """Functions and submodules, imported when first used."""
    if name in HOME:
        found = getattr(importlib.import_module(f"{__name__}.{HOME[name]}"), name)
    elif name in SUBMODULES:
        found = importlib.import_module(f"{__name__}.{name}")
    else:
        return missing(__name__, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*HOME, *SUBMODULES})
