"""New tensors: filled, spaced, and shaped like others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core import modes
from flambeau._core.allocation import cannot_allocate, overflowed
from flambeau._core.device import CPU, META, Defaults, prepare, refuse_pinned, thread
from flambeau._core.device import device as Device
from flambeau._core.promotion import dtype_of_number
from flambeau._core.settings import Determinism
from flambeau._ops.copying.copies import format_strides, write_number
from flambeau._ops.table import outputs
from flambeau._ops.table.dispatch import size_list
from flambeau._ops.table.op import composite
from flambeau._ops.table.pointwise import number_of
from flambeau._ops.table.scalars import filling, type_name
from flambeau._runtime import cpu
from flambeau._tensor import device_array, meta
from flambeau._tensor.bits import about_memory, put
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, memory_of, placed, wrap
from flambeau.autograd.history import bump, check_inplace


def shape_of(size: Any, name: str = "zeros") -> tuple[int, ...]:
    """Sizes given loose or as one sequence, checked."""
    sizes = size_list(size)
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    try:
        shape = tuple(map(index, sizes))
    except TypeError:
        raise _size_error(sizes, name) from None
    if shape and min(shape) < 0:
        if name == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        n = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _is_index(value: Any) -> bool:
    try:
        index(value)
    except TypeError:
        return False
    return True


def _size_error(sizes: Any, name: str) -> TypeError:
    if isinstance(sizes, str) or (len(sizes) == 1 and not isinstance(sizes[0], (int, float))):
        return TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not "
                         f"{type(sizes[0]).__name__}")  # fmt: skip
    position, item = next((i, n) for i, n in enumerate(sizes, 1) if not _is_index(n))
    return TypeError(
        f"{name}(): argument 'size' failed to unpack the object at pos {position} with error "
        f'"type must be tuple of ints,but got {type(item).__name__}"'
    )


def options(dtype: Any, layout: Any, device: Any) -> Any:
    """The NumPy dtype of a factory call, after a check of the other options."""
    if device is not None or Defaults.touched or Defaults.elsewhere:
        prepare(device)
    if layout is not None and layout is not lay.strided:
        raise OtherLayout(f"layout {layout} is not implemented in flambeau 0.1")
    if dtype is None:
        return dt.Defaults.numpy_dtype
    chosen = dt.as_dtype(dtype)
    if not isinstance(chosen, dt.dtype):
        found = type(dtype).__name__
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {found}")
    return chosen.numpy_dtype


class OtherLayout(NotImplementedError):
    """A factory was asked for another layout than `torch.strided`."""


def _sparse(shape: Any, dtype: Any, layout: Any, requires_grad: bool, error: Exception) -> Any:
    """A sparse tensor without entries, where that layout is asked for; else the error."""
    if layout in COMPRESSED and len(shape) >= 2:
        from flambeau._ops.sparse.compressed_constructors import empty_of

        return empty_of(shape, dtype or dt.default_dtype(), layout).requires_grad_(requires_grad)
    if layout is not lay.sparse_coo:
        raise error from None
    from flambeau._ops.sparse.constructors import sparse_coo_tensor

    # `options` has seen to the device
    return sparse_coo_tensor.body(size=shape, dtype=dtype, device=CPU, requires_grad=requires_grad)


COMPRESSED = (lay.sparse_csr, lay.sparse_csc)
"""Layouts whose tensors can be made without entries: blocks have no size of their own."""


def _sparse_like(tensor: Any, dtype: Any, device: Any, number: Any = 0) -> Any:
    """A sparse tensor without entries, for another sparse tensor; of compressed layouts with
    `number` at its places."""
    if tensor.layout is not lay.sparse_coo:
        from flambeau._ops.sparse.compressed_methods import like as like_compressed

        return like_compressed(tensor, number, dtype, device)
    from flambeau._ops.sparse.methods import like

    return like(tensor, dtype, device)


def of_out(name: str, out: Any, dtype: Any, layout: Any, device: Any) -> Any:
    """The element type that a factory works in: that of `out`, if there is one, which has to fit
    what is asked for."""
    if out is None:
        return dtype
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    wanted = dt.as_dtype(dtype)
    if wanted is not None and wanted is not out.dtype:
        raise RuntimeError(f"dtype {wanted.scalar_name} does not match dtype of out parameter "
                           f"({out.dtype.scalar_name})")  # fmt: skip
    if layout is not None and layout is not lay.strided:
        kind = str(layout).rpartition(".")[2].removesuffix("_coo").title()
        raise RuntimeError(f"layout {kind} does not match layout of out parameter (Strided)")
    place = device if device is None or isinstance(device, Device) else Device(device)
    if place is not None and place.type != out.device.type:
        raise RuntimeError(f"device type {place.type} does not match device type of out parameter "
                           f"({out.device.type})")  # fmt: skip
    if out.requires_grad and modes.grad.enabled:
        if name in ("empty", "randn"):
            raise RuntimeError("cannot resize variables that require grad")
        raise RuntimeError(
            f"aten::{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    return out.dtype


def finish(data: np.ndarray, requires_grad: bool, out: Tensor | None = None, *,
           counted: bool = False) -> Tensor:  # fmt: skip
    """The tensor over new memory, or `out` filled with it.

    `counted`: only the number of elements has to be right.
    """
    if Defaults.elsewhere and out is None:
        data = placed(data)
    if out is not None:
        if counted and memory_of(out).size == data.size:
            data = data.reshape(memory_of(out).shape)
        room(out, data.shape)
        if counted:
            outputs.check_overlap(memory_of(out))
        if out._data.__class__ is np.ndarray or out._stored is not None:
            outputs.write(memory_of(out), data)
        else:
            outputs.store(out, data)
        return filled(out, requires_grad)
    result = wrap(data)
    if requires_grad is not False and asks_for_grad(requires_grad):
        require_grad(result)
    return result


@about_memory
def room(out: Tensor, shape: tuple[int, ...]) -> np.ndarray:
    """The memory of `out`, made to fit; without a warning, unlike results of other functions."""
    if out._data.shape != shape:
        from flambeau._ops.views.strided import resize_memory

        resize_memory(out, shape, lay.contiguous_strides(shape))
    check_inplace(out, False, leaf=False)
    return out._data


def filled(out: Tensor, requires_grad: bool) -> Tensor:
    """`out` after it was filled; under bits, memory is the conjugate or the negative of it."""
    if out._stored is not None:
        put(out._stored, out._stored, out._conjugated, out._negated)
    wanted = asks_for_grad(requires_grad)
    bump(out)
    if out.is_leaf:
        out.requires_grad_(wanted)  # type: ignore[attr-defined]
    return out


BETWEEN = frozenset(("asks_for_grad", "finish", "filled", "_finished", "_triangle", "_finish"))
"""Functions between a factory and the question what its `requires_grad` means."""


def asks_for_grad(requires_grad: Any) -> bool:
    """Whether the option `requires_grad` is True; TypeError for what is no bool, nor None."""
    if requires_grad is None or isinstance(requires_grad, (bool, np.bool_)):
        return bool(requires_grad)
    frame: Any = sys._getframe(1)
    while frame.f_code.co_name in BETWEEN:
        frame = frame.f_back
    raise TypeError(f"{frame.f_code.co_name}(): argument 'requires_grad' must be bool, not "
                    f"{type(requires_grad).__name__}")  # fmt: skip


def require_grad(tensor: Tensor) -> None:
    """The option `requires_grad=True` of a function that makes a tensor."""
    if tensor._data.dtype.kind not in "fcVW":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    tensor.requires_grad = True


def too_large(shape: tuple[int, ...], strides: Sequence[int] | None = None) -> RuntimeError:
    """More bytes than 64 bits count. `strides`: row-major ones, unless given."""
    steps = lay.contiguous_strides(shape) if strides is None else strides
    if max(steps, default=0) > LARGEST:
        return RuntimeError("Stride calculation overflowed")
    return overflowed(shape)


def no_memory(shape: tuple[int, ...], error: Exception) -> Exception:
    """What NumPy's error about memory for a shape is in torch's words."""
    return cannot_allocate(str(error)) if isinstance(error, MemoryError) else too_large(shape)


def memory(shape: tuple[int, ...], numpy_dtype: Any, make: Any = np.empty) -> np.ndarray:
    """A new array, or torch's error where there is no memory for it."""
    try:
        return make(shape, numpy_dtype)  # type: ignore[no-any-return]
    except (ValueError, MemoryError) as error:
        return _beyond(shape, numpy_dtype, error)


def _beyond(shape: tuple[int, ...], numpy_dtype: Any, error: Exception) -> np.ndarray:
    """What there is no memory for needs none if it is to be on the device "meta"."""
    if thread.makes_on is META and isinstance(error, MemoryError):
        return meta.zeros_of(meta.empty(shape, lay.contiguous_strides(shape), numpy_dtype))
    raise no_memory(shape, error) from None


LARGEST = 2**63 - 1


def untouched(data: np.ndarray) -> np.ndarray:
    """Memory that nothing is written to; filled, if `use_deterministic_algorithms` asks for it."""
    if Determinism.fills:
        data.fill(conspicuous(data.dtype))
    return data


def conspicuous(element: np.dtype) -> Any:
    """NaN, or the largest number of a type."""
    if element.kind in "iu":
        return np.iinfo(element).max
    return element.kind == "b" or np.nan


OPTIONS = ("*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=False, bool requires_grad=False")  # fmt: skip


@composite(f"zeros(int[] size, {OPTIONS}) -> Tensor", regular=True, method=False)
def zeros(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros.

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3, dtype=torch.int64)
    tensor([[0, 0, 0],
            [0, 0, 0]])
    """
    if pin_memory is not False:
        refuse_pinned("zeros", pin_memory)
    shape = shape_of(sizes if size is None else (size,), "zeros")
    try:
        numpy_dtype = options(of_out("zeros", out, dtype, layout, device), layout, device)
        data = (
            np.zeros(shape, numpy_dtype) if not Defaults.elsewhere else made(shape, numpy_dtype, 0)
        )
    except OtherLayout as error:
        return _sparse(shape, dtype, layout, requires_grad, error)  # type: ignore[no-any-return]
    except (ValueError, MemoryError) as error:
        raise no_memory(shape, error) from None
    return finish(data, requires_grad, out)


@composite(f"ones(int[] size, {OPTIONS}) -> Tensor", regular=True, method=False)
def ones(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones.

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.ones(2, 3)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    if pin_memory is not False:
        refuse_pinned("ones", pin_memory)
    shape = shape_of(sizes if size is None else (size,), "ones")
    try:
        numpy_dtype = options(of_out("ones", out, dtype, layout, device), layout, device)
        data = (
            np.ones(shape, numpy_dtype) if not Defaults.elsewhere else made(shape, numpy_dtype, 1)
        )
    except (ValueError, MemoryError) as error:
        raise no_memory(shape, error) from None
    return finish(data, requires_grad, out)


@composite(f"empty(int[] size, {OPTIONS}) -> Tensor", undetermined=True, bare=True, method=False)
def empty(
    *sizes: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor with whatever was in its memory.

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("empty", pin_memory)
    shape = shape_of(sizes if size is None else (size,), "empty")
    try:
        numpy_dtype = options(of_out("empty", out, dtype, layout, device), layout, device)
    except OtherLayout as error:
        return _sparse(shape, dtype, layout, requires_grad, error)  # type: ignore[no-any-return]
    strides = None if memory_format is None else format_strides(shape, memory_format)
    if Defaults.elsewhere and on_gpu():
        return finish(made(shape, numpy_dtype, None, strides), requires_grad, out)
    if strides is None:
        try:
            return finish(untouched(np.empty(shape, numpy_dtype)), requires_grad, out)
        except (ValueError, MemoryError) as error:
            return finish(_beyond(shape, numpy_dtype, error), requires_grad, out)
    return finish(untouched(cpu.empty_strided(shape, strides, numpy_dtype)), requires_grad, out)


@composite(
    f"full(int[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    bare=True,
    regular=True,
    method=False,
)
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor filled with a number; without `dtype`, the number's own type.

    Its shape is `size`.

    >>> import flambeau as torch
    >>> torch.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if pin_memory is not False:
        refuse_pinned("full", pin_memory)
    if not isinstance(size, (tuple, list)):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not "
                        f"{type(size).__name__}")  # fmt: skip
    fill_value = _number("full", fill_value)
    dtype = of_out("full", out, dtype, layout, device)
    if dtype is None:
        dtype = dtype_of_number(fill_value)
    numpy_dtype = options(dtype, layout, device)
    return finish(made(shape_of((size,), "full"), numpy_dtype, fill_value), requires_grad, out)


def _number(function: str, value: Any) -> Any:
    """What to fill with as a Python number; TypeError if it is none."""
    if isinstance(value, Tensor):
        return value.item()  # type: ignore[attr-defined]
    number = number_of(value)
    if number is None:
        raise TypeError(f"{function}(): argument 'fill_value' (position 2) must be Number, not "
                        f"{type_name(value)}")  # fmt: skip
    return number


def on_gpu() -> bool:
    """Whether the tensor that is being made shall lie on a GPU."""
    place = thread.makes_on
    return place is not None and place.type == "cuda"


def made(shape: tuple[int, ...], numpy_dtype: Any, number: Any, strides: Any = None) -> np.ndarray:
    """New memory where the tensor that is being made shall lie, filled with a number; with None,
    it is left as it is (`untouched`)."""
    if Defaults.elsewhere and on_gpu():
        strides = lay.contiguous_strides(shape) if strides is None else strides
        if number is None and Determinism.fills:
            number = conspicuous(numpy_dtype)
        filler = None if number is None else filling(number, numpy_dtype)
        place: Any = thread.makes_on
        return device_array.filled(shape, strides, numpy_dtype, place.index, filler)  # type: ignore[no-any-return]
    if number is not None and Defaults.elsewhere and thread.makes_on is META:
        strides = lay.contiguous_strides(shape) if strides is None else strides
        return meta.zeros_of(meta.empty(shape, strides, numpy_dtype))
    data = (memory(shape, numpy_dtype) if strides is None
            else cpu.empty_strided(shape, strides, numpy_dtype))  # fmt: skip
    if number is None:
        return untouched(data)
    write_number(data, number)
    return data


def _like(tensor: Tensor, dtype: Any, layout: Any, device: Any, memory_format: Any,
          number: Any = None, fills: bool = False) -> np.ndarray:  # fmt: skip
    """New memory with the shape (and, unless told otherwise, the dense strides) of a tensor.

    `fills`: where it is wanted, and with `number` in it; else on the host, as it is.
    """
    try:
        data = tensor._data
    except AttributeError:
        if isinstance(tensor, Tensor):  # sparse, or of a class that takes part
            raise
        name = sys._getframe(1).f_code.co_name
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(tensor).__name__}"
        ) from None
    if data.__class__ is np.ndarray and data.base is None and data.flags.c_contiguous and (
        dtype is layout is device is memory_format is None
    ):  # fmt: skip
        result = memory(data.shape, data.dtype)
        if number is not None:
            write_number(result, number)
        return result
    place = device or tensor.device
    numpy_dtype = options(tensor.dtype if dtype is None else dtype, layout, place)
    data = tensor._data
    if memory_format is None or memory_format is lay.preserve_format:
        strides = cpu.preserved_strides(data)
    else:
        strides = format_strides(data.shape, memory_format)
    if fills:
        return made(data.shape, numpy_dtype, number, strides)
    if strides is None:
        return memory(data.shape, numpy_dtype)
    return cpu.empty_strided(data.shape, strides, numpy_dtype)


_LIKE = f"{OPTIONS}, MemoryFormat? memory_format=None"


@composite(
    f"empty_like(Tensor self, {_LIKE}) -> Tensor",
    undetermined=True,
    bare=True,
    batch="like",
    method=False,
)
def empty_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """An uninitialised tensor shaped like another.

    The result has the shape of `input`.

    >>> import flambeau as torch
    >>> torch.empty_like(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("empty_like", pin_memory)
    try:
        data = _like(input, dtype, layout, device, memory_format, fills=True)
    except NotStrided:
        return _sparse_like(input, dtype, device)  # type: ignore[no-any-return]
    return finish(untouched(data) if data.__class__ is np.ndarray else data, requires_grad)


@composite(
    f"zeros_like(Tensor self, {_LIKE}) -> Tensor",
    regular=True,
    bare=True,
    batch="like",
    method=False,
    elementwise=True,
)
def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros shaped like another tensor.

    The result has the shape of `input`.

    >>> import flambeau as torch
    >>> torch.zeros_like(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("zeros_like", pin_memory)
    try:
        data = _like(input, dtype, layout, device, memory_format, 0, fills=True)
    except NotStrided:
        return _sparse_like(input, dtype, device)  # type: ignore[no-any-return]
    return finish(data, requires_grad)


@composite(
    f"ones_like(Tensor self, {_LIKE}) -> Tensor",
    regular=True,
    bare=True,
    batch="like",
    method=False,
    elementwise=True,
)
def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones shaped like another tensor.

    The result has the shape of `input`.

    >>> import flambeau as torch
    >>> torch.ones_like(torch.zeros(2, dtype=torch.int32))
    tensor([1, 1], dtype=torch.int32)
    """
    if pin_memory is not False:
        refuse_pinned("ones_like", pin_memory)
    try:
        data = _like(input, dtype, layout, device, memory_format, 1, fills=True)
    except NotStrided:
        if input.layout is lay.sparse_coo:
            raise
        return _sparse_like(input, dtype, device, 1)  # type: ignore[no-any-return]
    return finish(data, requires_grad)


@composite(f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor", regular=True,
           bare=True, batch="like", method=False,
           elementwise=True)  # fmt: skip
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A number repeated in the shape of another tensor.

    >>> import flambeau as torch
    >>> torch.full_like(torch.zeros(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    if pin_memory is not False:
        refuse_pinned("full_like", pin_memory)
    number = _number("full_like", fill_value)
    return finish(_like(input, dtype, layout, device, memory_format, number, True), requires_grad)


@composite(
    f"new_zeros(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    regular=True,
    bare=True,
    batch="new",
    function=False,
)
def new_zeros(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
              layout: Any = None, pin_memory: bool = False,
              requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Zeros of a shape, with the type of this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1, dtype=torch.int32).new_zeros(2)
    tensor([0, 0], dtype=torch.int32)
    """
    if pin_memory is not False:
        refuse_pinned("new_zeros", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    shape = shape_of(sizes if size is None else (size,), "new_zeros")
    if Defaults.elsewhere and on_gpu():
        return finish(made(shape, numpy_dtype, 0), requires_grad)
    return finish(memory(shape, numpy_dtype, np.zeros), requires_grad)


@composite(
    f"new_ones(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    regular=True,
    bare=True,
    batch="new",
    function=False,
)
def new_ones(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
             layout: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Ones of a shape, with the type of this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1, dtype=torch.int32).new_ones(2)
    tensor([1, 1], dtype=torch.int32)
    """
    if pin_memory is not False:
        refuse_pinned("new_ones", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    shape = shape_of(sizes if size is None else (size,), "new_ones")
    if Defaults.elsewhere and on_gpu():
        return finish(made(shape, numpy_dtype, 1), requires_grad)
    return finish(memory(shape, numpy_dtype, np.ones), requires_grad)


@composite(
    f"new_empty(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    undetermined=True,
    bare=True,
    batch="new",
    function=False,
)
def new_empty(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None,
              layout: Any = None, pin_memory: bool = False,
              requires_grad: bool = False) -> Tensor:  # fmt: skip
    """An uninitialised tensor of a shape, with the type of this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1).new_empty(2, 3).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("new_empty", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    shape = shape_of(sizes if size is None else (size,), "new_empty")
    return finish(made(shape, numpy_dtype, None), requires_grad)


@composite(
    f"new_full(Tensor self, int[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    bare=True,
    batch="new",
    function=False,
)
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A number repeated in a shape, with the type of this tensor.

    >>> import flambeau as torch
    >>> torch.ones(1).new_full((2, 2), 7)
    tensor([[7., 7.],
            [7., 7.]])
    """
    if pin_memory is not False:
        refuse_pinned("new_full", pin_memory)
    numpy_dtype = options(dtype or self.dtype, layout, device or self.device)
    number = _number("new_full", fill_value)
    return finish(made(shape_of((size,), "new_full"), numpy_dtype, number), requires_grad)
