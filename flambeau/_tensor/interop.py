"""Tensors among other arrays and in Python's own protocols: NumPy ufuncs, DLPack, copy, pickle."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from flambeau._runtime.cpu import address
from flambeau._tensor.conversion import from_numpy
from flambeau._tensor.storage import Storage
from flambeau._tensor.tensor import Tensor, method, new, storage_of


@method
def __array_ufunc__(self: Tensor, ufunc: Any, how: str, *inputs: Any, **kwargs: Any) -> Any:
    """`np.sin(t)`, `ndarray * t`: computed by NumPy on the tensors' memory; the result is a tensor.

    Binary arithmetic goes through the tensor's operator, so that types promote as in torch and
    gradients are recorded.
    """
    if how == "__call__" and len(inputs) == 2 and not kwargs and ufunc.__name__ in REFLECTED:
        name, reflected = REFLECTED[ufunc.__name__]
        if isinstance(inputs[0], Tensor):
            return getattr(Tensor, name)(*inputs)
        left = _tensor(np.asarray(inputs[0]))
        return getattr(Tensor, name)(left, inputs[1])
    arrays = [_plain(value) for value in inputs]
    if "out" in kwargs:
        kwargs["out"] = tuple(_plain(value) for value in kwargs["out"])
    result = getattr(ufunc, how)(*arrays, **kwargs)
    if isinstance(result, tuple):
        return tuple(_tensor(part) for part in result)
    return _tensor(result)


REFLECTED = {
    "add": ("__add__", "__radd__"), "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"), "divide": ("__truediv__", "__rtruediv__"),
    "matmul": ("__matmul__", "__rmatmul__"), "power": ("__pow__", "__rpow__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"), "remainder": ("__mod__", "__rmod__"),
    "equal": ("__eq__", "__eq__"), "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"), "greater_equal": ("__ge__", "__le__"),
}  # fmt: skip


def _plain(value: Any) -> Any:
    return value.__array__() if isinstance(value, Tensor) else value


def _tensor(value: Any) -> Any:
    return from_numpy(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


@method
def __dlpack__(self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
               copy: bool | None = None) -> Any:  # fmt: skip
    """A DLPack capsule over this tensor's memory."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return self._data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device,
                                 copy=copy)  # fmt: skip


@method
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """(1, 0): the CPU."""
    return self._data.__dlpack_device__()  # type: ignore[return-value]


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of anything that speaks DLPack."""
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            f"from_dlpack(): {type(ext_tensor).__name__} has no __dlpack__ method; bare capsules "
            "are not implemented in flambeau 0.1"
        )
    array = np.from_dlpack(ext_tensor) if copy is None else np.from_dlpack(ext_tensor, copy=copy)
    if not array.flags.writeable:
        array = np.array(array)
    return from_numpy(array)


def to_dlpack(tensor: Tensor) -> Any:
    """The DLPack capsule of a tensor."""
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
    result._data = copied_memory(self, memo)
    result._requires_grad = self._requires_grad
    result._version_count = 1  # it counts as having been pointed to its memory
    if self._grad is not None:
        result._grad = copy.deepcopy(self._grad, memo)
    for name, value in self.__dict__.items():
        if name not in FIELDS:
            result.__dict__[name] = copy.deepcopy(value, memo)
    return result  # type: ignore[no-any-return]


FIELDS = frozenset(name for name in Tensor.__annotations__)


def copied_memory(tensor: Tensor, memo: dict[int, Any]) -> np.ndarray:
    """The same view of a copy of the storage; tensors that shared memory still do."""
    storage = storage_of(tensor)
    copied = storage.copied(memo)
    data = tensor._data
    if data.size == 0:
        return data.copy()
    offset = data.__array_interface__["data"][0] - storage.start
    return np.ndarray(data.shape, data.dtype, copied, offset, data.strides)


def rebuild(
    memory: np.ndarray, place: tuple[Any, ...], requires_grad: bool, cls: type, state: Any
) -> Tensor:
    """Pickle's way back to a tensor: `place` holds dtype, shape, strides and offset, in bytes."""
    result: Any = new(cls)
    dtype, shape, strides, offset = place
    storage = result._storage = Storage(memory)
    result._data = np.ndarray(shape, dtype.numpy_dtype, storage.array, offset, strides)
    result._requires_grad = requires_grad
    result._version_count = 1  # it counts as having been pointed to its memory
    result.__dict__.update(state)
    return result  # type: ignore[no-any-return]


@method
def __reduce_ex__(self: Tensor, protocol: Any) -> Any:
    state = {k: v for k, v in self.__dict__.items() if k not in FIELDS}
    data, storage = self._data, storage_of(self)
    offset = address(data) - storage.start if data.size else 0
    place = (self.dtype, data.shape, data.strides, offset)
    # an array of its own: in a plain pickle, as torch has it, views do not share memory
    return rebuild, (storage.array[:], place, self.requires_grad, type(self), state)
