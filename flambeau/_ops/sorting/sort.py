"""Order: `sort`, `argsort`, `topk`, `msort`; search: `searchsorted`, `bucketize`, `isin`.

Sorting is stable, and NaN comes after every number (before, when descending). Types of at most 32
bits are sorted as 64-bit keys that hold the value's rank above the element's index: one sort of
plain integers then gives a stable order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.promotion import combine, promote_types
from flambeau._core.settings import warn_once
from flambeau._ops.launching.modules import launcher
from flambeau._ops.reductions.extrema import sorted_backward, take_along
from flambeau._ops.reductions.sums import FLOAT32, INT64, finished, working_array, write
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import EXACT
from flambeau._ops.table.pointwise import common_dtype, number_array
from flambeau._ops.views.geometry import is_plain
from flambeau._runtime import choice, cpu
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import Tensor, on_device_of, wrap

INT32 = np.dtype(np.int32)
SMALL = 64
"""Up to this many elements, making keys takes longer than NumPy's stable sort."""


# ---- order


def ranks(data: np.ndarray, descending: bool) -> np.ndarray | None:
    """32-bit integers that order like the elements (equal for equal); None for wide types."""
    if data.dtype.itemsize > 4:
        return None
    if data.dtype.kind in "fV":
        bits = (data.astype(FLOAT32) + np.float32(0)).view(INT32)  # -0.0 becomes 0.0
        keys = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
        keys = np.where(np.isnan(data), np.int32(0x7FFFFFFF), keys)
    else:
        keys = data
    keys = keys.astype(INT64)
    return -keys if descending else keys


def _kernels(data: np.ndarray, dim: int) -> Any:
    """The compiled kernels where they are faster, else None."""
    if not choice.compiled("sort", data.size):
        return None
    kernels = launcher("sorting.launch")
    return kernels if kernels.fits(data, dim) else None


def sorted_along(data: np.ndarray, dim: int, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    """The elements in order along a dim, stably, and where each was."""
    kernels = _kernels(data, dim)
    if kernels is not None:
        return kernels.sort(data, dim, descending)  # type: ignore[no-any-return]
    indices = _order(data, dim, descending)
    return take_along(data, indices, dim), indices


def order(data: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """The indices that sort along a dim, stably."""
    kernels = _kernels(data, dim)
    if kernels is not None:
        return kernels.sort(data, dim, descending)[1]  # type: ignore[no-any-return]
    return _order(data, dim, descending)


def _order(data: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    length = data.shape[dim]
    keys = None if data.size <= SMALL else ranks(data, descending)
    data = working_array(data)
    if keys is not None and length < 1 << 31:
        packed = _packed(keys, dim, length)
        packed.sort(dim)
        return packed & np.int64(0xFFFFFFFF)
    if not descending:
        return np.argsort(data, dim, "stable")
    flipped = np.argsort(np.flip(data, dim), dim, "stable")
    return length - 1 - np.flip(flipped, dim)


def _packed(keys: np.ndarray, dim: int, length: int) -> np.ndarray:
    """Rank in the upper and index in the lower 32 bits."""
    shape = [1] * keys.ndim
    shape[dim] = length
    return (keys << 32) | np.arange(length, dtype=INT64).reshape(shape)


def first_along(
    data: np.ndarray, count: int, dim: int, descending: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` elements in sorted order along a dim, and where each was."""
    if not count:
        shape = (*data.shape[:dim], 0, *data.shape[dim + 1 :])
        return np.empty(shape, data.dtype), np.empty(shape, INT64)
    kernels = _kernels(data, dim)
    if kernels is not None:
        return kernels.first(data, count, dim, descending)  # type: ignore[no-any-return]
    indices = _first_ordered(data, count, dim, descending)
    return take_along(data, indices, dim), indices


def _first_ordered(data: np.ndarray, count: int, dim: int, descending: bool) -> np.ndarray:
    keys = ranks(data, descending)
    length = data.shape[dim]
    before = (slice(None),) * dim
    if keys is None or not 0 < count * 4 < length:
        return _order(data, dim, descending)[(*before, slice(0, count))]
    packed = np.partition(_packed(keys, dim, length), count - 1, dim)[(*before, slice(0, count))]
    packed.sort(dim)
    return packed & np.int64(0xFFFFFFFF)


def _like_input(values: np.ndarray, data: np.ndarray, numpy_dtype: Any) -> np.ndarray:
    """A result with the strides that a copy of the input would have."""
    if is_plain(data):
        return finished(values, numpy_dtype)
    strides = cpu.preserved_strides(data)
    if strides is None:
        return finished(values, numpy_dtype)
    result = cpu.empty_strided(values.shape, strides, numpy_dtype)
    result[...] = values
    return result


def _no_complex(data: np.ndarray, text: str) -> None:
    if data.dtype.kind in "cW":
        raise RuntimeError(f" {text} does not support complex dtypes on CPU")


@kernel(
    "sort.stable(Tensor self, int dim=-1, bool descending=False, *, bool? stable=None)"
    " -> (Tensor values, Tensor indices)",
    out=True,
    nondifferentiable=("indices",),
    backward={"self": sorted_backward},
    several=True,
)
def sort(data: np.ndarray, dim: int, descending: bool, stable: bool | None) -> Any:
    """The elements in order along a dim, and where each was; always stable.

    Gives `values` and `indices` (int64), both of the shape of `input`: `values` is what
    `input.gather(dim, indices)` gives. NaN counts as the largest; equal elements keep their order.

    >>> import flambeau as torch
    >>> torch.sort(torch.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    dim = wrap_dim(dim, data.ndim)
    _no_complex(data, "Sort")
    if data.ndim == 0:
        return data.copy(), np.zeros((), INT64)
    values, indices = sorted_along(data, dim, descending)
    return _like_input(values, data, data.dtype), _like_input(indices, data, INT64)


@composite(
    "argsort.stable(Tensor self, int dim=-1, bool descending=False, *, bool stable=False) -> "
    "Tensor",
    out_type=EXACT,
    several=True,
)
def argsort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False,
            out: Any = None) -> Any:  # fmt: skip
    """The indices that sort along a dim.

    >>> import flambeau as torch
    >>> torch.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return write(argsort, out, ops.sort(input.detach(), dim, descending, stable=stable)[1])


@composite("msort(Tensor self) -> Tensor", out_writer="sort", out_type=EXACT)
def msort(input: Any, *, out: Any = None) -> Any:
    """The elements in order along the first dim.

    >>> import flambeau as torch
    >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return write(msort, out, ops.sort(input, 0)[0])


@kernel(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)"
    " -> (Tensor values, Tensor indices)",
    out=True,
    nondifferentiable=("indices",),
    backward={"self": sorted_backward},
)
def topk(data: np.ndarray, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    """The `k` largest (or smallest) elements along a dim, in order, and their indices.

    k: how many, from 0 to the size of the dim.
    dim: along which; the last if not given.
    largest: whether the largest are wanted, or the smallest.
    sorted: whether they come in order; with False no order is promised.

    Gives `values` and `indices` (int64), both of the shape of `input` with size `k` at `dim`.
    NaN counts as the largest. Gradients go to the elements that were taken.

    >>> import flambeau as torch
    >>> torch.topk(torch.tensor([1, 5, 3]), 2).values
    tensor([5, 3])
    """
    if isinstance(k, bool):
        raise TypeError("topk(): argument 'k' must be int, not bool")
    dim = wrap_dim(dim, data.ndim)
    if not 0 <= k <= (data.shape[dim] if data.ndim else 1):
        raise RuntimeError("selected index k out of range")
    _no_complex(data, "topk")
    if data.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if data.ndim == 0:
        return data.copy(), np.zeros((), INT64)
    values, indices = first_along(data, k, dim, largest)
    return finished(values, data.dtype), finished(indices, INT64)


# ---- search


def _search_error(text: str) -> RuntimeError:
    return RuntimeError(f"torch.searchsorted(): {text}")


def _check_search(bounds: np.ndarray, values: np.ndarray, number: bool, side: str | None,
                  right: bool, sorter: np.ndarray | None) -> None:  # fmt: skip
    if side is not None and side not in ("left", "right"):
        raise _search_error(f"side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise _search_error("side and right can't be set to opposites, got side of left while "
                            "right was True")  # fmt: skip
    if bounds.ndim == 0:
        raise _search_error("boundaries tensor should have positive dimension, but got 0 dimension")
    if values.ndim == 0 and bounds.ndim != 1:
        raise _search_error(
            "input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({bounds.ndim}) and input value's dim({values.ndim}) "
            f"numel({values.size})"
        )
    if bounds.ndim != 1 and bounds.shape[:-1] != values.shape[:-1]:
        raise _search_error(
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            "tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(bounds.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        _check_sorter(bounds, sorter)
    _warn_of_copies(bounds, values, sorter)


def _warn_of_copies(bounds: np.ndarray, values: np.ndarray, sorter: np.ndarray | None) -> None:
    """Torch copies what is not in rows, and says so once."""
    for array, what in ((bounds, "boundary"), (values, "input value"), (sorter, "sorter")):
        if array is not None and values.size and not array.flags.c_contiguous:
            warn_once(
                f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the "
                "performance due to extra data copy when converting non-contiguous tensor to "
                f"contiguous, please use contiguous {what} tensor if possible. This message will "
                "only appear once per program.",
                5,
            )


def _check_sorter(bounds: np.ndarray, sorter: np.ndarray) -> None:
    if sorter.shape != bounds.shape:
        raise _search_error(
            "boundary and sorter must have the same size, but got boundary tensor "
            f"{list(bounds.shape)}and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype != INT64:
        raise _search_error("sorter must be a tensor of long dtype but got dtype "
                            f"{dt.from_numpy_dtype(sorter.dtype).scalar_name}")  # fmt: skip
    if sorter.size and (sorter.min() < 0 or sorter.max() >= bounds.shape[-1]):
        raise _search_error("sorter index out of range")


def _search(bounds: np.ndarray, values: np.ndarray, side: Any, sorter: np.ndarray | None) -> Any:
    if not values.size:  # torch has nothing to compare, whatever the types
        return np.empty(values.shape, INT64)
    if sorter is not None:
        bounds = np.take_along_axis(bounds, sorter, -1)
    bounds, values = _comparable(bounds, values)
    if bounds.ndim == 1:
        return np.searchsorted(bounds, values, side)
    result = np.empty(values.shape, INT64)
    for index in np.ndindex(bounds.shape[:-1]):
        result[index] = np.searchsorted(bounds[index], values[index], side)
    return result


def _comparable(bounds: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in the type that torch compares them in."""
    ours, theirs = dt.from_numpy_dtype(bounds.dtype), dt.from_numpy_dtype(values.dtype)
    # a single number is weak, whether it came as a tensor or not: -1 is 255 among uint8
    common = promote_types(ours, theirs) if values.ndim else combine(ours, theirs, None)
    if common.is_complex or common is dt.bool_:
        raise NotImplementedError(
            f"\"searchsorted_out_cpu\" not implemented for '{common.scalar_name}'"
        )
    kind = FLOAT32 if common in dt.HALVES else common.numpy_dtype
    return bounds.astype(kind), values.astype(kind)


@composite(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, "
    "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    takes={0: (complex,), 1: (complex,)},
    device_check="Tensor_searchsorted",
    devices="asked",
    shape="zeros",
    batch="examples",
    method=False,
    numbers="other",
    several=True,
)
def searchsorted(sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Any = None, out: Any = None) -> Any:  # fmt: skip
    """Where values would have to be put into sorted rows to keep them sorted: before equal
    elements, or after them with `right=True` (`side="right"`).

    Shapes: sorted [n] for values of any shape, or [*, n] for values [*, m]; the result has that of
    the values.

    >>> import flambeau as torch
    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([0, 3, 6]))
    tensor([0, 1, 3])
    """
    require_tensor("searchsorted", "sorted_sequence", 1, sorted_sequence)
    if isinstance(input, Tensor) and input.device is not sorted_sequence.device:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but got self is on {input.device}, "
            f"different from other tensors on {sorted_sequence.device} (when checking argument in "
            "method wrapper_CUDA_Tensor_searchsorted)"
        )
    bounds = numbers_under(sorted_sequence._data)
    values = numbers_under(as_values(input))
    places = None if sorter is None else numbers_under(sorter._data)
    _check_search(bounds, values, not isinstance(input, Tensor), side, right, places)
    with cpu.quiet():
        found = _search(bounds, values, "right" if right or side == "right" else "left", places)
    result = on_device_of(wrap(finished(found, INT32 if out_int32 else INT64)), sorted_sequence)
    return _write_indices(searchsorted, out, result, out_int32)


def as_values(value: Any) -> np.ndarray:
    """The ndarray of a tensor, or of a number in its default type."""
    if isinstance(value, Tensor):
        return value._data
    return number_array(value, common_dtype([value]).numpy_dtype)


def _write_indices(row: Any, out: Any, result: Any, out_int32: bool) -> Any:
    if out is not None and out.dtype is not result.dtype:
        raise _search_error(
            "output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
            f"whether out_int32 flag is True, but we got output tensor's dtype "
            f"{out.dtype.scalar_name} and out_int32 flag is {out_int32}"
        )
    return write(row, out, result)


@composite(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, "
    "bool right=False) -> Tensor",
    takes={0: (bool, int, float, complex)},
    device_check="Tensor_bucketize",
    devices="asked",
    method=False,
    several=True,
)
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False,
              out: Any = None) -> Any:  # fmt: skip
    """The index of the bucket between sorted boundaries that each value falls into.

    Boundaries have shape [n]; the result has the shape of `input`.

    >>> import flambeau as torch
    >>> torch.bucketize(torch.tensor([0.5, 2.5]), torch.tensor([0.0, 1.0, 2.0]))
    tensor([1, 3])
    """
    if boundaries._data.ndim != 1:
        raise RuntimeError("boundaries tensor must be 1 dimension, but got dim("
                           f"{boundaries._data.ndim})")  # fmt: skip
    return ops.searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


# ---- membership


@composite(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, "
    "bool assume_unique=False, bool invert=False) -> Tensor",
    takes={0: (complex,), 1: (complex,)},
    shape="zeros",
    batch="examples",
    method=False,
    out_type=EXACT,
)
def isin(elements: Any = None, test_elements: Any = None, *, assume_unique: bool = False,
         invert: bool = False, element: Any = None, test_element: Any = None,
         out: Any = None) -> Any:  # fmt: skip
    """Whether each element is among `test_elements`; one of the two may be a number, which goes by
    the name of one.

    The result has the shape of `elements`.

    >>> import flambeau as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    elements = element if elements is None else elements
    test_elements = test_element if test_elements is None else test_elements
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin() received an invalid combination of arguments - got "
                        f"({type(elements).__name__}, {type(test_elements).__name__}), but expected"
                        " one of:")  # fmt: skip
    for value in (elements, test_elements):
        if isinstance(value, complex):
            raise RuntimeError("Unsupported input type encountered for isin(): ComplexDouble")
        if isinstance(value, Tensor) and value._data.dtype.kind in "cb":
            raise RuntimeError(
                f"Unsupported input type encountered for isin(): {value.dtype.scalar_name}"
            )
    common = common_dtype([elements, test_elements])
    kind = FLOAT32 if common in dt.HALVES else common.numpy_dtype
    needles, stack = as_values(elements).astype(kind), as_values(test_elements).astype(kind)
    return write(isin, out, wrap(finished(np.isin(needles, stack, invert=invert), np.bool_)))
