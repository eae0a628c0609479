"""Views: other shapes and strides over the same memory."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.dtype import as_dtype, from_numpy_dtype
from flambeau._core.dtype import dtype as Dtype
from flambeau._core.type_words import type_words
from flambeau._ops.table.binder import plain_type_name
from flambeau._ops.table.bits import is_unwatched, of_memory
from flambeau._ops.table.dims import infer_size, plain_dim, refuse_truth, wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import alias, composite, view
from flambeau._ops.views import geometry
from flambeau._ops.views.geometry import at_position, steps_of, strided, view_strides
from flambeau._runtime.cpu import address, over, owner_of
from flambeau._tensor.bits import BitTensor, method_of_bits
from flambeau._tensor.tensor import storage_of
from flambeau.autograd.history import is_inference

index = operator.index


@view(
    "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
    backward={
        "self": lambda grad, self_shape, dim, index: ops.select_backward(
            grad, self_shape, dim, index
        ),
    },
)
def select(data: np.ndarray, dim: int, index: int) -> np.ndarray:
    """One position along a dim, which is left out of the result.

    >>> import flambeau as torch
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    if data.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, data.ndim)
    size = data.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(data.shape)} at dimension {dim}")  # fmt: skip
    return data[(slice(None),) * dim + (index, ...)]


@view(
    "slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1)"
    " -> Tensor(a)",
    function=False,
    method=False,
    backward={
        "self": lambda grad, self_shape, dim, start, end, step: ops.slice_backward(
            grad, self_shape, dim, start, end, step
        ),
    },
)
def slice_(data: np.ndarray, dim: int, start: int | None, end: int | None,
           step: int) -> np.ndarray:  # fmt: skip
    """Positions start, start + step, ... before `end` along a dim."""
    if data.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    dim = wrap_dim(dim, data.ndim)
    part = data[(slice(None),) * dim + (slice(start, end, step),)]
    length = part.shape[dim]
    if length > 1 or (length and step == 1):
        return part
    # A slice of at most one element keeps its stride, as in torch; NumPy may drop the step.
    strides = (*data.strides[:dim], data.strides[dim] * step, *data.strides[dim + 1 :])
    if not length:
        first = slice(start, end, step).indices(data.shape[dim])[0]
        return at_position(data, dim, first, part.shape, strides)
    return part if part.strides == strides else strided(part, part.shape, strides)


@view(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    between_kernels=True,
    backward={
        "self": lambda grad, dim0, dim1: grad.transpose(dim0, dim1),
    },
)
def transpose(data: np.ndarray, dim0: int, dim1: int) -> np.ndarray:
    """Exchange two dims.

    >>> import flambeau as torch
    >>> torch.swapaxes(torch.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    if dim0.__class__ is not int or dim1.__class__ is not int:
        dim0, dim1 = plain_dim(dim0), plain_dim(dim1)
    try:
        return data.swapaxes(dim0, dim1)
    except ValueError:  # of which NumPy's AxisError is one
        wrap_dim(dim0, data.ndim)
        wrap_dim(dim1, data.ndim)
        return data.view()


@method_of_bits("transpose")
def _transpose_of_bits(self: Any, *dims: Any, **named: Any) -> Any:
    if named or not is_unwatched(self):
        return super(BitTensor, self).transpose(*dims, **named)
    return of_memory(transpose)(self, *dims)


alias("swapaxes", "transpose")
alias("swapdims", "transpose")


@view("t(Tensor(a) self) -> Tensor(a)", between_kernels=True, node="TBackward0",
      batch=lambda self: self.transpose(0, 1) if self.dim() == 2 else ops.alias(self),
      backward={"self": lambda grad: grad.t()})  # fmt: skip
def t(data: np.ndarray) -> np.ndarray:
    """The transpose of a matrix; vectors and numbers stay as they are.

    >>> import flambeau as torch
    >>> torch.t(torch.ones(2, 3)).shape
    torch.Size([3, 2])
    """
    if data.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {data.ndim}D")
    return data.T


@view(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    backward={
        "self": lambda grad, dims: grad.permute(inverse_permutation(dims)),
    },
)
def permute(data: np.ndarray, dims: Sequence[int]) -> np.ndarray:
    """Put the dims in another order.

    >>> import flambeau as torch
    >>> torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    try:
        if len(dims) == data.ndim:
            return data.transpose(dims) if dims else data.view()
    except ValueError:
        pass
    raise _permutation_error(data, dims)


def _permutation_error(data: np.ndarray, dims: Sequence[int]) -> Exception:
    if len(dims) != data.ndim:
        return RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {data.ndim} is not "
            f"equal to len(dims) = {len(dims)}"
        )
    for dim in dims:
        wrap_dim(index(dim), data.ndim)
    return RuntimeError("permute(): duplicate dims are not allowed.")


def inverse_permutation(dims: Sequence[int]) -> list[int]:
    """The order that undoes an order of dims."""
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim % len(dims)] = position
    return inverse


@view(
    "view(Tensor(a) self, int[] size) -> Tensor(a)",
    between_kernels=True,
    several=True,
    function=False,
    fallback="_view_other",
    backward={
        "self": lambda grad, self_shape: grad.reshape(self_shape),
    },
)
def view_(data: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """The same elements in another shape, without a copy: what is written to one is seen in both.

    One size may be -1: it is computed from the others. Called with a dtype, the same bytes in
    another type. Raises RuntimeError where strides do not allow it (after `t`, for one), and
    `reshape` copies.

    >>> import flambeau as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if data.flags.c_contiguous and data.size and (1 not in data.shape or geometry.is_plain(data)):
        try:
            result = data.reshape(size)
        except ValueError:
            pass  # torch's errors below
        else:
            if result.shape == size or not size or min(size) >= -1:  # to NumPy, any is -1
                return result
    shape = infer_size(size, data.size)
    strides = view_strides(data, shape)
    if strides is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at "
                           "least one dimension spans across two contiguous subspaces). Use "
                           ".reshape(...) instead.")  # fmt: skip
    return strided(data, shape, strides)


@view(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    between_kernels=True,
    public="_view_dtype",
    function=False,
    method=False,
)
def view_dtype(data: np.ndarray, dtype: Dtype) -> np.ndarray:
    """The same bytes as elements of another type; the last dim grows or shrinks with its size."""
    old, new = data.itemsize, dtype.numpy_dtype.itemsize
    if old == new:
        return data.view(dtype.numpy_dtype)
    if data.ndim == 0:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {from_numpy_dtype(data.dtype).scalar_name} as "
            f"{dtype.scalar_name} (different element sizes)"
        )
    names = f"{from_numpy_dtype(data.dtype).scalar_name} as {dtype.scalar_name}"
    steps = steps_of(data)
    if steps[-1] != old:
        raise RuntimeError(f"self.stride(-1) must be 1 to view {names} (different element sizes), "
                           f"but got {steps[-1] // old}")  # fmt: skip
    if new > old:
        _check_wider(data, new // old, names)
    shape = (*data.shape[:-1], data.shape[-1] * old // new)
    return _as_type(data, dtype.numpy_dtype, shape, (*steps[:-1], new))


@composite("_view_other(Tensor(a) self, ScalarType[] size) -> Tensor(a)", bare=True, method=False,
           function=False)  # fmt: skip
def view_other(input: Any, size: Any) -> Any:
    """`view` of what is not a shape: a type."""
    if len(size) == 1 and isinstance(as_dtype(size[0]), Dtype):
        _refuse_bits(input)
        result = ops._view_dtype(input, as_dtype(size[0]))
        _follow_mode(input, result)
        return result
    if len(size) == 0 or isinstance(size, Dtype):
        return NotImplemented
    for position, item in enumerate(size):
        if not hasattr(item, "__index__"):
            raise _view_error(size, position, item)
    return NotImplemented


def _follow_mode(source: Any, result: Any) -> None:
    """Unlike other views, those of another type are inference tensors by the mode that they are
    made in, as in torch, and not by what they are made of."""
    if modes.grad.inference:
        result._inference = True
    elif is_inference(source):
        result._storage = storage_of(source)
        result._root = result._base = None


def _refuse_bits(tensor: Any) -> None:
    words = {"conjugate view tensors": tensor._conjugated,
             "tensors with negative bit set": tensor._negated}  # fmt: skip
    for word, is_set in words.items():
        if is_set:
            raise RuntimeError(f"torch.Tensor.view is not supported for {word} when converting to "
                               "a different dtype.")  # fmt: skip


def _view_error(size: Any, position: int, item: Any) -> TypeError:
    if position == 0:
        names = ", ".join(type(value).__name__ for value in size)
        return TypeError(
            f"view() received an invalid combination of arguments - got ({names}), but "
            "expected one of:\n * (torch.dtype dtype)\n * (tuple of ints size)\n"
        )
    return TypeError(
        f"view(): argument 'size' failed to unpack the object at pos {position + 1} with error "
        f'"type must be tuple of ints,but got {plain_type_name(item)}"'
    )


def _check_wider(data: np.ndarray, ratio: int, names: str) -> None:
    if data.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} to view {names} (different "
                           f"element sizes), but got {data.shape[-1]}")  # fmt: skip
    start = address(data) - address(owner_of(data))
    if start // data.itemsize % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} to view {names} (different "
            f"element sizes), but got {start // data.itemsize}"
        )
    for dim, step in enumerate(steps_of(data)[:-1]):
        if step // data.itemsize % ratio:
            raise RuntimeError(
                f"self.stride({dim}) must be divisible by {ratio} to view {names} (different "
                f"element sizes), but got {step // data.itemsize}"
            )


def _as_type(data: np.ndarray, numpy_dtype: Any, shape: Any, strides: Any) -> np.ndarray:
    if not data.size:
        return geometry.without_elements(data, shape, strides, element=numpy_dtype)
    owner = owner_of(data)
    return over(owner, shape, numpy_dtype, address(data) - address(owner), strides)  # type: ignore[no-any-return]


@view(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    between_kernels=True,
    function=False,
    backward={"self": lambda grad, self_shape: ops.sum_to_size(grad, self_shape)},
)
def expand(data: np.ndarray, size: Sequence[int], implicit: bool = False) -> np.ndarray:
    """Repeat dims of size 1 (and new leading dims) without copying; -1 keeps a size.

    >>> import flambeau as torch
    >>> torch.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    if size.__class__ is not tuple or len(size) < data.ndim:
        refuse_truth(size)
    if len(size) < data.ndim:
        raise RuntimeError(
            f"expand({type_name(data)}{{{list(data.shape)}}}, size={list(size)}): the "
            f"number of sizes provided ({len(size)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({data.ndim})"
        )
    if size.__class__ is not tuple:
        size = tuple([index(n) for n in size])
    shape, strides = geometry.expanded(data.shape, steps_of(data), size)
    return strided(data, shape, strides)


def type_name(data: np.ndarray) -> str:
    """The class of a tensor as torch's older messages name it."""
    return type_words(from_numpy_dtype(data.dtype))


@composite("broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)")
def broadcast_to(input: Any, *size: Any, **named: Any) -> Any:
    """`expand`, as a function.

    The result has the given shape.

    >>> import flambeau as torch
    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return ops.expand(input, *size, **named)


@view(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    batch="new dim",
    backward={"self": lambda grad, dim: grad.squeeze(dim)},
)
def unsqueeze(data: np.ndarray, dim: int) -> np.ndarray:
    """A new dim of size 1 at `dim`.

    >>> import flambeau as torch
    >>> torch.unsqueeze(torch.ones(3), 1).shape
    torch.Size([3, 1])
    """
    shape = data.shape
    length = len(shape)
    dim = wrap_dim(dim, length + 1)
    flags = data.flags
    if flags.c_contiguous and 1 not in shape and 0 not in shape:
        return data.reshape((*shape[:dim], 1, *shape[dim:]))
    return strided(data, *geometry.unsqueezed(shape, steps_of(data), data.itemsize, dim))


def _restored(grad: Any, shape: Any) -> Any:
    """A squeezed gradient in its shape before."""
    return grad if grad._data.shape == shape else grad.reshape(shape)


@view(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    batch=lambda self: self.squeeze([d for d, size in enumerate(self.shape) if size == 1]),
    node="SqueezeBackward0",
    order=0,
    backward={"self": lambda grad, self_shape: _restored(grad, self_shape)},
)
def squeeze(data: np.ndarray) -> np.ndarray:
    """Leave out all dims of size 1.

    >>> import flambeau as torch
    >>> torch.squeeze(torch.ones(1, 3, 1), 0).shape
    torch.Size([3, 1])
    """
    return data.squeeze()


@view(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    node="SqueezeBackward1",
    also_saved=("dim",),
    order=1,
    backward={"self": lambda grad, self_shape: _restored(grad, self_shape)},
)
def squeeze_dim(data: np.ndarray, dim: int) -> np.ndarray:
    """Leave out one dim if its size is 1."""
    dim = wrap_dim(dim, data.ndim)
    if data.ndim == 0 or data.shape[dim] != 1:
        return data.view()
    return data.squeeze(dim)


@view(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    node="SqueezeBackward2",
    also_saved=("dim",),
    order=2,
    backward={"self": lambda grad, self_shape: _restored(grad, self_shape)},
)
def squeeze_dims(data: np.ndarray, dim: Sequence[int]) -> np.ndarray:
    """Leave out those of the given dims whose size is 1."""
    dims = [wrap_dim(index(d), data.ndim) for d in dim]
    for wrapped in dims:
        if dims.count(wrapped) > 1:
            raise RuntimeError(f"dim {wrapped} appears multiple times in the list of dims")
    return data.squeeze(tuple([d for d in dims if data.ndim and data.shape[d] == 1]))


@view(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    backward={
        "self": lambda grad, self_shape, offset, dim1, dim2: ops.diagonal_backward(
            grad, self_shape, offset, dim1, dim2
        )
    },
)
def diagonal(data: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    """The elements on a diagonal of two dims, as the last dim.

    >>> import flambeau as torch
    >>> torch.diagonal(torch.arange(9).reshape(3, 3))
    tensor([0, 4, 8])
    """
    first, second = wrap_dim(dim1, data.ndim), wrap_dim(dim2, data.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape, strides = data.shape, steps_of(data)
    rows, columns = shape[first], shape[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = offset * strides[second] if offset >= 0 else -offset * strides[first]
    kept = [d for d in range(data.ndim) if d not in (first, second)]
    return strided(
        data,
        (*[shape[d] for d in kept], length),
        (*[strides[d] for d in kept], strides[first] + strides[second]),
        start if length else 0,
    )


@view(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    function=False,
    backward={
        "self": lambda grad, self_shape, dimension, size, step: ops.unfold_backward(
            grad, self_shape, dimension, size, step
        )
    },
)
def unfold(data: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    """All windows of `size` along a dim, `step` apart; the window is a new last dim.

    >>> import flambeau as torch
    >>> torch.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    dim = wrap_dim(dimension, data.ndim)
    length = data.shape[dim] if data.ndim else 1
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is "
                           f"{size}")  # fmt: skip
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if data.ndim == 0:
        return strided(data, (size,), (data.itemsize,))
    shape, strides = list(data.shape), list(steps_of(data))
    shape[dim], strides[dim] = (length - size) // step + 1, strides[dim] * step
    return strided(data, (*shape, size), (*strides, steps_of(data)[dim]))


@view(
    "alias(Tensor(a) self) -> Tensor(a)",
    function=False,
    method=False,
    backward={"self": lambda grad: grad},
)
def alias_(data: np.ndarray) -> np.ndarray:
    """The same tensor again."""
    return data.view()
