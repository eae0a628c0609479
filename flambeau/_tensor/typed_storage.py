"""Typed storages, PyTorch's older way to look at the memory under a tensor: `tensor.storage()`.

A `TypedStorage` is an untyped one and an element type. `FloatStorage` and its like are makers of
typed storages, and classes for `isinstance`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import device as Device
from flambeau._core.settings import warn_once
from flambeau._tensor.storage import Storage
from flambeau._tensor.tensor import Tensor, storage_of

CLASS_NAMES = {
    entry: f"{entry.scalar_name}Storage"
    for entry in (
        dt.float64, dt.float32, dt.float16, dt.bfloat16, dt.int64, dt.int32, dt.int16, dt.int8,
        dt.uint8, dt.bool_, dt.complex128, dt.complex64,
    )
}  # fmt: skip
"""The element types that have a storage class, and its name; `torch.float8` & co. have none."""

CONVERSIONS = {
    "double": dt.float64, "float": dt.float32, "half": dt.float16, "bfloat16": dt.bfloat16,
    "long": dt.int64, "int": dt.int32, "short": dt.int16, "char": dt.int8, "byte": dt.uint8,
    "bool": dt.bool_, "complex_double": dt.complex128, "complex_float": dt.complex64,
}  # fmt: skip


DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
    "only storage class. This should only matter to you if you are using storages directly.  To "
    "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)


def warn_deprecated() -> None:
    """Torch's word against typed storages."""
    warn_once(DEPRECATED, 3)


class TypedStorage:
    """A storage whose elements have a type.

    Args:
        data: a number of elements, or a sequence of values; left out, the storage is empty.
        wrap_storage: the untyped storage to look at; excludes `data` and `device`.
        dtype: the element type; left out, PyTorch's default type.
        device: where the memory is.
    """

    def __init__(
        self,
        *data: Any,
        wrap_storage: Storage | None = None,
        dtype: dt.dtype | None = None,
        device: Any = None,
    ) -> None:
        warn_deprecated()
        if wrap_storage is None:
            self.dtype = dtype or dt.default_dtype()
            self._untyped_storage = _new_memory(type(self).__name__, data, self.dtype)
            return
        if data or device is not None:
            raise RuntimeError(
                f"{type(self).__name__}.__init__ received an invalid combination of arguments: "
                "'wrap_storage' excludes positional arguments and 'device'"
            )
        if not isinstance(wrap_storage, Storage):
            raise TypeError(
                f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
            )
        if dtype is None:
            raise RuntimeError("Argument 'dtype' must be specified")
        self.dtype, self._untyped_storage = dtype, wrap_storage

    @property
    def _elements(self) -> np.ndarray:
        """The elements, as an array over the memory."""
        array = self._untyped_storage.array
        size = self.dtype.itemsize
        return array[: array.size // size * size].view(self.dtype.numpy_dtype)

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self._untyped_storage.device

    is_cuda = is_hpu = is_sparse = False

    def untyped(self) -> Storage:
        """The storage without a type."""
        return self._untyped_storage

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int:
        """The index of the device; -1 for the CPU."""
        return -1 if self.device.index is None else self.device.index

    def pickle_storage_type(self) -> str:
        """The name of the storage class of this element type. KeyError where there is none."""
        return CLASS_NAMES[self.dtype]

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class, or this storage's values in another element type."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        return self._converted(dtype if isinstance(dtype, dt.dtype) else dtype.dtype)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, int | slice):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._elements[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._elements.tolist()  # type: ignore[no-any-return]

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Overwrite with the values of another storage, converted to this one's type."""
        elements = source._elements if isinstance(source, TypedStorage) else source.array
        self._elements[...] = elements.astype(self.dtype.numpy_dtype)
        return self

    def clone(self) -> TypedStorage:
        """A copy in new memory."""
        return wrap_typed(self._untyped_storage.clone(), self.dtype)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        known = memo.get(id(self))
        if known is None:
            copied = copy.deepcopy(self._untyped_storage, memo)
            known = memo[id(self)] = wrap_typed(copied, self.dtype)
        return known  # type: ignore[no-any-return]

    def cpu(self) -> TypedStorage:
        """A storage on the CPU, over the same memory."""
        return wrap_typed(self._untyped_storage, self.dtype)

    def is_shared(self) -> bool:
        """Whether other processes see this memory."""
        return self._untyped_storage.is_shared()

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned for a GPU."""
        return False

    def _converted(self, dtype: dt.dtype) -> TypedStorage:
        elements = self._elements.astype(dtype.numpy_dtype)
        return wrap_typed(Storage(elements.view(np.uint8)), dtype)

    def __repr__(self) -> str:
        values = "\n".join(f" {value}" for value in self._elements[:1000].tolist())
        return (
            f"{values}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
            f"of size {self.size()}]"
        )


def _converter(name: str, dtype: dt.dtype) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._converted(dtype)

    convert.__name__ = name
    convert.__doc__ = f"The values as {dtype}."
    return convert


for _name, _dtype in CONVERSIONS.items():
    setattr(TypedStorage, _name, _converter(_name, _dtype))


def wrap_typed(storage: Storage, dtype: dt.dtype) -> TypedStorage:
    """A typed look at a storage, without the warning for users."""
    result = object.__new__(TypedStorage)
    result.dtype, result._untyped_storage = dtype, storage
    return result


def _new_memory(name: str, data: tuple[Any, ...], dtype: dt.dtype) -> Storage:
    if len(data) > 1:
        raise RuntimeError(
            f"{name} received an invalid combination of arguments: at most one may be positional"
        )
    if not data:
        return Storage(0)
    if isinstance(data[0], int):
        return Storage(data[0] * dtype.itemsize)
    if isinstance(data[0], str) or not hasattr(data[0], "__len__"):
        raise TypeError(f"Argument type not recognized: {type(data[0])}")
    return Storage(np.array(list(data[0]), dtype.numpy_dtype).view(np.uint8))


class _LegacyMeta(type):
    """`isinstance(x, FloatStorage)`: a typed storage with float32 elements."""

    dtype: dt.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


def _legacy_class(name: str, dtype: dt.dtype) -> Any:
    def make(cls: Any, *data: Any, wrap_storage: Storage | None = None) -> TypedStorage:
        warn_deprecated()
        return wrap_typed(wrap_storage or _new_memory(name, data, dtype), dtype)

    doc = f"Makes typed storages of {dtype} elements."
    namespace = {"__new__": make, "dtype": dtype, "__doc__": doc, "__module__": "torch"}
    return _LegacyMeta(name, (), namespace)


LEGACY_CLASSES = {name: _legacy_class(name, dtype) for dtype, name in CLASS_NAMES.items()}
globals().update(LEGACY_CLASSES)


def storage_under(tensor: Tensor) -> TypedStorage:
    """`tensor.storage()`."""
    warn_deprecated()
    return wrap_typed(storage_of(tensor), tensor.dtype)


def class_under(tensor: Tensor) -> Any:
    """`tensor.storage_type()`."""
    return LEGACY_CLASSES[CLASS_NAMES[tensor.dtype]]
