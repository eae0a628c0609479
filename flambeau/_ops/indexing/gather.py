"""Reading elements by position: `gather`, `index_select`, `take`, `masked_select`, `nonzero`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core.device import refuse_pinned
from flambeau._ops.factories.making import finish, options
from flambeau._ops.indexing import launch as scatter
from flambeau._ops.indexing.positions import (
    INTEGERS,
    LONG,
    at_least_1d,
    element_key,
    in_range,
    range_error,
    type_name,
)
from flambeau._ops.launching.precision import require_known
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, composite, kernel
from flambeau._ops.table.outputs import EXACT, SAME
from flambeau._ops.table.pointwise import broadcast_shape
from flambeau._tensor.examples import is_near, numbers_under
from flambeau._tensor.tensor import Tensor, wrap


def _gather_gradient(grad: Any, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    """Zeros with the gradients at their places; torch keeps `self`, too."""
    if sparse_grad:
        from flambeau._ops.sparse.constructors import gradient_of_elements

        return gradient_of_elements(grad, self._data.shape, dim, index)
    return ops.scatter_add(ops.new_zeros(grad, self._data.shape), dim, index, grad)


@kernel(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    regular=True,
    inline="alike",
    device_check="gather",
    batch="dims",
    out=True,
    out_type=EXACT,
    out_apart=True,
    backward={"self": _gather_gradient},
)
def gather(data: np.ndarray, dim: int, index: np.ndarray, sparse_grad: bool) -> np.ndarray:
    """The element of each position: `result[i][j] = input[index[i][j]][j]` for dim 0.

    With `sparse_grad`, the gradient of `input` is a sparse tensor with an entry for each position.

    >>> import flambeau as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    dim = wrap_dim(dim, data.ndim)
    if index.size == 0:
        return np.empty(index.shape, data.dtype)
    if index.dtype not in INTEGERS:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    require_known("scatter_gather_tensor_cpu", data.dtype)
    source, positions = at_least_1d(data), at_least_1d(index)
    if source.ndim != positions.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    quick = scatter.read_elements(source, dim, positions)
    if quick is not None:
        return quick.reshape(index.shape)  # type: ignore[no-any-return]
    try:
        if in_range(positions, source.shape[dim]):
            found = source[element_key(positions, dim)]
            return found if index.ndim else found.reshape(())
    except IndexError:
        pass  # torch's errors below
    _check_sizes(positions.shape, source.shape, dim)
    raise range_error(positions, source.shape[dim], dim)


def _check_sizes(shape: tuple[int, ...], source: tuple[int, ...], dim: int) -> None:
    for d, (count, size) in enumerate(zip(shape, source, strict=True)):
        if count > size and d != dim:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(shape)} to "
                f"be no larger than self {list(source)} apart from dimension {dim}"
            )


@kernel(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    regular=True,
    inline="alike",
    device_check="_index_select",
    out=True,
    out_type=SAME,
    out_apart=True,
    backward={
        "self": lambda grad, self_shape, dim, index: ops.index_add(
            ops.new_zeros(grad, self_shape), dim, index, grad
        )
    },
)
def index_select(data: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    """The slices at the given positions of a dim.

    >>> import flambeau as torch
    >>> torch.index_select(torch.arange(6).reshape(3, 2), 0, torch.tensor([2, 0]))
    tensor([[4, 5],
            [0, 1]])
    """
    dim = wrap_dim(dim, data.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INTEGERS:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    source = at_least_1d(data)
    if data.ndim == 0 and index.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
        )
    found = scatter.read_rows(source, dim, at_least_1d(index))
    if found is not None:
        return found.reshape(()) if data.ndim == 0 else found  # type: ignore[no-any-return]
    if not in_range(index, source.shape[dim]):
        raise _no_such_slice(source, dim, index)
    result = source.take(at_least_1d(index), dim)
    return result.reshape(()) if data.ndim == 0 else result


def _no_such_slice(source: np.ndarray, dim: int, index: np.ndarray) -> Exception:
    """The error of `index_select` for positions outside a dim; of an empty tensor it says more."""
    count = source.shape[dim]
    if source.size:
        return IndexError("index out of range in self")
    if not count:
        return RuntimeError("index_select(): self indexing axis dim should be positive")
    wrong = index[(index < 0) | (index >= count)].reshape(-1)[0]
    return RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={count}")


def flat_positions(index: np.ndarray, count: int, name: str) -> np.ndarray:
    """Positions in a flattened tensor, made non-negative; torch's errors."""
    if index.dtype != LONG:
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {type_name(index)}"
        )
    if index.size and not count:
        raise IndexError("take(): tried to take from an empty tensor" if name == "take" else
                         "put_(): tried to put elements into an empty tensor")  # fmt: skip
    wrong = (index < -count) | (index >= count)
    if wrong.any():
        value = index.reshape(-1)[wrong.reshape(-1).argmax()]
        raise IndexError(
            f"out of range: tried to access index {value} on a tensor of {count} elements."
        )
    return np.where(index < 0, index + count, index)


@kernel(
    "take(Tensor self, Tensor index) -> Tensor",
    out=True,
    out_type="take(): self and out expected to have the same dtype, but got self.dtype = {want} "
    "and out.dtype = {have}",
    out_apart=True,
    backward={
        "self": lambda grad, self, index: ops.put(  # torch keeps `self`, too
            ops.new_zeros(grad, self._data.shape), index, grad, True
        )
    },
)
def take(data: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The elements at positions of the flattened tensor, in the shape of `index`.

    >>> import flambeau as torch
    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([3, 0]))
    tensor([4, 1])
    """
    require_known("take_cpu", data.dtype)
    if index.dtype == LONG and data.ndim:
        found = scatter.read_rows(data.reshape(-1), 0, index, True)
        if found is not None:
            return found  # type: ignore[no-any-return]
    positions = flat_positions(index, data.size, "take")
    return np.asarray(data.reshape(-1).take(positions))


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
def take_along_dim(input: Any, indices: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """`gather` with broadcasting; negative positions count from the end.

    >>> import flambeau as torch
    >>> torch.take_along_dim(torch.tensor([[3, 1]]), torch.tensor([[1, 0]]), 1)
    tensor([[1, 3]])
    """
    if dim is not None and indices.dtype is not dt.int64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices.dtype.scalar_name}"
        )
    if dim is None:
        if indices.dtype not in (dt.int32, dt.int64):
            raise RuntimeError("gather(): Expected dtype int32/int64 for index")
        return ops.gather(
            input.reshape(-1), 0, _wrapped(indices.reshape(-1), input.numel()), out=out
        )
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = wrap_dim(dim, input.ndim)
    shapes = [list(t._data.shape) for t in (input, indices)]
    sizes = [shape[dim] for shape in shapes]
    shapes[0][dim] = shapes[1][dim] = 1
    if shapes[0] != shapes[1]:
        common = list(broadcast_shape([tuple(shape) for shape in shapes]))
        common[dim] = sizes[0]
        input = ops.expand(input, common)
        common[dim] = sizes[1]
        indices = ops.expand(indices, common)
    return ops.gather(input, dim, _wrapped(indices, sizes[0]), out=out)


def _wrapped(indices: Tensor, size: int) -> Tensor:
    """Positions modulo the size, as torch's `remainder` makes them."""
    if is_near(indices._data) and in_range(numbers_under(indices._data), size):
        return indices
    return ops.remainder(indices, max(size, 1))


# ---- masks and positions of elements


@kernel(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    also_saved=("self",),
    saved_names={"self_shape": None, "self_dtype": None},
    shape="unknown",
    out=True,
    out_type=SAME,
    out_apart=True,
    backward={
        "self": lambda grad, self_shape, self_dtype, mask: _masked_select_grad(
            grad, self_shape, mask
        )
    },
)
def masked_select(data: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The elements where a mask is True, in row-major order; both broadcast.

    Gives a vector, in new memory, as long as the mask has True: `where` and `masked_fill` keep the
    shape. Gradients go to the elements that were taken, 0 to the others. Raises RuntimeError for a
    mask that is not of bools.

    >>> import flambeau as torch
    >>> torch.masked_select(torch.arange(4), torch.tensor([True, False, False, True]))
    tensor([0, 3])
    """
    if mask.dtype not in (np.bool_, np.uint8):
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if mask.dtype == np.uint8:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shape([mask.shape, data.shape])
    if data.shape != shape:
        data = np.broadcast_to(data, shape)
    if mask.shape != shape:
        mask = np.broadcast_to(mask, shape)
    return data.reshape(-1).compress(mask.reshape(-1))


def _masked_select_grad(grad: Any, shape: Any, mask: Any) -> Any:
    common = broadcast_shape([shape, mask._data.shape])
    zeros = ops.new_zeros(grad, common)
    return ops.masked_scatter(zeros, mask, grad)


@kernel(
    "_nonzero(Tensor self) -> Tensor",
    shape="unknown",
    method=False,
    function=False,
    aten=lambda self: InAten("nonzero", (self,)),
)
def nonzero_positions(data: np.ndarray) -> np.ndarray:
    """One row per element that is not zero: its position in each dim."""
    mask = data if data.dtype.kind == "b" else data != 0
    if not mask.any():  # there, the columns lie on each other
        nothing = np.empty(0, np.int64)
        return np.lib.stride_tricks.as_strided(nothing, (0, data.ndim), (nothing.itemsize, 0))
    if data.ndim == 0:
        return np.zeros((1, 0), np.int64)
    if not mask.flags.c_contiguous:
        return np.array(mask.nonzero(), np.int64).T
    # NumPy finds positions in a flat mask four times faster
    rest = mask.reshape(-1).nonzero()[0]
    columns = np.empty((data.ndim, rest.size), np.int64)
    for dim in range(data.ndim - 1, 0, -1):
        size = data.shape[dim]
        above = np.floor_divide(rest, size)
        np.subtract(rest, above * size, out=columns[dim])
        rest = above
    columns[0] = rest
    return columns.T


@composite(
    "nonzero(Tensor self) -> Tensor",
    out_type="nonzero: Expected out tensor to have scalar type {want} but got scalar type{have}",
)
def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: rows of a matrix, or a tensor per dim.

    >>> import flambeau as torch
    >>> torch.nonzero(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        source = input.reshape(1) if input._data.ndim == 0 else input
        return tuple(ops.unbind(ops._nonzero(source), 1))
    found = ops._nonzero(input)
    if out is None:
        return found
    from flambeau._ops.table.op import REGISTRY
    from flambeau._ops.table.outputs import write_out

    return write_out(REGISTRY["nonzero"], out, found)


@composite("argwhere(Tensor self) -> Tensor")
def argwhere(input: Any) -> Any:
    """The positions of the elements that are not zero, one row each.

    Shape [number of those elements, number of dims].

    >>> import flambeau as torch
    >>> torch.argwhere(torch.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return ops._nonzero(input)


@composite("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
           shape="zeros",
           out_type="nonzero_static: Expected out tensor to have scalar type {want} but got scalar "
                    "type{have}")  # fmt: skip
def nonzero_static(input: Any, *, size: int, fill_value: int = -1, out: Any = None) -> Any:
    """`nonzero` cut or filled up to `size` rows.

    >>> import flambeau as torch
    >>> torch.nonzero_static(torch.tensor([0, 1, 2]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = ops._nonzero(input)._data[:size]
    result = np.full((size, found.shape[1]), fill_value, np.int64)
    result[: len(found)] = found
    return write(nonzero_static, out, wrap(result))


def _checked_sizes(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int):
        return (shape,)
    if isinstance(shape, Tensor) or not isinstance(shape, Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for size in shape:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    return tuple(shape)


@composite("unravel_index(Tensor indices, int[] shape) -> Tensor[]", method=False)
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """Positions in a flattened tensor as positions in each dim of `shape`.

    >>> import flambeau as torch
    >>> torch.unravel_index(torch.tensor([5]), (2, 3))
    (tensor([1]), tensor([2]))
    """
    if indices._data.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = _checked_sizes(shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    if 0 in sizes and indices._data.size:
        raise RuntimeError("ZeroDivisionError")
    if not sizes:
        return ()
    inner = [prod(sizes[dim + 1 :]) for dim in range(len(sizes))]
    flat = ops.unsqueeze(indices.to(dt.int64), -1)
    steps, ends = (wrap(np.array(v, np.int64)).to(indices.device) for v in (inner, sizes))
    return tuple(ops.unbind(flat // steps % ends, -1))


def _triangle(row: int, col: int, offset: int, dtype: Any, device: Any, layout: Any,
              requires_grad: bool, name: str, find: Any) -> Tensor:  # fmt: skip
    row, col, offset = int(row), int(col), int(offset)
    if layout not in (None, lay.strided):
        raise NotImplementedError(f"Could not run 'aten::{name}' with the layout {layout}.")
    numpy_dtype = options(dt.int64 if dtype is None else dtype, None, device)
    for word, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{word} must be non-negative, got{size}")
    if numpy_dtype.kind != "i":
        kind = dt.from_numpy_dtype(numpy_dtype).scalar_name
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")
    return finish(np.stack(find(row, offset, col)).astype(numpy_dtype), requires_grad)


@composite("tril_indices(int row, int col, int offset=0) -> Tensor", method=False)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
                 layout: Any = None, pin_memory: bool = False,
                 requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The positions on and below a diagonal of a matrix: two rows, of rows and of columns.

    >>> import flambeau as torch
    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    if pin_memory is not False:
        refuse_pinned("tril_indices", pin_memory)
    return _triangle(row, col, offset, dtype, device, layout, requires_grad, "tril_indices",
                     np.tril_indices)  # fmt: skip


@composite("triu_indices(int row, int col, int offset=0) -> Tensor", method=False)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
                 layout: Any = None, pin_memory: bool = False,
                 requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The positions on and above a diagonal of a matrix: two rows, of rows and of columns.

    >>> import flambeau as torch
    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    if pin_memory is not False:
        refuse_pinned("triu_indices", pin_memory)
    return _triangle(row, col, offset, dtype, device, layout, requires_grad, "triu_indices",
                     np.triu_indices)  # fmt: skip
