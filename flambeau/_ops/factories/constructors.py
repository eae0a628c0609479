"""Tensors from other data: `as_tensor`, `asarray`, `frombuffer`, `scalar_tensor`, `new_tensor`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import CPU, check_available, made_on, prepare, refuse_pinned
from flambeau._core.settings import warn_once
from flambeau._ops.factories.making import finish, options
from flambeau._ops.factories.typed import over_storage
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite
from flambeau._ops.table.scalars import filling
from flambeau._tensor.conversion import copy_of, from_numpy
from flambeau._tensor.interop import from_dlpack
from flambeau._tensor.storage import UntypedStorage, is_storage
from flambeau._tensor.tensor import Tensor, shown, wrap

COPY_WARNING = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor"
    "(sourceTensor)."
)


def _shares(data: Any) -> bool:
    """Whether NumPy may look at the memory of `data`."""
    return isinstance(data, np.ndarray) or hasattr(data, "__array_interface__")


PLAIN = frozenset((list, tuple, int, float, bool, np.ndarray, Tensor))


def _is_of_gpu(data: Any) -> bool:
    """Whether it is another library's memory of a GPU."""
    return not isinstance(data, Tensor) and hasattr(data, "__cuda_array_interface__")


def _over_gpu(data: Any) -> Tensor:
    """A tensor over another library's memory of a GPU."""
    check_available("cuda")
    from flambeau._tensor import cuda_arrays

    return cuda_arrays.tensor_over(data)


@composite(
    "as_tensor(Scalar data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    bare=True,
    method=False,
)
@shown("lift_fresh")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor over the memory of `data` where possible (tensors, arrays), else a copy.

    It has the shape of the data.

    >>> import flambeau as torch
    >>> torch.as_tensor([1, 2])
    tensor([1, 2])
    """
    place = check_available(device)
    if data.__class__ not in PLAIN and _is_of_gpu(data):
        data = _over_gpu(data)
        device = place = data.device if device is None else place
    if place is not CPU and not (isinstance(data, Tensor) and device is None):
        given: Any = data if isinstance(data, Tensor) else as_tensor.body(data, dtype, CPU)
        return given.to(place, dtype)
    if isinstance(data, Tensor) and device is not None and not data.is_cpu:
        return data.to(place, dtype)  # type: ignore[attr-defined]
    dtype = dt.as_dtype(dtype)
    if isinstance(data, Tensor):
        return data if dtype in (None, data.dtype) else data.to(dtype)  # type: ignore[attr-defined]
    if is_storage(data):
        return over_storage(data, dtype or getattr(data, "dtype", dt.int64))
    if isinstance(data, np.ndarray):
        shared = from_numpy(data)
        return shared if dtype in (None, shared.dtype) else shared.to(dtype)  # type: ignore[attr-defined]
    return wrap(copy_of(data, dtype))


@composite(
    "asarray(Scalar obj, *, ScalarType? dtype=None, Device? device=None, bool? copy=None, "
    "bool requires_grad=False) -> Tensor",
    bare=True,
    method=False,
)
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Any:  # fmt: skip
    """A tensor from a tensor, array, buffer, DLPack or sequences; shares memory if it can.

    It has the shape of the data.

    `copy=True` always copies; `copy=False` raises where sharing is impossible.

    >>> import flambeau as torch
    >>> import numpy
    >>> array = numpy.array([1, 2])
    >>> shared = torch.asarray(array)
    >>> array[0] = 9
    >>> shared
    tensor([9, 2])
    """
    if requires_grad is not None and not isinstance(requires_grad, bool):
        raise TypeError("asarray(): argument 'requires_grad' must be bool, not "
                        f"{type(requires_grad).__name__}")  # fmt: skip
    place = check_available(device)
    if obj.__class__ not in PLAIN and _is_of_gpu(obj):
        obj = _over_gpu(obj)
        device = place = obj.device if device is None else place
    if place is not CPU or (device is not None and isinstance(obj, Tensor) and not obj.is_cpu):
        return _as_array_on(place, obj, dtype, device, copy, requires_grad)
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    result, shared = _shared(obj, dtype)
    if result is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return finish(copy_of(obj, dtype), bool(requires_grad))
    if isinstance(obj, Tensor) and obj.requires_grad and requires_grad is None:
        warn_once(UNSPECIFIED, 3)
        requires_grad = True
    if dtype not in (None, result.dtype):
        if copy is False:
            raise ValueError(
                f"can't alias tensor with dtype '{_word(result.dtype)}' into dtype "
                f"'{_word(dtype)}'."
            )
        result = result.to(dtype)
    elif copy and shared:
        result = ops.clone(result)
    if requires_grad and not result.requires_grad:
        return result.requires_grad_(True)
    if requires_grad or not result.requires_grad:
        return result
    return result.requires_grad_(False) if result.is_leaf else result.detach()


def _as_array_on(place: Any, obj: Any, dtype: Any, device: Any, copy: bool | None,
                 requires_grad: bool | None) -> Any:  # fmt: skip
    """The same for another device than the CPU, or for a tensor that lies on one."""
    given = obj if isinstance(obj, Tensor) else None
    if given is None or (device is not None and given.device is not place):
        if copy is False:
            raise ValueError(f"can't alias tensor from device '{given.device if given else CPU}' "
                             f"to '{place}'.")  # fmt: skip
        made = asarray.body(obj if given is None else given.to(CPU), dtype=dtype, device=CPU)  # type: ignore[attr-defined]
        result = made.to(place)
    else:
        result = given.to(dtype or given.dtype, copy=bool(copy))  # type: ignore[attr-defined]
    if requires_grad is None or bool(requires_grad) == result.requires_grad:
        return result
    return result.detach().requires_grad_(requires_grad)


UNSPECIFIED = (
    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. "
    "Pass requires_grad=False explicitly to get the old behavior and silence this warning."
)


def _word(element: Any) -> str:
    return str(element.scalar_name)


def _shared(obj: Any, dtype: Any) -> tuple[Any, bool]:
    if isinstance(obj, Tensor):
        return obj, True
    if is_storage(obj):
        return over_storage(obj, dtype or getattr(obj, "dtype", dt.int64)), True
    if isinstance(obj, np.generic):
        return from_numpy(np.asarray(obj)), False
    if _shares(obj):
        return from_numpy(np.asarray(obj)), True
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj), True
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return frombuffer.body(obj, dtype=dtype or dt.default_dtype()), True
    return None, False


@composite(
    "frombuffer(Scalar buffer, *, ScalarType dtype, int count=-1, int offset=0, "
    "bool requires_grad=False) -> Tensor",
    method=False,
)
def frombuffer(buffer: Any, *, dtype: Any = None, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A one-dimensional tensor over the memory of a buffer such as a bytearray.

    Shape [count]; by default, of all that is in the buffer.

    >>> import flambeau as torch
    >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    if dtype is None:
        raise TypeError('frombuffer() missing 1 required positional arguments: "dtype"')
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    dtype = dt.as_dtype(dtype)
    length, size = view.nbytes, dtype.itemsize
    count = _checked_count(length, size, count, offset)
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. "
            "This means you can write to the underlying (supposedly non-writable) buffer using the "
            "tensor. You may want to copy the buffer to protect its data or make it writable "
            "before converting it to a tensor. This type of warning will be suppressed for the "
            "rest of this program.",
            UserWarning,
            stacklevel=2,
        )
    data = np.frombuffer(buffer, np.uint8, count * size, offset).view(dtype.numpy_dtype)
    result = finish(data, requires_grad)
    result._storage = UntypedStorage.exactly(data)
    return result


def _checked_count(length: int, size: int, count: int, offset: int) -> int:
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer "
                         f"length ({length} bytes) minus 1")  # fmt: skip
    if count > 0:
        if offset + count * size > length:
            raise ValueError(
                f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) "
                f"must not be greater than actual buffer length ({length} bytes)"
            )
        return count
    if (length - offset) % size:
        raise ValueError(f"buffer length ({length - offset} bytes) after offset ({offset} bytes) "
                         f"must be a multiple of element size ({size})")  # fmt: skip
    return (length - offset) // size


@composite(
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool pin_memory=False) -> Tensor",
    method=False,
)
def scalar_tensor(s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A 0-dim tensor; of the default type unless told otherwise.

    >>> import flambeau as torch
    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    if pin_memory is not False:
        refuse_pinned("scalar_tensor", pin_memory)
    value = s.item() if isinstance(s, Tensor) else s  # type: ignore[attr-defined]
    numpy_dtype = options(dtype, layout, device)
    return finish(filling(value, numpy_dtype), requires_grad)


@composite(
    "new_tensor(Tensor self, Scalar data, *, ScalarType? dtype=None, Device? device=None, "
    "bool requires_grad=False) -> Tensor",
    bare=True,
    function=False,
)
@shown("lift_fresh")
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None,
               requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A copy of `data` (numbers, lists, an array) with the type and device of this tensor.

    The shape is that of `data`. Of a tensor, `data.detach().clone()` is the copy to prefer.

    >>> import flambeau as torch
    >>> torch.ones(1, dtype=torch.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    prepare(device or self.device)
    if isinstance(data, Tensor):
        warnings.warn(COPY_WARNING, UserWarning, stacklevel=2)
        place = made_on() or CPU
        copied = ops._to_copy(data.detach(), dtype=dtype or self.dtype).to(place)  # type: ignore[attr-defined]
        return finish(copied._data, requires_grad)
    return finish(copy_of(data, dtype or self.dtype), requires_grad)
