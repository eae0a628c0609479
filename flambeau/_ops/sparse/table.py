"""What dense operators do with a sparse tensor: a function from this table, or torch's error.

    @on_sparse("add.Tensor")
    def add(first, second): ...

A function is filed under the full name of a row, with `_` after the name for the form in place,
and gets the row's arguments in the order of its schema. `method` gives sparse tensors a method of
their own, where Tensor's is no row.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any, TypeVar

from flambeau._core.device import Cuda
from flambeau._core.tables import entering
from flambeau._tensor.compressed import CompressedTensor
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import constructors

Function = TypeVar("Function", bound=Callable[..., Any])

TABLE: dict[str, Callable[..., Any]] = {}
COMPRESSED: dict[str, Callable[..., Any]] = {}
"""The same for calls with a tensor of a compressed layout."""
FILES = ("entries", "elementwise", "arithmetic", "products", "reductions", "shapes", "methods",
         "compressed", "compressed_methods")  # fmt: skip


on_sparse = entering(TABLE)
"""File a function under the names of rows."""


on_compressed = entering(COMPRESSED)
"""File a function for compressed layouts under the names of rows."""


def method(function: Function) -> Function:
    """Give sparse tensors a method of the function's name."""
    name = function.__name__
    setattr(SparseTensor, name, function if name in ANYWHERE else by_the_host(name, function))
    return function


ANYWHERE = frozenset("to cpu cuda indices values _indices _values is_coalesced detach".split())
"""Methods that are made of those of the tensors within, wherever these lie."""


def by_the_host(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that the host computes where a tensor lies on a GPU."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if Cuda.count:
            result = constructors["by_the_host"](name, function, args, kwargs)
            if result is not NotImplemented:
                return result
        return function(*args, **kwargs)

    return call


def load() -> None:
    """Import every file of the package."""
    for name in FILES:
        importlib.import_module(f"flambeau._ops.sparse.{name}")


def call(name: str, values: tuple[Any, ...], out: Any = None) -> Any:
    """The result for arguments of which one is sparse.

    Raises:
        NotImplementedError: the table has no such row, or the result should go to `out`.
    """
    load()
    is_compressed = CompressedTensor.exists and any(
        isinstance(value, CompressedTensor)
        for item in (*values, out)
        for value in (item if isinstance(item, (list, tuple)) else (item,))
    )
    function = (COMPRESSED if is_compressed else TABLE).get(name)
    if function is None or out is not None:
        backend = "SparseCsrCPU" if is_compressed else "SparseCPU"
        raise refusal(f"{name}.out" if function else name, backend) from None
    return by_the_host(name, function)(*values)


OWN_ROWS = re.compile("^_clamp_(both|low|high)(_tensors?)?")
"""Operators that are rows of ours behind one of torch's."""


def refusal(name: str, backend: str = "SparseCPU") -> NotImplementedError:
    """Torch's error for an operator that sparse tensors do not have."""
    name = OWN_ROWS.sub("clamp", name)
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. "
        "Tensor.to_dense() makes a dense copy."
    )
