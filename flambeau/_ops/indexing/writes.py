"""Writing slices by position and elements by mask: `index_add`, `put`, `masked_fill`, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.settings import alert_not_deterministic, warn_once, warn_user
from flambeau._ops.indexing import advanced
from flambeau._ops.indexing import launch as scatter
from flambeau._ops.indexing.gather import flat_positions
from flambeau._ops.indexing.positions import (
    COPIED,
    INTEGERS,
    LONG,
    along,
    at_least_1d,
    check_range,
    fill_where,
    in_range,
    linear_positions,
    reduce_at,
    set_at,
    type_name,
)
from flambeau._ops.indexing.reduce_grads import index_reduce_grads
from flambeau._ops.indexing.scatter import LIMIT, reduce_positions
from flambeau._ops.launching import copies
from flambeau._ops.launching.precision import require_known
from flambeau._ops.table import outputs
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Op, kernel
from flambeau._ops.table.pointwise import broadcast_shape
from flambeau._ops.table.scalars import checked_number
from flambeau._ops.table.writers import writer
from flambeau._tensor.tensor import wrap


def _check_added(name: str, data: np.ndarray, dim: int, index: np.ndarray,
                 source: np.ndarray) -> None:  # fmt: skip
    """Torch's checks of `index_add` and `index_reduce`."""
    if index.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{type_name(index)} and size: {list(index.shape)}"
        )
    if index.dtype not in INTEGERS:
        raise RuntimeError(
            f"{name}_(): Expected dtype int32/int64 for index but got: {type_name(index)}"
        )
    if data.dtype != source.dtype:
        raise RuntimeError(
            f"{name}_(): self ({type_name(data)}) and source ({type_name(source)}) must have the "
            "same scalar type"
        )
    if dim >= max(source.ndim, 1):
        raise RuntimeError(
            f"{name}_(): Indexing dim {dim} is out of bounds of the source tensor with dim "
            f"{source.ndim}"
        )
    if not source.ndim and index.size != 1:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    count = source.shape[dim] if source.ndim else 1
    if index.size != count:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({count}), for dim: {dim}"
        )
    if _sizes_without(dim, data) != _sizes_without(dim, source) or (
        (not data.ndim and source.size != 1) or (data.ndim and not source.ndim)
    ):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(data.shape)} source.shape = {list(source.shape)}"
        )


def _sizes_without(dim: int, data: np.ndarray) -> tuple[int, ...]:
    return data.shape[:dim] + data.shape[dim + 1 :]


DIMS_OF_SOURCE: dict[str, Any] = {
    "also_saved": ("source",),
    "saved_names": {"source_shape": None},
    "saved_facts": {"source_dim": lambda values: len(values["source_shape"])},
}
"""What users see of a source: how many dims it has."""


@writer(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    **DIMS_OF_SOURCE,
    row_major=True,
    out=True,
    backward={
        "self": lambda grad: grad,
        "source": lambda grad, dim, index, alpha, source_shape: (
            ops.index_select(grad, dim, index) * alpha
        ).reshape(source_shape),
    },
)
def index_add(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray,
              alpha: Any) -> None:  # fmt: skip
    """A copy with `alpha` times the slices of `source` added at positions of a dim.

    >>> import flambeau as torch
    >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 2, 0]), torch.tensor([1., 2., 3.]))
    tensor([4., 0., 2.])
    """
    dim = wrap_dim(dim, data.ndim)
    _check_added("index_add", data, dim, index, source)
    data, source, index = at_least_1d(data), at_least_1d(source), at_least_1d(index)
    if not data.size:
        return  # nothing is looked up, not even an index that is out of range
    if alpha != 1:
        source = source * checked_number(alpha, source.dtype)
    if scatter.write_rows(data, dim, index, source, "add"):
        return
    if data.ndim == 1 and not in_range(index, data.size):
        raise IndexError("index out of range in self")
    check_range(index, data.shape[dim], dim)
    if source.size >= LIMIT or data.dtype in dt.NUMPY_HALVES:
        advanced.add_at(data, along(dim, index), source)
    else:
        np.add.at(data, along(dim, index), source)


@writer(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    **DIMS_OF_SOURCE,
    row_major=True,
    autocast="cpu=widest",
    out=True,
    backward={
        "self": lambda grad, dim, index: ops.index_fill(grad, dim, index, 0),
        "source": lambda grad, dim, index, source_shape: ops.index_select(grad, dim, index).reshape(
            source_shape
        ),
    },
)
def index_copy(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    """A copy with the slices of `source` written to positions of a dim.

    >>> import flambeau as torch
    >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    dim = wrap_dim(dim, data.ndim)
    _check_copied(data, dim, index, source)
    data, source, index = at_least_1d(data), at_least_1d(source), at_least_1d(index)
    if scatter.write_rows(data, dim, index, source, "set"):
        return
    check_range(index, data.shape[dim], dim, IndexError, "index_copy_(): ")
    data[along(dim, index)] = source


def _check_copied(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if source.ndim == 0 and index.size != 1:
        raise IndexError(
            "index_copy_(): When source is scalar, index should have one element (got "
            f"{index.size})"
        )
    if source.ndim != data.ndim and source.ndim and data.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({source.ndim}), destination dimensionality "
            f"({data.ndim})"
        )
    if index.dtype != LONG:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {type_name(index)}"
        )
    if data.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{type_name(data)} and (source) {type_name(source)}"
        )
    _check_slices(data, dim, index, source)


def _check_slices(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> None:
    mine, theirs = _sizes_without(dim, data), _sizes_without(dim, source)
    if mine != theirs:
        text = " ".join(map(str, mine))
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {text} at dimension {dim} and source slice shape: "
            f"{' '.join(map(str, theirs))} at dimension 0."
        )
    if source.ndim and index.size != source.shape[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
            f"({source.shape[dim]})"
        )


def _fill(data: np.ndarray, dim: int, index: np.ndarray, value: Any) -> None:
    if index.dtype != LONG:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    dim = wrap_dim(dim, data.ndim)
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    value = checked_number(value, data.dtype)
    outputs.warn_overlap(data, "index_fill_", "mask] = scalar")
    data = at_least_1d(data)
    size = data.shape[dim]
    wrong = (index < -size) | (index >= size)
    if wrong.any():
        value = index.reshape(-1)[wrong.reshape(-1).argmax()]
        raise IndexError(f"index {value} is out of bounds for dimension {dim} with size {size}")
    data[along(dim, at_least_1d(index))] = value


@writer(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    order=0,
    node="IndexFillBackward1",
    backward={
        "self": lambda grad, dim, index: ops.index_fill(grad, dim, index, 0),
        "value": lambda grad, dim, index: (grad - ops.index_fill(grad, dim, index, 0)).sum(),
    },
)
def index_fill_tensor(data: np.ndarray, dim: int, index: np.ndarray, value: np.ndarray) -> None:
    """A copy with the value of a 0-dim tensor at positions of a dim.

    >>> import flambeau as torch
    >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), torch.tensor(7.0))
    tensor([7., 0., 7.])
    """
    if value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    index_fill.write(data, dim, index, value.item())


@writer(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    order=1,
    node="IndexFillBackward0",
    backward={"self": lambda grad, dim, index: ops.index_fill(grad, dim, index, 0)},
)
def index_fill(data: np.ndarray, dim: int, index: np.ndarray, value: Any) -> None:
    """A copy with a number at positions of a dim."""
    complex_in_real = isinstance(value, complex) and data.dtype.kind not in "cW"
    if complex_in_real and index.dtype == LONG:
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    _fill(data, dim, index, value)


@writer(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
    "bool include_self=True) -> Tensor",
    nondeterministic="index_reduce_cuda",
    row_major=True,
    out=True,
    backward={("self", "source"): index_reduce_grads},
)
def index_reduce(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, reduce: str,
                 include_self: bool) -> None:  # fmt: skip
    """A copy in which slices are combined at positions of a dim: prod, mean, amax or amin.

    >>> import flambeau as torch
    >>> import warnings
    >>> index, source = torch.tensor([0, 0, 1]), torch.tensor([2., 5., 3.])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it says that it may change
    ...     torch.index_reduce(torch.ones(2), 0, index, source, "amax")
    tensor([5., 3.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    dim = wrap_dim(dim, data.ndim)
    _check_added("index_reduce", data, dim, index, source)
    _warn_beta()
    data, source, index = at_least_1d(data), at_least_1d(source), at_least_1d(index)
    if not in_range(index, data.shape[dim]):
        raise IndexError("index out of range in self")
    if not source.size:
        return
    line = index.reshape((-1,) + (1,) * (data.ndim - 1 - dim))
    positions = linear_positions(data.shape, dim, np.broadcast_to(line, source.shape))
    # Torch rounds after every step here, and once in scatter_reduce.
    reduce_positions(data, positions, source, reduce, include_self, raise_halves=False)


def _warn_beta() -> None:
    warn_once("index_reduce() is in beta and the API may change at any time.", 4)


@writer(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    also_saved=("source",),
    saved_names={"source_shape": None},
    nondeterministic="put_",
    backward={
        "self": lambda grad, index, source_shape, accumulate: (
            grad if accumulate else ops.put(grad, index, ops.new_zeros(grad, source_shape))
        ),
        "source": lambda grad, index, source_shape: ops.take(grad, index).reshape(source_shape),
    },
)
def put(data: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool) -> None:
    """A copy with values written (or added) to positions of the flattened tensor.

    `index` and `source` have one number of elements, in any shapes; the result has that of `input`.

    >>> import flambeau as torch
    >>> torch.put(torch.zeros(2, 2), torch.tensor([3, 0]), torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 1.]])
    """
    if not accumulate:
        alert_not_deterministic("put_")
    if index.dtype != LONG:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {type_name(index)}")
    require_known("take_put_cpu", data.dtype)
    if data.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{type_name(data)} and source.dtype = {type_name(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    outputs.check_no_overlap(data, (index, source))
    positions = flat_positions(index, data.size, "put_")
    if accumulate:
        reduce_at(data, positions, source, np.add)
    else:
        set_at(data, positions, source.reshape(-1))


# ---- masks


def _masked(schema: str, write: Any, written: Any = None, **options: Any) -> Op:
    """A row whose mask must fit the tensor in place, and broadcasts with it out of place, where
    `written` may give what `write` makes of a copy, in one pass."""

    def body(data: np.ndarray, mask: np.ndarray, value: Any) -> np.ndarray:
        shape = data.shape
        if mask.shape != shape:
            shape = broadcast_shape([mask.shape, shape])
        if written is not None:
            result = written(data, mask, value, shape)
            if result is not None:
                return result  # type: ignore[no-any-return]
        if shape != data.shape:
            data = np.broadcast_to(data, shape)
        result = np.array(data, order="C")
        write(result, mask, value)
        return result

    body.__doc__ = write.__doc__
    op = kernel(schema, inplace=True, **options)(body)
    op.write = write
    return op


def _fitting(data: np.ndarray, mask: np.ndarray) -> np.ndarray:
    if mask.shape == data.shape:
        return mask
    shape = broadcast_shape([data.shape, mask.shape])
    outputs.check_inplace_shape(data.shape, shape)
    return np.broadcast_to(mask, data.shape)


def _write_masked_fill(data: np.ndarray, mask: np.ndarray, value: Any) -> None:
    """A copy with a number where a mask is True."""
    mask = _fitting(data, mask)
    if mask.dtype != np.bool_:
        name = dt.from_numpy_dtype(mask.dtype).c_name
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {name}"
        )
    outputs.warn_overlap(data, "masked_fill_", "mask] = scalar")
    outputs.check_partly_same(data, mask)
    fill_where(data, mask, checked_number(value, data.dtype))


def _write_masked_fill_tensor(data: np.ndarray, mask: np.ndarray, value: np.ndarray) -> None:
    """A copy with the value of a 0-dim tensor where a mask is True.

    >>> import flambeau as torch
    >>> torch.masked_fill(torch.ones(3), torch.tensor([True, False, True]), 0.0)
    tensor([0., 1., 0.])
    """
    if value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    _write_masked_fill(data, mask, value.item())


masked_fill_tensor = _masked(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    _write_masked_fill_tensor,
    regular=True,
    fused=True,
    order=0,
    devices="mask",
    node="MaskedFillBackward1",
    backward={
        "self": lambda grad, mask: ops.masked_fill(grad, mask, 0),
        "value": lambda grad, mask: ops.masked_fill(grad, ops.logical_not(mask), 0).sum(),
    },
)


def _masked_filled(data: np.ndarray, mask: np.ndarray, value: Any, shape: tuple[int, ...]) -> Any:
    """What `_write_masked_fill` makes of a copy of large data; else None."""
    if mask.dtype != np.bool_ or math.prod(shape) < COPIED:
        return None
    result = np.empty(shape, data.dtype)
    return result if copies.choose(result, mask, checked_number(value, data.dtype), data) else None


masked_fill = _masked(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    _write_masked_fill,
    _masked_filled,
    order=1,
    devices="mask",
    node="MaskedFillBackward0",
    backward={"self": lambda grad, mask: ops.masked_fill(grad, mask, 0)},
)


def _write_masked_scatter(data: np.ndarray, mask: np.ndarray, source: np.ndarray) -> None:
    """A copy with the first values of `source` where a mask is True, in row-major order.

    `mask` broadcasts to the shape of `input`; `source` has any shape.

    >>> import flambeau as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked_scatter(torch.zeros(3), mask, torch.tensor([1., 2., 3.]))
    tensor([1., 0., 2.])
    """
    if mask.dtype == np.uint8:
        warn_user("masked_scatter_ received a mask with dtype torch.uint8, this behavior is now "
                  "deprecated,please use a mask with dtype torch.bool instead.")  # fmt: skip
    mask = _expanded(mask, data.shape)
    if data.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{type_name(data)} and {type_name(source)}"
        )
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{type_name(mask)}")  # fmt: skip
    count = int(np.count_nonzero(mask))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    require_known("masked_scatter", data.dtype)
    data[mask] = source.reshape(-1)[:count]


def _expanded(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A mask in the shape of the tensor that is written to."""
    return mask if mask.shape == shape else ops.expand(wrap(mask), shape)._data  # type: ignore[no-any-return]


def _masked_scatter_grad(grad: Any, mask: Any, shape: Any) -> Any:
    """The gradient where the mask is True, in the order of the values; zeros for unused ones."""
    found = ops.masked_select(grad, mask)
    total = int(np.prod(shape, dtype=np.int64))
    return ops.slice_backward(found, (total,), 0, 0, found._data.size, 1).reshape(shape)


masked_scatter = _masked(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    _write_masked_scatter,
    backward={
        "self": lambda grad, mask: ops.masked_fill(grad, mask, 0),
        "source": lambda grad, mask, source_shape: _masked_scatter_grad(grad, mask, source_shape),
    },
)
