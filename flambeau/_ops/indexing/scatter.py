"""Writing elements by position: `scatter`, `scatter_add`, `scatter_reduce`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.settings import warn_once
from flambeau._ops.indexing import launch as scatter_kernels
from flambeau._ops.indexing.positions import (
    INTEGERS,
    at_least_1d,
    check_range,
    element_key,
    linear_positions,
    lowest_and_highest,
    reduce_at,
    set_at,
)
from flambeau._ops.indexing.reduce_grads import scatter_reduce_grads
from flambeau._ops.launching.precision import require_known
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.scalars import checked_number
from flambeau._ops.table.writers import writer
from flambeau._runtime import choice


def _operands(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray | None = None,
              op: str = "", ranged: bool = True) -> Any:  # fmt: skip
    """(data, dim, index, source) with at least one dim each, of the same shape but for the dim of
    `data`, or torch's errors; None where nothing is left to do: a compiled kernel has done what
    `op` says. `ranged`: positions outside are an error here, and not the caller's to find."""
    dim = _checked_dim(data, dim, index)
    if source is not None and source.dtype != data.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return None
    require_known("scatter_gather_tensor_cpu", data.dtype)
    given = [index.shape, data.shape, () if source is None else source.shape]
    data, index = at_least_1d(data), at_least_1d(index)
    source = None if source is None else at_least_1d(source)
    _check_shapes(data, dim, index, source, given)
    if source is not None:
        if source.shape != index.shape:
            source = source[tuple([slice(n) for n in index.shape])]
        if op and scatter_kernels.write_elements(data, dim, index, source, op):
            return None
    if ranged:
        check_range(index, data.shape[dim], dim)
    return data, dim, index, source


def _checked_dim(data: np.ndarray, dim: int, index: np.ndarray) -> int:
    """The dim, counted from the first; what is looked at before anything else."""
    dim = wrap_dim(dim, data.ndim)
    if index.dtype not in INTEGERS and index.size:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    return dim


def _set(data: np.ndarray, dim: int, index: np.ndarray, values: np.ndarray) -> None:
    """Write values, or one number, to positions along a dim."""
    if index.size < LIMIT:
        data[element_key(index, dim)] = values
    elif not scatter_kernels.write_elements(data, dim, index, values, "set"):
        set_at(data, linear_positions(data.shape, dim, index), values.reshape(-1))


def _reduce(ufunc: Any, data: np.ndarray, dim: int, index: np.ndarray, values: np.ndarray) -> None:
    """Combine values into positions along a dim; half types in float32."""
    if index.size < LIMIT and data.dtype not in dt.NUMPY_HALVES:
        ufunc.at(data, element_key(index, dim), values)
    else:
        reduce_at(data, linear_positions(data.shape, dim, index), values, ufunc)


LIMIT = choice.limit("scatter")
"""Positions from which on values are combined by a compiled kernel."""


def _check_shapes(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray | None,
                  given: list[tuple[int, ...]]) -> None:  # fmt: skip
    """Torch's errors; `given`: the shapes of index, target and source as messages show them."""
    if index.ndim != data.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if source is not None and source.ndim != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    shape, sizes = index.shape, data.shape
    fits = shape[:dim] == sizes[:dim] and shape[dim + 1 :] == sizes[dim + 1 :]
    if fits and (source is None or source.shape == shape):
        return
    around = [(shape[:dim], shape[dim + 1 :]) for shape in (index.shape, data.shape)]
    shown, own, of_source = [list(sizes) for sizes in given]
    too_large = _exceeds(around[0][0], around[1][0]) or _exceeds(around[0][1], around[1][1])
    if source is None:
        if too_large:
            raise RuntimeError(
                f"Expected index {shown} to be no larger than self {own} apart from dimension {dim}"
            )
        return
    if too_large or _exceeds(index.shape, source.shape):
        raise RuntimeError(
            f"Expected index {shown} to be no larger than self {own} apart from dimension {dim} "
            f"and to be no larger size than src {of_source}"
        )


def _exceeds(shape: tuple[int, ...], limits: tuple[int, ...]) -> bool:
    if shape == limits:
        return False
    return any(n > m for n, m in zip(shape, limits, strict=True))


def source_grad(grad: Any, dim: int, index: Any, shape: Any) -> Any:
    """What flows back to the values: the gradient at their positions, zeros where unused."""
    found = ops.gather(grad, dim, index)
    have = found._data.shape
    if have == shape or len(have) != len(shape):  # an empty index takes values of any shape
        return found
    for d, (size, wanted) in enumerate(zip(have, shape, strict=True)):
        if size != wanted:
            larger = [*found._data.shape]
            larger[d] = wanted
            found = ops.slice_backward(found, larger, d, 0, size, 1)
    return found


@writer(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    device_check="scatter_src",
    saved_names={"src_shape": None},
    batch="dims",
    row_major=True,
    order=0,
    out=True,
    node="ScatterBackward0",
    backward={
        "self": lambda grad, dim, index: ops.scatter(grad, dim, index, 0),
        "src": lambda grad, dim, index, src_shape: source_grad(grad, dim, index, src_shape),
    },
)
def scatter(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    """A copy with values of `src` written to positions along a dim: `x[index[i]][..] = src[i]`.

    >>> import flambeau as torch
    >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    found = _operands(data, dim, index, source, "set")
    if found is not None:
        _set(*found)


@writer(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    device_check="scatter_src",
    batch="dims",
    row_major=True,
    order=1,
    out=True,
    node="ScatterBackward1",
    backward={"self": lambda grad, dim, index: ops.scatter(grad, dim, index, 0)},
)
def scatter_value(data: np.ndarray, dim: int, index: np.ndarray, value: Any) -> None:
    """A copy with one number written to positions along a dim."""
    found = _operands(data, dim, index)
    number = checked_number(value, data.dtype)
    if found is not None:
        data, dim, index, _ = found
        _set(data, dim, index, number)


REDUCE_ARGUMENT = (
    "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a "
    "future PyTorch release. Use torch.scatter_reduce instead for more reduction options."
)
REDUCTIONS = {"add": np.add, "multiply": np.multiply}


def _reduction(reduce: str) -> Any:
    if reduce not in REDUCTIONS:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return REDUCTIONS[reduce]


def _no_formula(grad: Any) -> Any:
    raise RuntimeError("derivative for aten::scatter is not implemented")


@writer(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    device_check="scatter_src",
    nondeterministic=("scatter_reduce_cuda_kernel", lambda given: given[4] == "multiply"),
    batch="dims",
    row_major=True,
    order=2,
    out=True,
    node="NotImplemented",
    backward={"self": _no_formula, "src": _no_formula},
)
def scatter_with_reduce(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray,
                        reduce: str) -> None:  # fmt: skip
    """A copy in which values are added to, or multiplied with, what is at the positions."""
    warn_once(REDUCE_ARGUMENT, 4)
    found = _operands(data, dim, index, source, ranged=False)
    ufunc = _reduction(reduce)
    if found is not None:
        data, dim, index, _ = found
        check_range(index, data.shape[dim], dim)
        _reduce(ufunc, *found)


@writer(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)"
    " -> Tensor",
    device_check="scatter_src",
    nondeterministic=("scatter_reduce_cuda_kernel", lambda given: given[4] == "multiply"),
    row_major=True,
    order=3,
    out=True,
    node="NotImplemented",
    backward={"self": _no_formula},
)
def scatter_value_reduce(data: np.ndarray, dim: int, index: np.ndarray, value: Any,
                         reduce: str) -> None:  # fmt: skip
    """The same with one number for all positions."""
    dim = _checked_dim(data, dim, index)
    if reduce not in REDUCTIONS:
        _operands(data, dim, index, data, ranged=False)  # whose errors come first
    ufunc = _reduction(reduce)
    found = _operands(data, dim, index)
    number = checked_number(value, data.dtype)
    if found is not None:
        data, dim, index, _ = found
        _reduce(ufunc, data, dim, index, np.broadcast_to(number, index.shape))


@writer(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    device_check="scatter_add",
    saved_names={"src_shape": None},
    batch="dims",
    row_major=True,
    autocast="cuda=widest",
    out=True,
    backward={
        "self": lambda grad: grad,
        "src": lambda grad, dim, index, src_shape: source_grad(grad, dim, index, src_shape),
    },
)
def scatter_add(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    """A copy with values of `src` added at positions along a dim.

    >>> import flambeau as torch
    >>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([1., 2.]))
    tensor([0., 3.])
    """
    found = _operands(data, dim, index, source, "add")
    if found is not None:
        _reduce(np.add, *found)


UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum,
          "amin": np.minimum}  # fmt: skip

OTHER_NAMES = {"max": "amax", "min": "amin"}
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
                     include_self: bool, raise_halves: bool = True) -> None:  # fmt: skip
    """Combine values into positions; `mean` divides by how many there were.

    `raise_halves`: types of 16 bits are combined in float32 and rounded once.
    """
    if raise_halves and data.dtype in dt.NUMPY_HALVES:
        raised = data.astype(np.float32)
        reduce_positions(raised, positions, values, reduce, include_self)
        data[...] = raised
        return
    if not include_self:
        set_at(data, positions, start_value(reduce, data.dtype))
    reduce_at(data, positions, values, UFUNCS[reduce], raise_halves)
    if reduce != "mean":
        return
    counts = np.bincount(positions.reshape(-1), minlength=data.size).reshape(data.shape)
    counts = np.maximum(counts + int(include_self), 1)
    if data.dtype.kind in "iu":
        data[...] = data // counts
    else:
        data[...] = data / counts.astype(data.real.dtype)


UNREDUCED = {"mean": "b", "amax": "cW", "amin": "cW"}
"""Kinds of numbers that torch has no such reduction of."""


@writer(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    nondeterministic=("scatter_reduce_cuda_prod_", lambda given: given[4] == "prod"),
    row_major=True,
    out=True,
    node="ScatterReduceBackward0",
    backward={("self", "src"): scatter_reduce_grads},
)
def scatter_reduce(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, reduce: str,
                   include_self: bool) -> None:  # fmt: skip
    """A copy in which values are combined at positions: sum, prod, mean, amax or amin; max and min
    are other names of these, without a gradient.

    The shape of `input`. In every dim `index` is at most as large as `src`, and as `input`, but for
    `dim`.

    >>> import flambeau as torch
    >>> index, source = torch.tensor([0, 0, 1]), torch.tensor([2., 5., 3.])
    >>> torch.scatter_reduce(torch.ones(2), 0, index, source, "amax")
    tensor([5., 3.])
    """
    reduce = OTHER_NAMES.get(reduce, reduce)
    op = KERNELS.get(reduce, "") if include_self else ""
    if reduce not in UFUNCS:
        # what is wrong with these comes first
        _operands(data, dim, index, source, op, ranged=False)
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    found = _operands(data, dim, index, source, op)
    if data.dtype.kind in UNREDUCED.get(reduce, "") and (index.size or reduce == "mean"):
        step = f"scatter_gather_tensor_cpu_reduce_{reduce}" if index.size else "div_floor_cpu"
        name = dt.from_numpy_dtype(data.dtype).scalar_name
        raise NotImplementedError(f"\"{step}\" not implemented for '{name}'")
    if found is not None:
        data, dim, index, source = found
        positions = linear_positions(data.shape, dim, index)
        reduce_positions(data, positions, source, reduce, include_self)
