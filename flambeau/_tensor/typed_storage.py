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
from flambeau._core.device import META, check_available
from flambeau._core.device import device as Device
from flambeau._core.doc_text import with_example
from flambeau._core.parts import real_part
from flambeau._core.settings import warn_once
from flambeau._tensor.storage import UntypedStorage, takes
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
    **{name: element for name, element in dt.CASTS.items() if not element.is_complex},
    "complex_double": dt.complex128, "complex_float": dt.complex64,
}  # fmt: skip


DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
    "only storage class. This should only matter to you if you are using storages directly.  To "
    "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)


def warn_deprecated() -> None:
    """Torch's word against typed storages."""
    warn_once(DEPRECATED, 3)


INIT = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
)
NO_POSITIONAL = "No positional arguments should be given when using 'wrap_storage'"


ANY_TYPE = "TypedStorage.from_buffer"


class TypedStorage:
    """A storage whose elements have a type.

    Args:
        data: a number of elements, or a sequence of values; left out, the storage is empty.
        wrap_storage: the untyped storage to look at; excludes `data` and `device`.
        dtype: the element type; left out, PyTorch's default type.
        device: where the memory is.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # storages with types are deprecated
    ...     storage = torch.ones(3).storage()
    ...     values = storage.tolist()
    >>> values
    [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        *data: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dt.dtype | None = None,
        device: Any = None,
    ) -> None:
        warn_deprecated()
        if wrap_storage is None:
            self.dtype = dt.default_dtype() if dtype is None else dtype
            self._untyped_storage = _new_memory(INIT, data, self.dtype, device)
            return
        if data:
            raise RuntimeError(INIT + NO_POSITIONAL)
        if dtype is None:
            raise RuntimeError(INIT + "Argument 'dtype' must be specified")
        if not isinstance(dtype, dt.dtype):
            raise TypeError(INIT + f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        if device is not None:
            raise RuntimeError(
                INIT + "Argument 'device' should not be specified when 'wrap_storage' is given"
            )
        _check_untyped(INIT, wrap_storage)
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

    is_cuda = is_hpu = is_xpu = is_sparse = False

    @property
    def _cdata(self) -> int:
        """A number that tells the memory from that of other storages."""
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
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

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

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
            name = None if self.device is META else CLASS_NAMES.get(self.dtype)
            return f"torch.{name}" if name else "torch.storage.TypedStorage"
        if isinstance(dtype, str):
            dtype = LEGACY_CLASSES[dtype.rpartition(".")[2]]
        return self._converted(dtype if isinstance(dtype, dt.dtype) else dtype.dtype)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._untyped_storage.numbers()
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, int | slice):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, TypedStorage | UntypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        if not isinstance(value, int | float | complex | np.generic | Tensor):
            kind = CLASS_NAMES[self.dtype].replace("Storage", "Tensor")
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.{kind}")
        if isinstance(index, int) and not -self.size() <= index < self.size():
            raise IndexError(
                f"index {index} is out of bounds for dimension 0 with size {self.size()}"
            )
        if self.device is not META:
            self._elements[index] = value.item() if isinstance(value, Tensor) else value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        self._untyped_storage.numbers()
        return self._elements.tolist()  # type: ignore[no-any-return]

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Overwrite with the values of another storage, converted to this one's type."""
        elements = source._elements if isinstance(source, TypedStorage) else source.array
        if takes(self, source, elements.size == self.size()):
            self._elements[...] = elements.astype(self.dtype.numpy_dtype)
        return self

    def resize_(self, size: int) -> None:
        """Another number of elements; tensors that look at the memory already keep the old one."""
        self._untyped_storage.resize_(size * self.element_size())

    def resizable(self) -> bool:
        """Whether the memory may get another size: not where it is others'."""
        return self._untyped_storage.is_ours

    @property
    def filename(self) -> str | None:
        """The mapped file, if it is one."""
        return self._untyped_storage.filename

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """This storage's memory, if it is asked for where it is."""
        return wrap_typed(self._untyped_storage.to(device=device), self.dtype)

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
        """A copy of the elements of a buffer; `byte_order` says how they stand there.

        Args:
            buffer: bytes, a bytearray, anything with Python's buffer protocol.
            args, options: `byte_order`, `count`, `offset`, as `UntypedStorage.from_buffer` has
                them.
            dtype: the element type; left out, PyTorch's default type.
        """
        warn_deprecated()
        if issubclass(cls, _LegacyStorage):
            for name, given in (("dtype", dtype), ("device", options.get("device"))):
                if given is not None:
                    raise RuntimeError(f"from_buffer: '{name}' can only be specified in "
                                       f"UntypedStorage.from_buffer and {ANY_TYPE}")  # fmt: skip
        element = _element_of(cls, dtype)
        check_available(options.pop("device", None))
        return wrap_typed(
            UntypedStorage.from_buffer(buffer, *args, dtype=element, **options), element
        )

    @classmethod
    def _new_shared(cls, size: int) -> Any:
        """As many elements in memory that other processes can be given, as loaders ask for it."""
        if not issubclass(cls, _LegacyStorage):
            raise TypeError("TypedStorage._new_shared() has no element type; its subclasses do")
        element = _element_of(cls, None)
        return wrap_typed(UntypedStorage._new_shared(size * element.itemsize), element)

    @classmethod
    def from_file(cls, filename: Any, shared: bool, size: int) -> Any:
        """The first `size` elements of a file, mapped into memory."""
        warn_deprecated()
        element = _element_of(cls, None)
        return wrap_typed(
            UntypedStorage.from_file(filename, shared, size * element.itemsize), element
        )

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
        """A storage on the CPU; over the same memory if it is there."""
        return wrap_typed(self._untyped_storage.cpu(), self.dtype)

    def is_shared(self) -> bool:
        """Whether other processes see this memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move to memory that other processes see; tensors that look at it keep the old one."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned for a GPU."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> Any:
        """A copy in memory pinned for a GPU. Raises RuntimeError without one."""
        pinned = self._untyped_storage.pin_memory(device)
        return TypedStorage(wrap_storage=pinned, dtype=self.dtype)

    def _converted(self, dtype: dt.dtype) -> TypedStorage:
        elements = self._elements
        if elements.dtype.kind in "cW" and not dtype.is_complex:
            warn_once("Casting complex values to real discards the imaginary part", 3)
            if dtype is not dt.bool_:
                elements = real_part(elements)
        if self.device is META:
            size = self.size() * dtype.itemsize
            return wrap_typed(UntypedStorage(size, device=META), dtype)
        elements = elements.astype(dtype.numpy_dtype)
        return wrap_typed(UntypedStorage(elements.view(np.uint8)), dtype)

    def __repr__(self) -> str:
        values = "..."
        if self.device.type != "meta":
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


def _of_bytes(name: str) -> Any:
    def convert(self: UntypedStorage) -> TypedStorage:
        return getattr(wrap_typed(self, dt.uint8), name)()  # type: ignore[no-any-return]

    convert.__name__ = name
    convert.__doc__ = f"The bytes as numbers: `{name}` of a storage of bytes."
    return convert


for _name, _dtype in CONVERSIONS.items():
    setattr(TypedStorage, _name, _converter(_name, _dtype))
    setattr(UntypedStorage, _name, _of_bytes(_name))


def wrap_typed(storage: UntypedStorage, dtype: dt.dtype) -> TypedStorage:
    """A typed look at a storage, without the warning for users."""
    result = object.__new__(TypedStorage)
    result.dtype, result._untyped_storage = dtype, storage
    return result


def _check_untyped(where: str, storage: Any) -> None:
    if not isinstance(storage, UntypedStorage):
        raise TypeError(
            where + f"Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}"
        )


def _new_memory(where: str, data: tuple[Any, ...], dtype: Any, device: Any) -> UntypedStorage:
    """Memory for nothing, for a number of elements, or with the values of a sequence."""
    if len(data) > 1:
        raise RuntimeError(where + "Too many positional arguments")
    if not isinstance(dtype, dt.dtype):
        raise TypeError(
            f"tensor(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}"
        )
    if not data:
        return UntypedStorage(0, device=device)
    if isinstance(data[0], (int, np.integer)):
        return UntypedStorage(int(data[0]) * dtype.itemsize, device=device)
    if isinstance(data[0], str):
        raise TypeError(f"new(): invalid data type '{type(data[0]).__name__}'")
    if isinstance(data[0], Tensor) or not hasattr(data[0], "__len__"):
        raise TypeError(where + f"Argument type not recognized: {type(data[0])}")
    made = UntypedStorage(np.array(list(data[0]), dtype.numpy_dtype).view(np.uint8))
    return made if device is None else made.to(device=device)


class _LegacyMeta(type):
    """`isinstance(x, FloatStorage)`: a typed storage with float32 elements."""

    element: dt.dtype | None = None

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.element

    @property
    def dtype(cls) -> dt.dtype | None:
        """The element type."""
        return cls.element


class _LegacyStorage(TypedStorage, metaclass=_LegacyMeta):
    """What the makers of typed storages share."""

    def __new__(cls, *data: Any, wrap_storage: Any = None, **refused: Any) -> Any:
        element = _element_of(cls, None)
        where = (
            f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n"
            " * no arguments\n * (int size)\n * (Sequence data)\n"
            " * (*, UntypedStorage wrap_storage)\n"
        )
        warn_deprecated()
        for name in refused:
            if name not in ("dtype", "device"):
                raise TypeError(
                    f"TypedStorage.__new__() got an unexpected keyword argument '{name}'"
                )
            raise RuntimeError(where + f"Keyword argument '{name}' cannot be specified")
        if wrap_storage is None:
            return wrap_typed(_new_memory(where, data, element, None), element)
        if data:
            raise RuntimeError(where + NO_POSITIONAL)
        _check_untyped(where, wrap_storage)
        return wrap_typed(wrap_storage, element)


def _element_of(cls: Any, dtype: dt.dtype | None) -> dt.dtype:
    if not issubclass(cls, _LegacyStorage):
        return dtype or dt.default_dtype()
    if cls.element is None:
        raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
    return cls.element  # type: ignore[no-any-return]


def _legacy_class(name: str, dtype: dt.dtype) -> Any:
    doc = with_example(
        f"Makes typed storages of {dtype} elements: storages have no shape, only a size.",
        f"issubclass(torch.{name}, torch.TypedStorage)", "True",
    )  # fmt: skip
    namespace = {"element": dtype, "__doc__": doc, "__module__": "torch"}
    return _LegacyMeta(name, (_LegacyStorage,), namespace)


LEGACY_CLASSES = {name: _legacy_class(name, dtype) for dtype, name in CLASS_NAMES.items()}
globals().update(LEGACY_CLASSES)


def default_class() -> Any:
    """`torch.Storage`: of the default type, whatever it is now."""
    return LEGACY_CLASSES[CLASS_NAMES[dt.default_dtype()]]


def storage_under(tensor: Tensor) -> TypedStorage:
    """`tensor.storage()`."""
    warn_deprecated()
    return wrap_typed(storage_of(tensor), tensor.dtype)


def class_under(tensor: Tensor) -> Any:
    """`tensor.storage_type()`."""
    return LEGACY_CLASSES.get(CLASS_NAMES.get(tensor.dtype, ""))
