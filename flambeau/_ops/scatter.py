"""Writing elements by position: `scatter`, `scatter_add`, `scatter_reduce`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.dims import wrap_dim
from flambeau._ops.namespace import ops
from flambeau._ops.positions import (
    INTEGERS,
    at_least_1d,
    check_range,
    linear_positions,
    lowest_and_highest,
    reduce_at,
    set_at,
)
from flambeau._ops.reduce_grads import scatter_reduce_grads
from flambeau._ops.scalars import checked_number
from flambeau._ops.templates import scatter as scatter_kernels
from flambeau._ops.writers import writer


def _positions(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray | None = None,
               op: str = "") -> Any:  # fmt: skip
    """(data, row-major positions, source values), or torch's errors; None where the compiled
    kernel has done what `op` says."""
    dim = wrap_dim(dim, data.ndim)
    if index.dtype not in INTEGERS and index.size:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if source is not None and source.dtype != data.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return data, index.astype(np.int64), None if source is None else data.reshape(-1)[:0]
    data, index = at_least_1d(data), at_least_1d(index)
    source = None if source is None else at_least_1d(source)
    _check_shapes(data, dim, index, source)
    if source is not None:
        source = source[tuple([slice(n) for n in index.shape])]
        if op and scatter_kernels.write_elements(data, dim, index, source, op):
            return None
    check_range(index, data.shape[dim], dim)
    return data, linear_positions(data.shape, dim, index), source


def _check_shapes(data: np.ndarray, dim: int, index: np.ndarray,
                  source: np.ndarray | None) -> None:  # fmt: skip
    if index.ndim != data.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if source is not None and source.ndim != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    pairs = zip(index.shape, data.shape, strict=True)
    too_large = any(n > m for d, (n, m) in enumerate(pairs) if d != dim)
    if source is None:
        if too_large:
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self "
                f"{list(data.shape)} apart from dimension {dim}"
            )
        return
    if too_large or any(n > m for n, m in zip(index.shape, source.shape, strict=True)):
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(data.shape)} "
            f"apart from dimension {dim} and to be no larger size than src {list(source.shape)}"
        )


def source_grad(grad: Any, dim: int, index: Any, shape: Any) -> Any:
    """What flows back to the values: the gradient at their positions, zeros where unused."""
    found = ops.gather(grad, dim, index)
    have = found._data.shape
    if have == shape:
        return found
    for d, (size, wanted) in enumerate(zip(have, shape, strict=True)):
        if size != wanted:
            larger = [*found._data.shape]
            larger[d] = wanted
            found = ops.slice_backward(found, larger, d, 0, size, 1)
    return found


@writer(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    order=0,
    out=True,
    node="ScatterBackward0",
    backward={
        "self": lambda grad, dim, index: ops.scatter(grad, dim, index, 0),
        "src": lambda grad, dim, index, src_shape: source_grad(grad, dim, index, src_shape),
    },
)
def scatter(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    """A copy with values of `src` written to positions along a dim: `x[index[i]][..] = src[i]`."""
    found = _positions(data, dim, index, source, "set")
    if found is not None:
        data, positions, source = found
        set_at(data, positions, source.reshape(-1))


@writer(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    order=1,
    out=True,
    node="ScatterBackward1",
    backward={"self": lambda grad, dim, index: ops.scatter(grad, dim, index, 0)},
)
def scatter_value(data: np.ndarray, dim: int, index: np.ndarray, value: Any) -> None:
    """A copy with one number written to positions along a dim."""
    data, positions, _ = _positions(data, dim, index)
    set_at(data, positions, checked_number(value, data.dtype))


REDUCTIONS = {"add": np.add, "multiply": np.multiply}


def _reduction(reduce: str) -> Any:
    if reduce not in REDUCTIONS:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return REDUCTIONS[reduce]


def _no_formula(grad: Any) -> Any:
    raise RuntimeError("derivative for scatter with reduce is not implemented")


@writer(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    order=2,
    out=True,
    node="NotImplemented",
    backward={"self": _no_formula, "src": _no_formula},
)
def scatter_with_reduce(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray,
                        reduce: str) -> None:  # fmt: skip
    """A copy in which values are added to, or multiplied with, what is at the positions."""
    ufunc = _reduction(reduce)
    data, positions, source = _positions(data, dim, index, source)
    reduce_at(data, positions, source, ufunc)


@writer(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)"
    " -> Tensor",
    order=3,
    out=True,
    node="NotImplemented",
    backward={"self": _no_formula},
)
def scatter_value_reduce(data: np.ndarray, dim: int, index: np.ndarray, value: Any,
                         reduce: str) -> None:  # fmt: skip
    """The same with one number for all positions."""
    ufunc = _reduction(reduce)
    data, positions, _ = _positions(data, dim, index)
    values = np.broadcast_to(checked_number(value, data.dtype), positions.shape)
    reduce_at(data, positions, values, ufunc)


@writer(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    autocast="cuda=widest",
    out=True,
    backward={
        "self": lambda grad: grad,
        "src": lambda grad, dim, index, src_shape: source_grad(grad, dim, index, src_shape),
    },
)
def scatter_add(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    """A copy with values of `src` added at positions along a dim."""
    found = _positions(data, dim, index, source, "add")
    if found is not None:
        data, positions, source = found
        reduce_at(data, positions, source, np.add)


UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum,
          "amin": np.minimum}  # fmt: skip

KERNELS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
"""What the compiled kernels do for a reduction that counts the old value."""


def start_value(reduce: str, numpy_dtype: Any) -> Any:
    """What a reduction starts from where the old value does not count."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    lowest, highest = lowest_and_highest(numpy_dtype)
    return lowest if reduce == "amax" else highest


def reduce_positions(data: np.ndarray, positions: np.ndarray, values: np.ndarray, reduce: str,
                     include_self: bool) -> None:  # fmt: skip
    """Combine values into positions; `mean` divides by how many there were."""
    if data.dtype in dt.NUMPY_HALVES:
        raised = data.astype(np.float32)
        reduce_positions(raised, positions, values, reduce, include_self)
        data[...] = raised
        return
    if not include_self:
        set_at(data, positions, start_value(reduce, data.dtype))
    reduce_at(data, positions, values, UFUNCS[reduce])
    if reduce != "mean":
        return
    counts = np.bincount(positions.reshape(-1), minlength=data.size).reshape(data.shape)
    counts = np.maximum(counts + int(include_self), 1)
    if data.dtype.kind in "iu":
        data[...] = data // counts
    else:
        data[...] = data / counts.astype(data.real.dtype)


@writer(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    out=True,
    node="ScatterReduceBackward0",
    backward={("self", "src"): scatter_reduce_grads},
)
def scatter_reduce(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, reduce: str,
                   include_self: bool) -> None:  # fmt: skip
    """A copy in which values are combined at positions: sum, prod, mean, amax or amin."""
    if reduce not in UFUNCS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    op = KERNELS.get(reduce, "") if include_self else ""
    found = _positions(data, dim, index, source, op)
    if found is None:
        return
    data, positions, source = found
    if positions.size:
        reduce_positions(data, positions, source, reduce, include_self)
