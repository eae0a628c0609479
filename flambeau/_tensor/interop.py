"""Tensors among other arrays and in Python's own protocols: NumPy ufuncs, DLPack, copy, pickle."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np

from flambeau._core.device import CPU, Cuda, check_available
from flambeau._core.device import device as torch_device
from flambeau._core.modes import grad
from flambeau._runtime.cpu import address, element_strides, over
from flambeau._tensor import meta
from flambeau._tensor.attributes import FIELDS, fields_of, put_in_slots, slots_of
from flambeau._tensor.conversion import from_numpy
from flambeau._tensor.device_array import from_host
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, constructors, method, new, storage_of


@method
def __array_ufunc__(self: Tensor, ufunc: Any, how: str, *inputs: Any, **kwargs: Any) -> Any:
    """`np.sin(t)`, `ndarray * t`: computed by NumPy on the tensors' memory; the result is a tensor,
    of bytes where NumPy's is of bools, as in torch.

    Numbers and other tensors go through the tensor's operator, so that types promote as in torch
    and gradients are recorded; arrays only if they have to: their types are NumPy's.
    """
    if how == "__call__" and len(inputs) == 2 and not kwargs and ufunc.__name__ in OPERATORS:
        result = _operated(ufunc.__name__, *inputs)
        if result is not NotImplemented:
            return result
    arrays = [_plain(value) for value in inputs]
    if "out" in kwargs:
        given = kwargs["out"]
        getattr(ufunc, how)(*arrays, **{**kwargs, "out": tuple(map(_plain, given))})
        return given[0] if len(given) == 1 else given
    result = getattr(ufunc, how)(*arrays, **kwargs)
    if isinstance(result, tuple):
        return tuple(_tensor(part) for part in result)
    return _tensor(result)


COMPARISONS = {
    "equal": ("__eq__", "__eq__"), "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"), "greater_equal": ("__ge__", "__le__"),
}  # fmt: skip
OPERATORS = {
    "add": ("__add__", "__radd__"), "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"), "divide": ("__truediv__", "__rtruediv__"),
    "matmul": ("__matmul__", "__rmatmul__"), "power": ("__pow__", "__rpow__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"), "remainder": ("__mod__", "__rmod__"),
    "bitwise_and": ("__and__", "__rand__"), "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"), "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"), **COMPARISONS,
}  # fmt: skip
"""NumPy's functions that are operators: the tensor's method, and the one for the other side."""
SIGNS = {
    "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@", "power": "** or pow()",
    "floor_divide": "//", "remainder": "%", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip


def _operated(name: str, left: Any, right: Any) -> Any:
    """What a tensor's operator gives; NotImplemented where NumPy is to compute."""
    forward, reflected = OPERATORS[name]
    tensor, other = (left, right) if isinstance(left, Tensor) else (right, left)
    if isinstance(other, np.ndarray):
        learns = tensor.requires_grad and grad.enabled
        if tensor is right and name not in COMPARISONS and tensor.device is not CPU:
            raise TypeError(_no_operator(name))
        if not learns and name not in COMPARISONS and tensor._data.dtype.kind != "V":
            if name == "divide" and tensor is right:
                return tensor.reciprocal() * other  # type: ignore[attr-defined]
            return NotImplemented
        # NumPy hands its scalars over as arrays when it compares
        is_scalar = name in COMPARISONS and not other.ndim
        other = other[()] if is_scalar else _shared(other)
    if tensor is left:
        return getattr(Tensor, forward)(tensor, other)
    if isinstance(other, Tensor):
        return getattr(Tensor, forward)(other, tensor)
    return getattr(Tensor, reflected)(tensor, other)


def _no_operator(name: str) -> str:
    """What Python and NumPy say of an array before a tensor whose memory is not the CPU's."""
    if name == "add":
        return (
            "Concatenation operation is not implemented for NumPy arrays, use np.concatenate() "
            "instead. Please do not rely on this error; it may not be given on all Python "
            "implementations."
        )
    return f"unsupported operand type(s) for {SIGNS[name]}: 'numpy.ndarray' and 'Tensor'"


@method
def __array_wrap__(
    self: Tensor, array: Any, context: Any = None, return_scalar: bool = False
) -> Any:
    """What NumPy's functions make of a tensor, as a tensor; masks become bytes."""
    return _tensor(array)


def _plain(value: Any) -> Any:
    return value.__array__() if isinstance(value, Tensor) else value


def _shared(value: Any) -> Any:
    return from_numpy(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def _tensor(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "b":
        value = value.astype(np.uint8)
    return _shared(value)


@method
def __dlpack__(self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
               copy: bool | None = None) -> Any:  # fmt: skip
    """A DLPack capsule over this tensor's memory."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if not self.is_cuda:
        _check_stream(stream)
    asked = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    if self.is_cuda:
        return _unknown_to_numpy().exported_from_device(self._data, self.dtype, **asked)
    if self._data.dtype.kind == "V" or self._data.dtype.str == "<f1":  # of `ml_dtypes`
        return _unknown_to_numpy().exported(self._data, self.dtype, **asked)
    return self._data.__dlpack__(**asked)


def _check_stream(stream: Any) -> None:
    """Memory of the CPU is in no stream; -1 asks for no waiting."""
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")


@method
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """(1, 0): the CPU; (2, index): a GPU."""
    if self.is_cuda:
        from flambeau._tensor.dlpack_types import DLDeviceType

        return DLDeviceType.kDLCUDA, self.device.index or 0
    return self._data.__dlpack_device__()  # type: ignore[return-value]


@cache
def _unknown_to_numpy() -> Any:
    from flambeau._tensor import dlpack_types  # few need it

    return dlpack_types


INVALID_CAPSULE = (
    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
    "once, so you might have already constructed a tensor from it once."
)


class Capsule:
    """A bare DLPack capsule, as one who speaks the protocol; its memory is the CPU's."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **asked: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of anything that speaks DLPack, or of a capsule.

    >>> import flambeau as torch
    >>> import numpy
    >>> torch.from_dlpack(numpy.arange(3))
    tensor([0, 1, 2])
    """
    source = _source(ext_tensor, device, copy)
    if tuple(source.__dlpack_device__())[0] == GPU or isinstance(source, Capsule):
        found = _on_gpu(source)
        if found is not None:
            return found
    array, dtype = _array_of(source, copy)
    if not array.flags.writeable:
        array = np.array(array)
    result = from_numpy(array)
    if dtype is not None:
        result._data = result._data.view(dtype.numpy_dtype)
    return result


GPU = 2
"""The kind of device, in the standard's numbers."""


def _on_gpu(source: Any) -> Tensor | None:
    """A tensor over memory of a GPU; None where the memory is the CPU's."""
    types = _unknown_to_numpy()
    capsule = source.capsule if isinstance(source, Capsule) else source.__dlpack__()
    index = types.device_of(capsule)
    if index is None:
        return None
    dtype = types.disguised(capsule)
    array: Any = np.asarray(_Writable(np.from_dlpack(Capsule(capsule))))
    if dtype is not None:
        array = array.view(dtype.numpy_dtype)
    from flambeau._tensor.cuda_arrays import over_foreign

    return over_foreign(array, index)


def _source(ext_tensor: Any, device: Any, copy: bool | None) -> Any:
    """What memory is asked of: an object with `__dlpack__`."""
    if not hasattr(ext_tensor, "__dlpack__"):
        if type(ext_tensor).__name__ != "PyCapsule":
            raise RuntimeError(INVALID_CAPSULE)
        if device is not None or copy is not None:
            raise AssertionError(
                "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
            )
        ext_tensor = Capsule(ext_tensor)
    if device is not None:
        _check_place(device)
    if isinstance(ext_tensor, Capsule) and "used" in repr(ext_tensor.capsule):
        raise RuntimeError(INVALID_CAPSULE)
    return ext_tensor


def _array_of(source: Any, copy: bool | None) -> tuple[np.ndarray, Any]:
    """The array over the memory, and the element type where NumPy has no name for it."""
    asked: dict[str, Any] = {} if copy is None else {"copy": copy}
    dtype = None
    try:
        array = np.from_dlpack(source, **asked)
    except (BufferError, RuntimeError):
        source = Capsule(source.__dlpack__())
        dtype = _unknown_to_numpy().disguised(source.capsule)
        if dtype is None:
            raise
        array = np.from_dlpack(source)
        array = array.copy() if copy else array
    if isinstance(source, Capsule) and "versioned" not in repr(source.capsule):
        array = np.asarray(_Writable(array))  # NumPy does not know whether it may, torch writes
    return array, dtype


def _check_place(place: Any) -> None:
    """Raises for a device that memory can't be taken to."""
    if not isinstance(place, str | torch_device):
        raise AssertionError(f"from_dlpack: unsupported device type: {type(place)}")
    if torch_device(place).type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    check_available(place)


class _Writable:
    """An array's memory without the mark that it may not be written to."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        known = array.__array_interface__
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}


def to_dlpack(tensor: Tensor) -> Any:
    """The DLPack capsule of a tensor.

    >>> import flambeau as torch
    >>> torch.from_dlpack(torch.to_dlpack(torch.arange(3)))
    tensor([0, 1, 2])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError("_to_dlpack(): argument 'data' (position 1) must be Tensor, not "
                        f"{type(tensor).__name__}")  # fmt: skip
    return tensor.__dlpack__()  # type: ignore[attr-defined]


@method
def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> Any:
    """The module that implements the array API standard for tensors."""
    import flambeau

    return flambeau


# ---- copy and pickle


@method
def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if self._node is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    result = new(type(self))
    memo[id(self)] = result
    result._data = self._data.copy() if self.is_meta else copied_memory(self, memo)
    if not self.is_meta:
        copied = storage_of(self).copied_storage(memo)
        if self._data.size or copied.holds(result._data):
            result._storage = copied
    result._requires_grad = self._requires_grad
    result._version_count = 1  # it counts as having been pointed to its memory
    if self._grad is not None:
        result._grad = copy.deepcopy(self._grad, memo)
    for name, value in fields_of(self).items():
        if name not in FIELDS:
            fields_of(result)[name] = copy.deepcopy(value, memo)
    if type(self) is not Tensor:
        put_in_slots(result, copy.deepcopy(slots_of(self), memo))
    return result  # type: ignore[no-any-return]


def copied_memory(tensor: Tensor, memo: dict[int, Any]) -> np.ndarray:
    """The same view of a copy of the storage; tensors that shared memory still do."""
    storage = storage_of(tensor)
    copied = storage.copied(memo)
    data = tensor._data
    if not data.size and not storage.holds(data):
        return data.copy()
    offset = address(data) - storage.start
    try:
        return over(copied, data.shape, data.dtype, offset, data.strides)  # type: ignore[no-any-return]
    except ValueError:
        return data.copy()  # without elements, and with strides that NumPy takes for no memory


def rebuild(
    memory: np.ndarray,
    place: tuple[Any, ...],
    requires_grad: bool,
    cls: type,
    state: Any,
    slots: Any = None,
) -> Tensor:
    """Pickle's way back to a tensor: `place` holds dtype, shape, strides and offset, in bytes."""
    result: Any = new(cls)
    dtype, shape, strides, offset = place
    storage = result._storage = UntypedStorage(memory)
    result._data = over(storage.array, shape, dtype.numpy_dtype, offset, strides)
    result._requires_grad = requires_grad
    result._version_count = 1  # it counts as having been pointed to its memory
    result.__dict__.update(state)
    put_in_slots(result, slots or {})
    return result  # type: ignore[no-any-return]


def rebuild_meta(layout: tuple[Any, ...], requires_grad: bool, cls: type, state: Any,
                 slots: Any) -> Tensor:  # fmt: skip
    """The same for a tensor without memory: `layout` holds shape, strides and dtype."""
    result: Any = new(cls)
    shape, strides, dtype = layout
    result._data = meta.empty(shape, strides, dtype.numpy_dtype)
    constructors["expect_meta"]()
    result._requires_grad = requires_grad
    result.__dict__.update(state)
    put_in_slots(result, slots)
    return result  # type: ignore[no-any-return]


def rebuild_on(place: str, function: Any, args: Any) -> Any:
    """A tensor of a GPU from a pickle.

    Raises:
        RuntimeError: there is no GPU.
    """
    if not Cuda.devices():
        raise RuntimeError("Attempting to deserialize object on a CUDA device but "
                           "torch.cuda.is_available() is False. If you are running on a CPU-only "
                           "machine, please use torch.load with map_location=torch.device('cpu') "
                           "to map your storages to the CPU.")  # fmt: skip
    result = function(*args)
    result._data, result._storage = from_host(result._data, check_available(place)), None
    return result


@method
def __reduce_ex__(self: Tensor, protocol: Any) -> Any:
    state = dict(self.__dict__)
    if self.is_meta:
        layout = tuple(self._data.shape), element_strides(self._data), self.dtype
        slots = slots_of(self) if type(self) is not Tensor else {}
        return rebuild_meta, (layout, self.requires_grad, type(self), state, slots)
    if self.is_cuda:
        return rebuild_on, (str(self.device), *self.cpu().__reduce_ex__(protocol)[:2])
    data, storage = self._data, storage_of(self)
    offset = address(data) - storage.start if data.size or storage.holds(data) else 0
    place = (self.dtype, data.shape, data.strides, offset)
    # an array of its own: in a plain pickle, as torch has it, views do not share memory
    slots = slots_of(self) if type(self) is not Tensor else {}
    return rebuild, (storage.array[:], place, self.requires_grad, type(self), state, slots)
