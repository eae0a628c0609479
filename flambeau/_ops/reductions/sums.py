"""Sums, means, products and logic over dims."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.parts import COMPLEX32, real_part
from flambeau._core.settings import get_num_threads
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import require_known
from flambeau._ops.reductions.adding import LONG, add_up, adds_by_pairs, numpy_axis
from flambeau._ops.table.dims import wrap_dims
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, reduction
from flambeau._ops.table.outputs import NANSUM, TRUTH
from flambeau._ops.table.pointwise import LETTER
from flambeau._ops.views.geometry import is_plain
from flambeau._runtime import choice, cpu
from flambeau._tensor.examples import without_zeros

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INT64, UINT8, BOOL = np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.bool_)
FLOATS = (FLOAT32, FLOAT64)
SUMS = choice.LIMITS["sum"]
SHORT = max(choice.LIMITS["reduction"], LONG)
"""Up to this many elements sums of everything are NumPy's."""


KERNEL_TYPES = frozenset(map(np.dtype, (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", ml_dtypes.bfloat16)))  # fmt: skip
"""What compiled reductions read."""


# ---- shared by the modules of reductions


def compiled(data: np.ndarray, axes: tuple[int, ...], work: str = "reduction") -> Any:
    """The compiled reductions, where they are the faster ones; else None."""
    if not axes or (
        data.size < choice.LIMITS[work] and not (choice.Learning.thread and choice.learns())
    ):
        return None
    if data.dtype not in KERNEL_TYPES or not choice.available():
        return None
    return launcher("reductions.launch")


def fused(work: str, *given: Any) -> Any:
    """The compiled row formulas for an array, if all dtypes given are theirs; else None."""
    size = given[0].size
    if not size or size < choice.LIMITS[work] or not choice.FUSION or not choice.available():
        return None
    for value in given:
        if getattr(value, "dtype", value) not in KERNEL_TYPES:
            return None
    return launcher("rows.whole_arrays")


def _alike(data: np.ndarray, result: np.dtype[Any]) -> bool:
    """Whether elements may be added up before they take the type of the result."""
    if data.dtype.kind in "biu":
        return result.kind in "iu"
    return result.kind in "fV"


def refuse(data: np.ndarray, kinds: str, label: str) -> None:
    """Torch's error for an element type that an operator does not have."""
    if LETTER[data.dtype.kind] not in kinds or data.dtype == COMPLEX32:
        name = dt.from_numpy_dtype(data.dtype).scalar_name
        raise NotImplementedError(f"\"{label}\" not implemented for '{name}'")


def working_array(data: np.ndarray) -> np.ndarray:
    """Half types as float32; other types as they are."""
    return data.astype(FLOAT32) if data.dtype in dt.NUMPY_HALVES else data


def finished(values: Any, numpy_dtype: Any) -> np.ndarray:
    """A result in its type and in row-major memory, the strides of dims of size 1 included."""
    result = np.asarray(values, numpy_dtype, order="C")
    if result.ndim > 1 and 1 in result.shape and not is_plain(result):
        return np.array(result, order="C")
    return result


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Floats and complex types themselves; the default type for integers and bools."""
    return dt.Defaults.numpy_dtype if dtype.kind in "biu" else dtype


def restore_dims(tensor: Any, ndim: int, dim: Any, keepdim: bool) -> Any:
    """Put the dims that a reduction left out back, with size 1."""
    if keepdim or not ndim:
        return tensor
    for d in sorted(wrap_dims(dim, ndim)):
        tensor = tensor.unsqueeze(d)
    return tensor


def expand_reduced(grad: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
    """A gradient of a reduced tensor, broadcast back to the shape before."""
    if dim is not None:
        grad = restore_dims(grad, len(self_shape), dim, keepdim)
    return grad.expand(self_shape)


def reduced_count(shape: Any, dim: Any) -> int:
    """How many elements each result of a reduction is made from."""
    return math.prod([shape[d] for d in wrap_dims(dim, len(shape))])


# ---- sums


def accumulation_type(data: np.ndarray, dtype: dt.dtype | None) -> tuple[Any, Any]:
    """(type of the result, type to add up in): integers in int64, half types in float32."""
    if dtype is not None:
        result = dtype.numpy_dtype
    elif data.dtype.kind in "biu":
        result = INT64
    else:
        result = data.dtype
    return result, (FLOAT32 if result in dt.NUMPY_HALVES else result)


def cast_before(data: np.ndarray, dtype: dt.dtype | None) -> np.ndarray:
    """The array in the type that was asked for, where that is a narrower float or complex one: a
    reduction with `dtype` is one of the numbers cast to it."""
    if dtype is None or dtype.numpy_dtype == data.dtype:
        return data
    wanted = dtype.numpy_dtype
    is_narrower = wanted.itemsize <= data.itemsize and wanted.kind in "fVc"
    if not is_narrower or data.dtype.kind not in ("c" if wanted.kind == "c" else "fV"):
        return data
    return cpu.converted(data, wanted)


def castable(data: np.ndarray, target: np.dtype[Any]) -> np.ndarray:
    """The array, or its real part where a real result was asked for."""
    return real_part(data) if data.dtype.kind in "cW" and target.kind not in "cbW" else data


@reduction(
    "sum.dim_IntList(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    inline=True,
    between_kernels=True,
    regular=True,
    fused=True,
    follows_out=True,
    node="SumBackward1",
    node_whole="SumBackward0",
    autocast="cuda=float32_or_dtype",
    backward={
        "self": expand_reduced,
    },
    several=True,
)
def sum(data: np.ndarray, dim: Any, keepdim: bool, dtype: dt.dtype | None) -> Any:
    """The sum over all dims, or over those given. Integers and bools add up in int64.

    dim: an int or several. They are gone from the shape, or of size 1 with `keepdim`; without
        `dim` the result has the shape ().
    dtype: what the elements are cast to first.

    >>> import flambeau as torch
    >>> torch.sum(torch.ones(2, 3), dim=0)
    tensor([2., 2., 2.])
    """
    # The short way for small tensors: benchmarks/op_overhead.py "sum".
    if dim is None and dtype is None and not keepdim and data.size < SHORT:
        kind = data.dtype
        if (kind is FLOAT32 or kind is FLOAT64) and adds_by_pairs(data):
            return np.add.reduce(data, None)
        if kind is BOOL:
            return np.array(np.count_nonzero(data), INT64)
    if dtype is None and data.size >= SUMS:
        found = _total_again(data, dim, keepdim, False)
        if found is not None:
            return found
    data = cast_before(data, dtype)
    result, working = accumulation_type(data, dtype)
    require_known("sum_cpu", result)
    axes = wrap_dims(dim, data.ndim)
    values = None
    if data.size >= SUMS:
        values = _compiled_total(data, axes, keepdim, result)
        if values is not None and dtype is None and result in FLOATS:
            _keep_total(data, axes, dim, keepdim, False)
    if values is None:
        values = add_up(castable(data, working), axes, working, keepdim)
    return finished(values, result)


def _total_again(data: np.ndarray, dim: Any, keepdim: bool, wide: bool) -> Any:
    """The sum, in float64 if `wide`, as it was computed of an array that was alike; None if there
    was none."""
    try:
        found = TOTALS.get(_likeness(data, dim, keepdim, wide))
    except TypeError:  # dims in a list
        return None
    return None if found is None else found.run(data)


def _keep_total(data: np.ndarray, axes: tuple[int, ...], dim: Any, keepdim: bool,
                wide: bool) -> None:  # fmt: skip
    """Make the short way for arrays like this one."""
    short = launcher("reductions.launch").repeat_of_total(data, axes, keepdim, wide)
    if short is not None and dim.__class__ is not list:
        if len(TOTALS) >= MOST_TOTALS:
            TOTALS.clear()
        TOTALS[_likeness(data, dim, keepdim, wide)] = short


def _likeness(data: np.ndarray, dim: Any, keepdim: bool, wide: bool) -> tuple[Any, ...]:
    """What the sums of arrays have in common that go the same short way. Dims that are no ints, but
    equal to some, are others."""
    if dim is not None and dim.__class__ is not int:
        dim = (dim, *map(type, dim))
    return data.shape, data.strides, data.dtype, dim, keepdim, wide, get_num_threads()


TOTALS: dict[Any, Any] = {}
"""The short ways to sums of arrays, by what is alike of them."""
MOST_TOTALS = 4096


def _compiled_total(data: np.ndarray, axes: tuple[int, ...], keepdim: bool, result: Any) -> Any:
    kernels = compiled(data, axes, "sum")
    if kernels is None or not _alike(data, result):
        return None
    return kernels.total(data, axes, keepdim)


@reduction(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    follows_out=True,
    out_type=NANSUM,
    backward={
        "self": lambda grad, self, dim, keepdim: (
            expand_reduced(grad, self.shape, dim, keepdim) * ops.logical_not(ops.isnan(self))
        ),
    },
)
def nansum(data: np.ndarray, dim: Any, keepdim: bool, dtype: dt.dtype | None) -> np.ndarray:
    """The sum with NaN counted as 0.

    Over all elements: shape (); else without the dims `dim`, or with sizes 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.nansum(torch.tensor([float("nan"), 1.0, 3.0]))
    tensor(4.)
    """
    if data.dtype.kind in "cW":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    data = cast_before(data, dtype)
    result, working = accumulation_type(data, dtype)
    axes = wrap_dims(dim, data.ndim)
    if data.dtype.kind in "fV":
        if data.size and result.kind not in "biu":
            refuse(np.empty(0, result), "float", "nansum_cpu")
        kernels = compiled(data, axes) if _alike(data, result) else None
        values = None if kernels is None else kernels.nansum(data, axes, keepdim)
        if values is not None:
            return finished(values, result)
        data = working_array(data)
        data = np.where(np.isnan(data), data.dtype.type(0), data)
    return finished(add_up(data, axes, working, keepdim), result)


@composite("sum_to_size(Tensor self, int[] size) -> Tensor", may_give_input=True, function=False)
def sum_to_size(input: Any, *sizes: Any, size: Any = None) -> Any:
    """The sum over the dims that broadcasting `size` to this shape would add or repeat.

    >>> import flambeau as torch
    >>> torch.ones(4, 3).sum_to_size(1, 3)
    tensor([[4., 4., 4.]])
    """
    if size is not None:
        sizes = (size,)
    if not sizes:
        raise TypeError('sum_to_size() missing 1 required positional arguments: "size"')
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    have = input._data.shape
    extra = len(have) - len(shape)
    if not _expands_to(shape, have):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(have)}}}.")
    if not shape:
        return ops.sum(input)
    dims = [*range(extra)]
    dims += [extra + d for d, n in enumerate(shape) if n == 1 and have[extra + d] != 1]
    if dims:
        input = ops.sum(input, dims, True)
    return input.reshape(shape) if extra else input


def _expands_to(small: Any, large: Any) -> bool:
    extra = len(large) - len(small)
    return extra >= 0 and all(n in (1, large[extra + d]) for d, n in enumerate(small))


# ---- means


def _mean_type(data: np.ndarray, dtype: dt.dtype | None) -> np.dtype[Any]:
    numpy_dtype = data.dtype if dtype is None else dtype.numpy_dtype
    if numpy_dtype.kind in "biu":
        which = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point "
            f"or complex dtype. Got: {dt.from_numpy_dtype(numpy_dtype).scalar_name}"
        )
    return numpy_dtype


@reduction(
    "mean.dim(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    inline=True,
    between_kernels=True,
    regular=True,
    fused=True,
    follows_out=True,
    node="MeanBackward1",
    node_whole="MeanBackward0",
    saved_facts={"self_sym_numel": lambda values: math.prod(values["self_shape"])},
    backward={
        "self": lambda grad, self_shape, dim, keepdim: (
            expand_reduced(grad, self_shape, dim, keepdim) / reduced_count(self_shape, dim)
        ),
    },
    several=True,
)
def mean(data: np.ndarray, dim: Any, keepdim: bool, dtype: dt.dtype | None) -> Any:
    """The average over all dims, or over those given; of floats and complex numbers.

    >>> import flambeau as torch
    >>> torch.mean(torch.tensor([1., 2., 6.]))
    tensor(3.)
    """
    plain = dim is None and dtype is None and not keepdim and data.size < SHORT
    if plain and (data.dtype is FLOAT32 or data.dtype is FLOAT64) and adds_by_pairs(data):
        return np.add.reduce(data, None) / data.dtype.type(data.size)
    if dtype is None and data.size >= SUMS:
        found = _total_again(data, dim, keepdim, True)
        if found is not None:
            out = np.empty(found.shape, data.dtype)
            return np.divide(found, data.size // found.size, out, casting="same_kind")
    result = _mean_type(data, dtype)
    require_known("sum_cpu", result)
    data = cast_before(data, dt.float32 if result in dt.NUMPY_HALVES else dtype)
    working = FLOAT32 if result in dt.NUMPY_HALVES else result
    axes = wrap_dims(dim, data.ndim)
    total = None
    if data.size >= SUMS:
        total = _compiled_total(data, axes, keepdim, result)
        if total is not None and dtype is None and result in FLOATS:
            _keep_total(data, axes, dim, keepdim, True)
    if total is None:
        total = add_up(castable(data, working), axes, working, keepdim)
    count = math.prod([data.shape[d] for d in axes])
    return finished(total / total.dtype.type(count), result)


@composite(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    out_writer="nansum",
)
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
            out: Any = None) -> Any:  # fmt: skip
    """The average of the elements that are not NaN.

    Over all elements: shape (); else without the dims `dim`, or with sizes 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.nanmean(torch.tensor([float("nan"), 1.0, 3.0]))
    tensor(2.)
    """
    if input._data.dtype.kind in "biu":
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but "
                           f"got {input.dtype.scalar_name}")  # fmt: skip
    wanted = None if dtype is None else dt.as_dtype(dtype)
    if wanted is not None and wanted.numpy_dtype.kind in "biu":
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating "
            f"point or complex dtype. Got: {wanted.scalar_name}"
        )
    count = ops.sum(ops.logical_not(ops.isnan(input.detach())), dim, keepdim)
    result = ops.nansum(input, dim, keepdim, dtype=dtype) / count
    return write(nanmean, out, result)


def write(row: Any, out: Any, result: Any) -> Any:
    """The result, or `out` holding it: for composites that take `out=`."""
    if out is None:
        return result
    from flambeau._ops.table.outputs import write_out

    return write_out(row, out, result)


# ---- products


def others_product(self: Any, dim: int) -> Any:
    """For each element the product of all others along a dim, without a division."""
    length = self.shape[dim]
    one = ops.ones_like(self.narrow(dim, 0, 1))
    before = ops.cat([one, self.narrow(dim, 0, length - 1)], dim).cumprod(dim)
    reverse = self.narrow(dim, 1, length - 1).flip(dim)
    after = ops.cat([one, reverse], dim).cumprod(dim).flip(dim)
    return before * after


def prod_backward(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """Each element's gradient is the product of the others, in the type of the result."""
    if not self._data.ndim:
        return grad
    self = self.to(grad.dtype)
    if without_zeros(self._data):
        if dim is not None:
            grad = restore_dims(grad, self._data.ndim, dim, keepdim)
            result = restore_dims(result, self._data.ndim, dim, keepdim)
        return grad * conj(result / self)
    if dim is None:
        flat = self.reshape(-1)
        return (grad.reshape(1) * conj(others_product(flat, 0))).reshape(self.shape)
    grad = restore_dims(grad, self._data.ndim, dim, keepdim)
    return grad * conj(others_product(self, dim))


@reduction(
    "prod.dim_int(Tensor self, int? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    follows_out=True,
    node="ProdBackward1",
    node_whole="ProdBackward0",
    autocast="cpu=float32 cuda=float32_or_dtype",
    backward={"self": prod_backward},
    several=True,
)
def prod(data: np.ndarray, dim: int | None, keepdim: bool, dtype: dt.dtype | None) -> np.ndarray:
    """The product of all elements, or along a dim.

    >>> import flambeau as torch
    >>> torch.prod(torch.tensor([2, 3, 4]))
    tensor(24)
    """
    plain = dim is None and dtype is None and not keepdim
    if (
        plain
        and data.dtype.kind == "f"
        and data.dtype.itemsize > 2
        and data.size < choice.LIMITS["reduction"]
    ):
        return np.multiply.reduce(data, None)  # type: ignore[no-any-return]
    data = cast_before(data, dtype)
    result, working = accumulation_type(data, dtype)
    require_known("prod_out_cpu", result)
    axes = wrap_dims(dim, data.ndim)
    kernels = compiled(data, axes)
    values = None
    if kernels is not None and _alike(data, result):
        values = kernels.product(data, axes, keepdim)
    if values is None:
        data, axis = castable(data, working), numpy_axis(axes, data.ndim)
        values = np.multiply.reduce(data, axis, working, None, keepdim)  # type: ignore[call-overload]
    return finished(values, result)


# ---- logic and counts


def _truth(data: np.ndarray) -> np.ndarray:
    return data if data.dtype.kind == "b" else data != 0


def _logical(ufunc: Any, data: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    result = data.dtype if data.dtype == UINT8 else BOOL
    if isinstance(dim, (tuple, list)) and not dim:
        return finished(np.array(_truth(data)), result)  # no dims at all: element by element
    axes = wrap_dims(dim, data.ndim)
    kernels = compiled(data, axes)
    values = None
    if kernels is not None:
        values = kernels.truth(data, axes, keepdim, ufunc is np.logical_and)
        values = None if values is None else values.view(result)
    if values is None and dim is None and not keepdim:  # counting is faster than ufunc.reduce
        count = np.count_nonzero(_truth(data))
        values = count == data.size if ufunc is np.logical_and else count > 0
    if values is None:
        values = ufunc.reduce(_truth(data), numpy_axis(axes, data.ndim), keepdims=keepdim)
    return finished(values, result)


@reduction(
    "any.dims(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
    inline="alike",
    out_type=TRUTH,
    several=True,
)
def any(data: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    """Whether any element is not 0. The result is bool (uint8 for uint8).

    Over all elements: shape (). With `dim`: without that dim, or with size 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.any(torch.tensor([[True, False], [False, False]]), dim=1)
    tensor([ True, False])
    """
    return _logical(np.logical_or, data, dim, keepdim)


@reduction(
    "all.dims(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
    inline="alike",
    out_type=TRUTH,
    several=True,
)
def all_(data: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    """Whether no element is 0. The result is bool (uint8 for uint8).

    Over all elements: shape (). With `dim`: without that dim, or with size 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.all(torch.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """
    return _logical(np.logical_and, data, dim, keepdim)


@reduction(
    "count_nonzero.dim_IntList(Tensor self, int[1]? dim=None) -> Tensor", out=False, several=True
)
def count_nonzero(data: np.ndarray, dim: Any) -> np.ndarray:
    """How many elements are not 0.

    Over all elements: shape (); else without the dims `dim`.

    >>> import flambeau as torch
    >>> torch.count_nonzero(torch.tensor([0, 3, 4]))
    tensor(2)
    """
    axes = wrap_dims(dim, data.ndim)
    kernels = compiled(data, axes)
    values = None if kernels is None else kernels.nonzero_count(data, axes, False)
    if values is None:
        values = np.add.reduce(_truth(data), axes, INT64)
    return finished(values, INT64)


# ---- the trace


@reduction(
    "trace(Tensor self) -> Tensor",
    autocast="cpu=float32",
    backward={
        "self": lambda grad, self_shape: ops.diagonal_scatter(
            ops.new_zeros(grad, self_shape), grad.expand((min(self_shape),))
        ),
    },
    out=False,
)
def trace(data: np.ndarray) -> np.ndarray:
    """The sum of a matrix's diagonal.

    >>> import flambeau as torch
    >>> torch.trace(torch.eye(3))
    tensor(3.)
    """
    if data.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {data.ndim}")
    if data.dtype is FLOAT32 or data.dtype is FLOAT64:
        return np.add.reduce(data.diagonal())  # type: ignore[no-any-return]
    refuse(data, "int float complex", "trace")
    result, working = accumulation_type(data, None)
    return finished(np.add.reduce(data.diagonal(), 0, working), result)
