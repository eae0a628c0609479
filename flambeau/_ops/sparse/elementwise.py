"""Functions of single elements that are 0 at 0: they only change the entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.sparse.arithmetic import replace
from flambeau._ops.sparse.entries import coalesce, with_places
from flambeau._ops.sparse.table import TABLE
from flambeau._ops.table import index
from flambeau._ops.table.namespace import get, get_inplace
from flambeau._tensor.sparse import SparseTensor
from flambeau.autograd.history import check_inplace

LINEAR = index.FACTS["any_entries"].split()
"""The function of a sum is the sum of the functions: places may repeat."""
NONLINEAR = index.FACTS["distinct_entries"].split()
"""The tensor is coalesced first."""


def _function(name: str, linear: bool) -> Callable[..., SparseTensor]:
    def on_entries(tensor: SparseTensor, *rest: Any) -> SparseTensor:
        tensor = tensor if linear else coalesce(tensor)
        return with_places(tensor, get(name)(tensor._entries, *rest))

    return on_entries


def _inplace(name: str, linear: bool) -> Callable[..., SparseTensor]:
    def on_entries(tensor: SparseTensor, *rest: Any) -> SparseTensor:
        check_inplace(tensor, tensor.requires_grad)
        if not linear and not tensor._coalesced:
            raise RuntimeError(f"{name}_ requires coalesced input")
        entries = get_inplace(name)(tensor._entries, *rest)
        return replace(tensor, tensor._places, entries, tensor._coalesced)

    return on_entries


for _names, _linear in ((LINEAR, True), (NONLINEAR, False)):
    for _name in _names:
        TABLE[_name] = _function(_name, _linear)
        if _name != "square":  # which torch has as `pow_`, and not for sparse tensors
            TABLE[f"{_name}_"] = _inplace(_name, _linear)

TABLE["_conj"] = _function("_conj_physical", True)
"""Entries are copied: only dense memory has views of a bit."""
