"""Views by stride and offset; tensors that change their own shape: `unsqueeze_`, `resize_`, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import META
from flambeau._core.doc_text import with_example
from flambeau._core.layout import (
    channels_last,
    channels_last_3d,
    contiguous_strides,
    is_channels_last,
    preserve_format,
)
from flambeau._core.settings import Determinism, warn_user
from flambeau._ops.copying.copies import format_strides
from flambeau._ops.factories.making import LARGEST, conspicuous, too_large
from flambeau._ops.factories.strided import strided_too_far
from flambeau._ops.table.dispatch import size_list
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, composite, view
from flambeau._ops.table.scalars import checked_number
from flambeau._ops.table.unformulated import NotDerived
from flambeau._ops.views.geometry import strided
from flambeau._runtime.cpu import address, element_strides
from flambeau._tensor import meta
from flambeau._tensor.bits import about_memory, set_bits
from flambeau._tensor.meta import Meta
from flambeau._tensor.storage import ARGUMENT_1, UntypedStorage, elements_under
from flambeau._tensor.tensor import (
    Tensor,
    memory_of,
    method,
    new,
    on_device_of,
    shown,
    storage_of,
    wrap,
)
from flambeau.autograd.graph import Node, tools
from flambeau.autograd.history import begin_anew, bump, check_inplace, edge_of, rebase
from flambeau.autograd.refitted import before_other_memory
from flambeau.autograd.tangents import hand_on
from flambeau.autograd.versions import version_of


def as_strided_grad(grad: Any, shape: Any, strides: Any, itemsize: int, size: Any, stride: Any,
                     offset: int) -> Any:  # fmt: skip
    """The adjoint of `as_strided`: each element of the result adds to the place it came from.

    Elements of an input that overlap themselves share their gradient evenly.
    """
    steps = [step // itemsize for step in strides]
    extents = [_extent(size, stride), _extent(shape, steps)]
    if None not in extents and 0 not in (*size, *shape):
        return _laid_apart(grad, shape, steps, size, stride, offset, extents)
    targets, sources = _positions(size, stride) + offset, _positions(shape, steps)
    if not targets.size or not sources.size:
        return ops.new_zeros(grad, shape)
    least = min(targets.min(), sources.min())
    length = int(max(targets.max(), sources.max()) - least) + 1
    flat = ops.new_zeros(grad, (length,))
    places = on_device_of(wrap(np.ascontiguousarray((targets - least).reshape(-1))), grad)
    flat = ops.index_add(flat, 0, places, grad.reshape(-1))
    found = sources - least
    counts = np.bincount(found.reshape(-1), minlength=length)
    wanted = on_device_of(wrap(np.ascontiguousarray(found.reshape(-1))), grad)
    result = ops.index_select(flat, 0, wanted)
    if counts.max() > 1:
        sharers = wrap(counts[found.reshape(-1)].astype(grad._data.real.dtype))
        result = result / on_device_of(sharers, grad)
    return result.reshape(shape)


def _extent(shape: Sequence[int], steps: Sequence[int]) -> int | None:
    """How far the last element of a layout lies from the first; None where elements may share a
    place."""
    reach = 0
    for step, size in sorted(zip(steps, shape, strict=True)):
        if size > 1:
            if step <= reach:
                return None
            reach += step * (size - 1)
    return reach


def _laid_apart(grad: Any, shape: Any, steps: Any, size: Any, stride: Any, offset: int,
                extents: Any) -> Any:  # fmt: skip
    """`as_strided_grad` where each element has a place of its own: written there, and read."""
    least = min(offset, 0)
    length = max(offset + extents[0], extents[1]) - least + 1
    flat = ops.new_zeros(grad, (length,))
    flat = ops.as_strided_scatter(flat, grad, size, stride, offset - least)
    return ops.as_strided(flat, shape, steps, -least)


def _positions(shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """The distance of every element from the first, in elements."""
    places = np.zeros((), np.int64)
    for size, step in zip(shape, strides, strict=True):
        places = places[..., None] + np.arange(size, dtype=np.int64) * step
    return places


def _from_start(self: Any, size: Any, stride: Any, offset: int) -> InAten:
    """The call in ATen, whose offsets are those in the storage."""
    return InAten("as_strided", (self, list(size), list(stride), offset + self.storage_offset()))


@view(
    "_as_strided(Tensor(a) self, int[] size, int[] stride, int offset) -> Tensor(a)",
    node="AsStridedBackward0",
    aten=_from_start,
    method=False,
    function=False,
    saved_names={
        "offset": "storage_offset",
        "self_shape": None,
        "self_strides": None,
        "self_dtype": None,
    },
    backward={
        "self": lambda grad, self_shape, self_strides, self_dtype, size, stride, offset: (
            as_strided_grad(
                grad, self_shape, self_strides, self_dtype.itemsize, size, stride, offset
            )
        ),
    },
)
def _as_strided(data: np.ndarray, size: Any, stride: Any, offset: int) -> np.ndarray:
    """`as_strided` from `offset` elements after the first of this tensor."""
    itemsize = data.itemsize
    steps = tuple([step * itemsize for step in stride])
    return strided(data, tuple(size), steps, offset * itemsize)


@composite(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)"
)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int],
               storage_offset: int | None = None) -> Tensor:  # fmt: skip
    """Any shape and strides (in elements) over the storage of the tensor.

    >>> import flambeau as torch
    >>> torch.as_strided(torch.arange(6), (3, 2), (1, 3))
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    data = memory_of(input)
    itemsize = data.itemsize
    storage = storage_of(input)
    have = (address(data) - storage.start) // itemsize
    if not data.size and not 0 <= have <= storage.nbytes() // itemsize:
        have = 0  # NumPy gave it memory of its own
    start = have if storage_offset is None else storage_offset
    check_bounds(size, stride, start, itemsize, storage.nbytes())
    if not data.size and 0 not in size:
        data = storage.array[: storage.nbytes() // itemsize * itemsize].view(data.dtype)
        source = new(Tensor)
        source._data = data
        set_bits(source, input._conjugated, input._negated)
        source._root = input if input._root is None else input._root
        source._base = input if input._base is None else input._base
        edge = edge_of(input) if modes.grad.enabled else None
        if edge is not None:
            source._node, source._requires_grad = Beyond(input, edge), True
        return ops._as_strided(source, size, stride, start)  # type: ignore[no-any-return]
    return ops._as_strided(input, size, stride, start - have)  # type: ignore[no-any-return]


class Beyond(Node):
    """The memory around a tensor without elements: no gradient comes from there."""

    __slots__ = ("meta",)
    title = "AsStridedBackward0"

    def __init__(self, empty: Tensor, edge: Any) -> None:
        super().__init__(edge)
        self.meta = empty._data.shape, empty._data.dtype

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """Nothing, in the shape of the tensor."""
        return (tools.zeros(*self.meta),)


def check_bounds(size: Any, stride: Any, start: int, itemsize: int, nbytes: int) -> None:
    """Torch's errors for shapes and strides that a storage cannot hold."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in stride):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got "
                           f"strides: {list(stride)}")  # fmt: skip
    if any(n < 0 for n in size):
        raise strided_too_far(size, stride)
    if start < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {start}")
    if 0 in size:
        return
    reach = start + 1
    for n, step in zip(size, stride, strict=True):
        reach += (n - 1) * step
    if reach * itemsize > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start}, and "
            f"itemsize {itemsize} requiring a storage size of {reach * itemsize} are out of bounds "
            f"for storage of size {nbytes}"
        )


# ---- in place: the tensor's own geometry changes


def _inplace_view(name: str, forward: Callable[..., Any], given: str, shape: list[int]) -> None:
    @about_memory
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_inplace(input, bool(modes.grad.enabled) and input.requires_grad)
        result = forward(stand_in(input), *args, **kwargs)
        input._data = result._data
        bump(input)
        return with_history(input, result)

    function.__name__ = name
    function.__doc__ = with_example(
        f"`{name[:-1]}` of this tensor itself: its shape and strides change.",
        f"torch.ones(2, 1).{name}({given}).shape", f"torch.Size({shape})",
    )  # fmt: skip
    INPLACE_VIEWS[name] = forward
    method(shown(name)(function))


INPLACE_VIEWS: dict[str, Callable[..., Any]] = {}
"""What makes the view that a tensor becomes."""
TITLES = {
    "UnsqueezeBackward0": "UnsqueezeBackward1",
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5",
    "TransposeBackward0": "TransposeBackward1",
    "AsStridedBackward0": "AsStridedBackward1",
    "TBackward0": "TBackward1",
}
"""The nodes of views, and what torch calls them where the tensor itself becomes the view."""


def stand_in(input: Tensor) -> Tensor:
    """What a tensor is before its geometry changes."""
    edge_of(input)
    before = new(Tensor)
    before._data, before._root = input._data, input if input._root is None else input._root
    before._node, before._requires_grad = input._node, input._requires_grad
    before._tangents = input._tangents
    return before


def with_history(input: Tensor, result: Tensor) -> Tensor:
    """A tensor that has the geometry of a view, with its history as well. Where that was not
    recorded, a view is stale: its next node starts anew."""
    if input._tangents is not None:
        hand_on(result, input)
    if result._node is not None:
        input._node = renamed(result._node, TITLES[result._node.title])
        if input._base is not None:
            input._view_version = version_of(input)
    return input


_RENAMED: dict[tuple[type, str], type] = {}


def renamed(node: Any, title: str) -> Any:
    """The node under the name that torch gives another form of its operator."""
    key = (type(node), title)
    if key not in _RENAMED:
        _RENAMED[key] = type(title, (type(node),), {"__slots__": (), "title": title})
    node.__class__ = _RENAMED[key]
    return node


def _lazily(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(ops, name)(*args, **kwargs)


for _name, _given, _shape in (
    ("unsqueeze", "0", [1, 2, 1]), ("squeeze", "", [2]), ("transpose", "0, 1", [1, 2]),
    ("swapaxes", "0, 1", [1, 2]), ("swapdims", "0, 1", [1, 2]),
    ("as_strided", "(1, 2), (2, 1)", [1, 2]),
):  # fmt: skip
    _inplace_view(f"{_name}_", _lazily(_name), _given, _shape)


def t_(tensor: Tensor) -> Any:
    if tensor._data.ndim > 2:
        ndim = tensor._data.ndim
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return ops.t(tensor)


_inplace_view("t_", t_, "", [1, 2])


# ---- another storage, another size


def _elements(storage: UntypedStorage, numpy_dtype: Any) -> np.ndarray:
    """All of a storage as elements of a type."""
    size = numpy_dtype.itemsize
    found = storage.array[: storage.nbytes() // size * size].view(numpy_dtype)
    return found.view(Meta) if storage.device is META else found


def _grow(storage: UntypedStorage, nbytes: int) -> None:
    """Give a storage at least so many bytes; tensors that look at it already keep the old ones."""
    if nbytes > storage.nbytes():
        storage.resize_(nbytes)


@method
@shown("set_")
@about_memory
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None,
         stride: Any = None) -> Tensor:  # fmt: skip
    """Make this tensor look at the memory of a tensor or storage; without one, at nothing.

    A tensor gives its shape, too; with a storage, `size`, `stride` and `storage_offset` say which.

    >>> import flambeau as torch
    >>> x = torch.zeros(2)
    >>> x.set_(torch.ones(3))
    tensor([1., 1., 1.])
    """
    element = self._data.dtype
    if source is None:
        return _point_to(self, np.empty(0, element), None)
    if isinstance(source, Tensor):
        if size is None and source._data.dtype != element:
            names = [t.dtype.c_name for t in (source, self)]
            raise RuntimeError(f"Could not set tensor of type {names[0]} to a tensor of type "
                               f"{names[1]}")  # fmt: skip
        if size is None:
            _check_place(self, source)
            edge = edge_of(source) if modes.grad.enabled else None
            return _point_to(self, source._data, storage_of(source), edge)
        if not source.is_contiguous():  # type: ignore[attr-defined]
            raise RuntimeError("passed in tensor to be used as storage must be contiguous")
        storage_offset += source.storage_offset()
        source = storage_of(source)
    storage = getattr(source, "_untyped_storage", source)
    if storage is not source:
        elements_under(source, self.dtype, ARGUMENT_1)
    _check_place(self, storage)
    flat = _elements(storage, element)
    if size is None:
        return _point_to(self, flat, storage)
    size = (size,) if isinstance(size, int) else tuple(size)
    steps = contiguous_strides(size) if stride is None else stride
    if 0 not in size:
        reach = storage_offset + 1 + sum([(n - 1) * s for n, s in zip(size, steps, strict=True)])
        _reach(self, storage, size, steps, storage_offset, reach * element.itemsize)
        flat = _elements(storage, element)
    steps = tuple([step * element.itemsize for step in steps])
    data = strided(flat, size, steps, storage_offset * element.itemsize)
    return _point_to(self, data.view(Meta) if isinstance(flat, Meta) else data, storage)


def _check_place(target: Tensor, source: Any) -> None:
    if source.device is not target.device:
        raise RuntimeError(f'Attempted to set the storage of a tensor on device "{target.device}" '
                           f'to a storage on different device "{source.device}".  This is no '
                           "longer allowed; the devices must match.")  # fmt: skip


def _reach(target: Tensor, storage: UntypedStorage, size: Any, steps: Any, offset: int,
           nbytes: int) -> None:  # fmt: skip
    """Memory grows for another shape; for the one that the tensor has it must be enough."""
    data = target._data
    if nbytes > storage.nbytes() and (size, tuple(steps)) == (data.shape, element_strides(data)):
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(steps)}, storage offset {offset}, and "
            f"itemsize {data.itemsize} requiring a storage size of {nbytes} are out of bounds for "
            f"storage of size {storage.nbytes()}"
        )
    _grow(storage, nbytes)


SET = RuntimeError, "derivative for set_ is not implemented"


def _point_to(target: Tensor, data: np.ndarray, storage: UntypedStorage | None,
              edge: Any = None) -> Tensor:  # fmt: skip
    """`edge`: of the tensor whose memory it is."""
    recorded = bool(modes.grad.enabled) and (edge is not None or target.requires_grad)
    check_inplace(target, recorded)
    node = NotDerived([edge_of(target), edge], SET) if recorded else None
    if node is None and target._node is None:
        begin_anew(target)
    elif node is None:
        before_other_memory(target, data)
    bump(target)
    target._data, target._storage = data, storage
    if node is not None:
        rebase(target, node)
    return target


@method
@shown("resize_")
@about_memory
def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Another size, row-major from the start of the same memory, which grows if it must.

    New elements are uninitialised.

    >>> import flambeau as torch
    >>> torch.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    if self.requires_grad and not modes.grad.inference:
        raise RuntimeError("cannot resize variables that require grad")
    check_inplace(self, False, leaf=False)
    size = tuple([int(n) for n in _one_size(sizes, size)])
    if min(size, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    strides = None if memory_format is None else format_strides(size, memory_format)
    if strides is None:
        strides = contiguous_strides(size)
    check_extent(size, strides, self._data.itemsize)
    if size == self._data.shape and memory_format is None:
        return self
    if self._data.__class__ is Meta:
        self._data = meta.empty(size, strides, self._data.dtype)
    else:
        resize_memory(self, size, strides)
    bump(self)
    return self


def _one_size(sizes: tuple[Any, ...], size: Any) -> Any:
    """A size given loose, as a list, or by name; torch's errors for more or less than one."""
    if size is None:
        if not sizes:
            raise TypeError('resize_() missing 1 required positional arguments: "size"')
        return size_list(sizes)
    if sizes:
        raise TypeError("resize_() got multiple values for argument 'size'")
    if not isinstance(size, (tuple, list)):
        raise TypeError("resize_(): argument 'size' must be tuple of ints, not "
                        f"{type(size).__name__}")  # fmt: skip
    return size


@method
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """An older name of `view` and `reshape`: as many elements in another size.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    warn_user("non-inplace resize is deprecated")
    return _resized(self, sizes, "resize")


@method
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`resize` to the size of another tensor.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.arange(4).resize_as(torch.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    warn_user("non-inplace resize_as is deprecated")
    return _resized(self, tuple(tensor.size()), "resize_as")


def _resized(tensor: Tensor, sizes: tuple[Any, ...], name: str) -> Tensor:
    size = size_list(sizes)
    if prod(size) != tensor.numel():
        wanted, have = ("x".join(map(str, shape)) for shape in (size, tensor.shape))
        raise RuntimeError(
            f"requested resize to {wanted} ({prod(size)} elements in total), but the given tensor "
            f"has a size of {have} ({tensor.numel()} elements). autograd's resize can only change "
            "the shape of a given tensor, while preserving the number of elements. ")  # fmt: skip
    return ops.reshape(tensor.contiguous(), size)  # type: ignore[attr-defined, no-any-return]


def check_extent(size: tuple[int, ...], strides: Sequence[int], itemsize: int) -> None:
    """RuntimeError where a size has more bytes than 64 bits count."""
    steps_fit = max(strides, default=0) <= LARGEST
    if steps_fit and prod(size) > LARGEST:
        raise RuntimeError("numel: integer multiplication overflow")
    if not steps_fit or prod(size) * itemsize > LARGEST:
        raise too_large(size, strides)


def resize_memory(target: Tensor, size: tuple[int, ...], strides: Sequence[int]) -> None:
    """Another size from the start of the same memory; what is missing is added."""
    data = target._data
    itemsize, count = data.itemsize, prod(size)
    storage = storage_of(target)
    start = (address(data) - storage.start) // itemsize if data.size else 0
    known = storage.nbytes() // itemsize
    _grow(storage, (start + count) * itemsize)
    flat = _elements(storage, data.dtype)
    if Determinism.fills:
        wrap(flat[known:]).fill_(conspicuous(data.dtype))  # type: ignore[attr-defined]
    steps = tuple([step * itemsize for step in strides])
    target._data = strided(flat, size, steps, start * itemsize if count else 0)


@composite(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? "
    "memory_format=None) -> Tensor(a!)",
)
@shown("resize_as_")
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the size of another tensor.

    >>> import flambeau as torch
    >>> x = torch.zeros(4)
    >>> torch.resize_as_(x, torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    if memory_format is preserve_format:
        data = the_template._data
        last = {4: channels_last, 5: channels_last_3d}.get(data.ndim)
        memory_format = last if is_channels_last(data.shape, element_strides(data)) else None
    return resize_(input, the_template._data.shape, memory_format=memory_format)


@method
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number to the diagonal; `wrap`: tall matrices start again below the square.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3).fill_diagonal_(5)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    data = memory_of(self)
    shape = data.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    checked_number(fill_value, data.dtype)
    step = sum(element_strides(data))
    length = min(shape)
    ops.as_strided(self, (length,), (step,)).fill_(fill_value)
    rows, columns = shape[0], shape[1]
    if wrap and len(shape) == 2 and rows > columns + 1:
        below = ops.slice(self, 0, columns + 1, rows)
        fill_diagonal_(below, fill_value, wrap=True)
    return self
