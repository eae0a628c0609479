"""What every function that makes a tensor does: sizes and options checked, memory, the result."""

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
from flambeau._core.device import META, Defaults, prepare, thread
from flambeau._core.device import device as Device
from flambeau._core.settings import Determinism
from flambeau._ops.copying.copies import write_number
from flambeau._ops.table import outputs
from flambeau._ops.table.dispatch import size_list
from flambeau._ops.table.pointwise import number_of
from flambeau._ops.table.scalars import filling, type_name
from flambeau._runtime import cpu
from flambeau._tensor import device_array, meta
from flambeau._tensor.bits import about_memory, put
from flambeau._tensor.tensor import Tensor, memory_of, placed, wrap
from flambeau.autograd.history import bump, check_inplace


def shape_of(size: Any, name: str = "zeros") -> tuple[int, ...]:
    """Sizes given loose or as one sequence, checked."""
    if size.__class__ is tuple and size:  # what small tensors cost is the way to here
        sizes = size[0] if len(size) == 1 and size[0].__class__ is tuple else size
        if all([n.__class__ is int and n >= 0 for n in sizes]):  # noqa: C419  (twice as fast)
            return sizes  # type: ignore[no-any-return]
    sizes = size_list(size)
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    try:
        shape = tuple(map(index, sizes))
    except TypeError:
        raise _size_error(sizes, name) from None
    if shape and shape[0] <= 1 and isinstance(sizes[0], (bool, np.bool_)):
        found = "not bool" if sizes is size else "but found element of type bool at pos 0"
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, {found}")
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


MOST_DIMS = 64
"""NumPy's limit."""


def too_large(shape: tuple[int, ...], strides: Sequence[int] | None = None) -> RuntimeError:
    """More bytes than 64 bits count, or more dims than an array may have. `strides`: row-major
    ones, unless given."""
    if len(shape) > MOST_DIMS:
        return RuntimeError(f"only tensors with up to {MOST_DIMS} dims are supported, but got "
                            f"{len(shape)} sizes")  # fmt: skip
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
        return beyond(shape, numpy_dtype, error)


def beyond(shape: tuple[int, ...], numpy_dtype: Any, error: Exception) -> np.ndarray:
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


def fill_number(function: str, value: Any) -> Any:
    """What to fill with as a Python number; TypeError if it is none."""
    if isinstance(value, Tensor):
        return value.item()  # type: ignore[attr-defined]
    number = number_of(value)
    if number is None:
        raise TypeError(f"{function}(): argument 'fill_value' (position 2) must be Number, not "
                        f"{type_name(value)}")  # fmt: skip
    return number
