"""Inline caches (`_runtime/inline_cache.py`) in the text of rows that are not pointwise: what they
look up is the arrays of a call, and what else it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._ops.table import binder
from flambeau._ops.table.op import Op
from flambeau._runtime.warming import Warming, observer, possible

ndarray = np.ndarray


def serve(op: Op) -> bool:
    """Whether calls of a row that is not pointwise come into an inline cache."""
    if not (op.inline or op.kind == "rows") or not possible():
        return False
    return not any(a.is_tensor and a.is_list for a in op.schema.arguments)


def texts_of(op: Op) -> list[str]:
    """The text of what is looked up: the arrays of tensors, and other arguments as they are."""
    texts = []
    for argument in op.schema.arguments:
        name = binder.python_name(op, argument)
        absent = f"None if {name} is None else " if argument.optional else ""
        texts.append(f"{absent}{name}._data" if argument.is_tensor else name)
    return texts


class Held:
    """An array where a row's text expects a tensor."""

    def __init__(self, data: np.ndarray) -> None:
        self._data = data


def of_tensors(run: Callable[..., Any]) -> Callable[..., Any]:
    """A row's body of tensors as one of arrays."""

    def call(*arguments: Any) -> Any:
        return run(*[Held(a) if a.__class__ is ndarray else a for a in arguments])

    return call


def warming(scope: dict[str, Any], run: Callable[..., Any], op: Op) -> Warming:
    """What stands in a row's text for its cache at first; `run`: its body, of tensors."""
    return Warming(scope, "inline", lambda: observer(of_tensors(run), op.inline == "alike"))
