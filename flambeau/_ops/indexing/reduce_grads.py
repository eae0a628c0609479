"""Gradients of `scatter_reduce` and `index_reduce`: one set of formulas over two ways of access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._ops.table.namespace import ops
from flambeau.autograd.function import delayed_error


class Access:
    """How values get to positions (`add`), back (`read`), and are reduced or zeroed there."""

    def __init__(self, read: Callable[..., Any], add: Callable[..., Any],
                 reduce: Callable[..., Any], clear: Callable[..., Any],
                 names: tuple[str, str]) -> None:  # fmt: skip
        self.read = read
        self.add = add
        self.reduce = reduce
        self.clear = clear
        self.names = names  # of the function and of its values, for errors


def scatter_reduce_grads(grad: Any, self: Any, dim: Any, index: Any, src: Any, reduce: Any,
                         include_self: Any, result: Any) -> Any:  # fmt: skip
    """(gradient of the tensor, gradient of the values) for `scatter_reduce`."""
    access = Access(
        read=lambda x: ops.gather(x, dim, index),
        add=lambda x, values: ops.scatter_add(x, dim, index, values),
        reduce=lambda x, values: ops.scatter_reduce(
            x, dim, index, values, reduce, include_self=include_self
        ),
        clear=lambda x: ops.scatter(x, dim, index, 0),
        names=("scatter_reduce", "src"),
    )
    return _grads(access, reduce, grad, self, src, result, include_self)


def index_reduce_grads(grad: Any, self: Any, dim: Any, index: Any, source: Any, reduce: Any,
                       include_self: Any, result: Any) -> Any:  # fmt: skip
    """The same for `index_reduce`."""
    access = Access(
        read=lambda x: ops.index_select(x, dim, index),
        add=lambda x, values: ops.index_add(x, dim, index, values),
        reduce=lambda x, values: ops.index_reduce(
            x, dim, index, values, reduce, include_self=include_self
        ),
        clear=lambda x: ops.index_fill(x, dim, index, 0),
        names=("index_reduce", "source"),
    )
    return _grads(access, reduce, grad, self, source, result, include_self)


def _grads(access: Access, reduce: str, grad: Any, self: Any, src: Any, result: Any,
           include_self: bool) -> tuple[Any, Any]:  # fmt: skip
    if reduce not in FORMULAS:
        raise RuntimeError("Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' "
                           f"but got {reduce}.")  # fmt: skip
    own, values = FORMULAS[reduce](access, grad, self, src, result, include_self)
    return (own if include_self else access.clear(own)), values


def _sum(access: Access, grad: Any, self: Any, src: Any, result: Any, include: bool) -> Any:
    return grad, access.read(grad)


def _mean(access: Access, grad: Any, self: Any, src: Any, result: Any, include: bool) -> Any:
    counts = ops.ones_like(grad) if include else ops.zeros_like(grad)
    counts = access.add(counts, ops.ones_like(src))
    counts = ops.masked_fill(counts, counts == 0, 1)
    shared = grad / counts
    return shared, access.read(shared)


def _prod(access: Access, grad: Any, self: Any, src: Any, result: Any, include: bool) -> Any:
    """The product of the others: by division, or by a second product where a factor is zero."""
    without_zeros = ops.masked_fill(self, self == 0, 1)
    own = grad * access.reduce(without_zeros, src) / without_zeros
    is_zero = src == 0
    zeros = access.read(access.add(ops.zeros_like(self), is_zero.to(src.dtype)))
    is_single = ops.logical_and(is_zero, zeros == 1)
    others = access.reduce(self, ops.masked_fill(src, is_single, 1))
    divided = access.read(grad * result) / ops.masked_fill(src, is_zero, 1)
    theirs = ops.where(is_single, access.read(grad * others), divided)
    if modes.grad.enabled and bool((ops.logical_and(is_zero, zeros > 1)).any()):
        (theirs,) = delayed_error(NO_SECOND.format(*access.names), (theirs,))
    return own, theirs


NO_SECOND = (
    "{0}(): Double backward is unsupported for {1} when >1 zeros in {1} are scattered to the same "
    "position in self"
)


def _extremum(access: Access, grad: Any, self: Any, src: Any, result: Any, include: bool) -> Any:
    """Shared evenly among all that are equal to the result."""
    own = (self == result).to(grad.dtype)
    theirs = (src == access.read(result)).to(grad.dtype)
    shared = grad / access.add(own, theirs)
    return own * shared, theirs * access.read(shared)


FORMULAS = {"sum": _sum, "mean": _mean, "prod": _prod, "amax": _extremum, "amin": _extremum}
