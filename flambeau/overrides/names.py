"""The names of what can be taken over."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._ops.table import namespace
from flambeau._ops.table.op import BY_NAME
from flambeau._tensor.overriding import IGNORED, Guarded, Stand, begin
from flambeau._tensor.tensor import Tensor


def resolve(function: Callable[..., Any]) -> str | None:
    """`torch.add`, `torch.Tensor.add_`, `torch.Tensor.shape.__get__`; None for what is not ours."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, property):
        attribute = _attribute_of_tensor(owner)
        return attribute and f"torch.Tensor.{attribute}.{function.__name__}"
    own = getattr(function, "__name__", "")
    found = [name for name, known in namespace._functions.items() if known is function]
    if found:
        name = next((name for name in found if name.rpartition(".")[2] == own), found[0])
        functional = importlib.import_module("flambeau.functional")
        return f"torch.functional.{name}" if name in functional.__all__ else f"torch.{name}"
    attribute = _attribute_of_tensor(function)
    if attribute is None and own.endswith("_") and namespace._inplace.get(own[:-1]) is function:
        return f"torch.{own}"
    return attribute and f"torch.Tensor.{attribute}"


def _attribute_of_tensor(value: Any) -> str | None:
    own = getattr(value, "__name__", None)
    if own is not None and vars(Tensor).get(own) is value:
        return str(own)
    return next((name for name, known in vars(Tensor).items() if known is value), None)


def is_of_tensor(function: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor or belongs to one of its properties."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, property):
        return _attribute_of_tensor(owner) is not None
    name = getattr(function, "__name__", "")
    return getattr(Tensor, name, None) is function or _attribute_of_tensor(function) is not None


def _rows() -> Iterator[tuple[str, bool]]:
    """Public functions, and whether they take tensors."""
    for name in BY_NAME:
        ops = BY_NAME[name]
        if not name.rpartition(".")[2].startswith("_") and any(op.function for op in ops):
            yield name, any(a.is_tensor for op in ops for a in op.schema.arguments)


@functools.cache
def ignored() -> set[Callable[..., Any]]:
    """Functions that take no tensors, and what Tensor keeps to itself."""
    found = {namespace.get(name) for name, takes_tensors in _rows() if not takes_tensors}
    known = (getattr(Tensor, name, None) for name in IGNORED)
    return found | {value for value in known if callable(value)}


def overridable() -> Iterator[tuple[Any, str]]:
    """Where each function that can be taken over is found, and its name there."""
    for name, takes_tensors in _rows():
        holder, _, own = name.rpartition(".")
        if takes_tensors:
            yield importlib.import_module(f"flambeau.{holder}" if holder else "flambeau"), own
    begin()
    for name, value in vars(Guarded).items():
        if isinstance(value, Stand) and callable(getattr(Tensor, name, None)):
            yield Tensor, name
