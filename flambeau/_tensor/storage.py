"""Untyped storage: the bytes under one or more tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau._core.device import CPU, META, check_available, check_pin, device, look_at_pinned
from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text
from flambeau._runtime.cpu import address, owner_of
from flambeau._tensor.device_array import DeviceArray, assigned, from_host, to_host
from flambeau._tensor.meta import NO_DATA, Pages, blank
from flambeau._tensor.pinned_arrays import is_pinned, pinned_copy

if TYPE_CHECKING:
    from flambeau._runtime.shared_memory import SharedMemory


elsewhere: list[Any] = []
"""What copies storages between devices, once there are any."""


def _no_index(index: Any) -> str:
    return f"can't index a torch.UntypedStorage with {type(index).__name__}"


def _check_step(index: slice) -> None:
    if index.step not in (None, 1):
        raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is "
                           "supported")  # fmt: skip


def takes(target: Any, source: Any, is_as_large: bool) -> bool:
    """Whether numbers are copied from one storage to another: both have memory.

    Raises:
        RuntimeError: their sizes differ. NotImplementedError: the numbers do not exist.
    """
    if not is_as_large:
        raise RuntimeError(
            f"size does not match, self was {target.nbytes()} bytes but src was "
            f"{source.nbytes()} bytes"
        )
    if target.device is not META and source.device is META:
        raise NotImplementedError(NO_DATA)
    return target.device is not META


class StorageBase:
    """What is memory, however typed: programs ask `isinstance(x, torch.StorageBase)`.

    >>> import flambeau as torch
    >>> isinstance(torch.ones(3).untyped_storage(), torch.StorageBase)
    True
    """

    __slots__ = ()


class UntypedStorage(StorageBase):
    """A block of memory that tensors view.

    >>> import flambeau as torch
    >>> storage = torch.ones(3).untyped_storage()
    >>> storage.nbytes(), storage.tolist()[:4]
    (12, [0, 0, 128, 63])
    """

    __slots__ = ("__dict__", "__weakref__", "array", "filename", "is_ours", "start")

    is_hpu = is_sparse = is_sparse_csr = False
    shared: SharedMemory | None = None
    """What holds the memory if other processes may see it."""
    in_shared_file = False
    whole: np.ndarray | None = None
    """All the memory that there is, once the size has been changed."""
    has_moved = False
    """Whether tensors may look at memory that was this storage's."""

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        if not isinstance(size, np.ndarray):
            size = _new_bytes(size, device)
        self.array: np.ndarray = size  # one-dimensional, uint8
        self.filename: str | None = None
        self.is_ours = True  # not where others own the memory
        self.start = address(size)

    @classmethod
    def under(cls, data: np.ndarray) -> UntypedStorage:
        """All the memory that the owner of `data` holds."""
        result = cls.exactly(owner_of(data))
        result.is_ours = True
        return result

    @classmethod
    def exactly(cls, data: np.ndarray) -> UntypedStorage:
        """The memory from the first to the last element of `data`, as for foreign arrays."""
        result = cls(_as_bytes(data))
        result.start = address(data)  # an empty array has a place too
        result.is_ours = False
        return result

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first `nbytes` bytes of a file, mapped into memory.

        `shared` writes what is stored here back to the file, which is made or lengthened if need
        be; otherwise the file must have these bytes, and writes stay in this process.
        """
        import mmap  # one of few users

        if nbytes == 0:
            return UntypedStorage(0)
        try:
            file = open(filename, "a+b" if shared else "rb")  # noqa: PTH123, SIM115
        except OSError as error:
            mode = "read-write" if shared else "read-only"
            raise RuntimeError(
                f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
            ) from None
        with file:
            size = file.seek(0, 2)
            if size < nbytes and not shared:
                raise RuntimeError(
                    f"file <{filename}> size <{size}> is smaller than the required mapping size "
                    f"<{nbytes}>"
                )
            if size < nbytes:
                file.truncate(nbytes)
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            mapped = mmap.mmap(file.fileno(), nbytes, access=access)
        result = UntypedStorage(np.frombuffer(mapped, np.uint8))
        result.is_ours, result.in_shared_file = False, shared
        result.filename = str(filename) if shared else None
        return result

    def holds(self, data: np.ndarray) -> bool:
        """Whether an array lies in this memory."""
        return self.start <= address(data) <= self.start + self.array.size

    def has_left(self, data: np.ndarray) -> bool:
        """Whether this was the memory of an array, until it grew."""
        return self.has_moved and not self.holds(data)

    def data_ptr(self) -> int:
        """The address of the first byte; 0 where there are none."""
        return self.start if self.array.size and self.device is not META else 0

    @property
    def _cdata(self) -> int:
        """A number that tells this storage from all others that there are."""
        return id(self)

    def nbytes(self) -> int:
        """The size in bytes."""
        return self.array.size

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Always 1: bytes."""
        return 1

    @property
    def device(self) -> device:
        """Where the memory is."""
        if isinstance(self.array, DeviceArray):
            return self.array.place
        below: Any = owner_of(self.array).base
        return META if isinstance(below, Pages) else CPU

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is a GPU's."""
        return isinstance(self.array, DeviceArray)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            _check_step(index)
            return UntypedStorage(self.array[index])
        if not isinstance(index, (int, np.integer)) or isinstance(index, bool):
            raise TypeError(_no_index(index))
        numbers = self.numbers()
        if not -numbers.size <= index < numbers.size:
            place = index + numbers.size if index < 0 else index
            raise IndexError(f"index {place} out of range for storage of size {numbers.size}")
        return int(numbers[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            _check_step(index)
        elif not isinstance(index, (int, np.integer)) or isinstance(index, bool):
            raise RuntimeError(_no_index(index))
        elif not 0 <= index < self.nbytes():
            raise RuntimeError("out of bounds")
        if not isinstance(value, (int, np.integer)):
            raise RuntimeError("can only set storage content with a int types, but got "
                               f"{type(value).__name__} instead")  # fmt: skip
        numbers = int(value) & 255
        if self.device is META:
            return
        if isinstance(self.array, DeviceArray):
            assigned[0](self.array[index], np.asarray(numbers, np.uint8))
        else:
            self.array[index] = numbers

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as Python ints."""
        return self.numbers().tolist()  # type: ignore[no-any-return]

    def numbers(self) -> np.ndarray:
        """The bytes, to be looked at. Raises NotImplementedError where there are none."""
        if self.device is META:
            raise NotImplementedError("Not available for 'meta' device type")
        return self.array

    def clone(self) -> UntypedStorage:
        """A copy in new memory; without memory, as this one, on the device "meta"."""
        size = self.nbytes()
        return UntypedStorage(blank(size) if self.device is META else self.array.copy())

    __copy__ = clone

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return UntypedStorage(0, device=self.device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class, or this storage where that class is asked for.

        Raises:
            NotImplementedInFlambeau: another class or type is asked for: bytes have none.
        """
        name = "torch.storage.UntypedStorage"
        if dtype is None:
            return name
        if dtype is UntypedStorage or dtype == name:
            return self
        raise NotImplementedInFlambeau(not_implemented_text(f"UntypedStorage.type to {dtype}"))

    def get_device(self) -> int:
        """The index of the device; -1 for the CPU."""
        index = self.device.index
        return -1 if index is None else index

    def resizable(self) -> bool:
        """Whether the memory may get another size: not where it is others'."""
        return self.is_ours

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned for a GPU."""
        look_at_pinned(device)
        return is_pinned(self.array)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """A copy in memory pinned for a GPU, itself if it is there. Raises RuntimeError without a
        GPU."""
        if self.device is META:
            raise TypeError("cannot pin 'torch.storage.UntypedStorage' only CPU memory can be "
                            "pinned")  # fmt: skip
        check_pin(device)
        return self if is_pinned(self.array) else UntypedStorage(pinned_copy(self.array))

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """This storage, or a copy on another device."""
        place = check_available(device)
        if place is self.device:
            return self
        if self.device is META:
            raise NotImplementedError(NO_DATA)
        if place is META:
            return UntypedStorage(self.nbytes(), device=place)
        return elsewhere[0](self, place)  # type: ignore[no-any-return]

    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *,
        dtype: Any = None,
    ) -> UntypedStorage:  # fmt: skip
        """A copy of the elements of a buffer, which stand there in `byte_order`."""
        return UntypedStorage(elements_of(buffer, byte_order, count, offset, dtype).view(np.uint8))

    def byteswap(self, dtype: Any) -> None:
        """Turn round the bytes of each number; complex numbers are two."""
        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        if self.array.size % dtype.itemsize:
            raise RuntimeError(f"the length of data is not a multiple of {dtype.itemsize}")
        if self.device is META:
            return
        numbers = self.array.reshape(-1, size)
        numbers[...] = numbers[:, ::-1].copy()

    def copy_(self, source: UntypedStorage, non_blocking: bool | None = None) -> UntypedStorage:
        """Overwrite with another storage's bytes."""
        if not takes(self, source, source.nbytes() == self.nbytes()):
            return self
        if self.device is source.device is CPU:
            self.array[...] = source.array
        else:
            assigned[0](self.array, source.array)
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        self[:] = value
        return self

    def __reduce__(self) -> Any:
        if isinstance(self.array, DeviceArray):
            return rebuild_on, (str(self.device), to_host(self.array))
        return UntypedStorage, (self.array,)

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        return self.copied_storage(memo)

    def on_host(self) -> np.ndarray:
        """The bytes, for readers on the host: a copy where they lie on a GPU."""
        return to_host(self.array) if isinstance(self.array, DeviceArray) else self.array

    def copied_storage(self, memo: dict[Any, Any]) -> UntypedStorage:
        """A copy, the same one for all that is copied together."""
        key = ("storage", id(self.array.base), self.start)
        if key not in memo:
            memo[key] = UntypedStorage(self.copied(memo))
        return memo[key]  # type: ignore[no-any-return]

    def copied(self, memo: dict[Any, Any]) -> np.ndarray:
        """A copy of the memory, the same one for all that is copied together."""
        key = (id(self.array.base), self.start)
        if key not in memo:
            memo[key] = self.array.copy()
            memo[id(memo[key])] = self.array  # kept: another one could come to lie in its place
        return memo[key]  # type: ignore[no-any-return]

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def resize_(self, size: int) -> UntypedStorage:
        """Another size in bytes, in the same memory as long as that is large enough; else tensors
        that look at the memory already keep the old one.

        Raises RuntimeError where the memory belongs to others: a NumPy array, a mapped file.
        """
        if not self.is_ours:
            raise RuntimeError("Trying to resize storage that is not resizable")
        if self.whole is None:
            self.whole = self.array
        if size > self.whole.size:
            self._move(size)
        self.array = self.whole[:size]
        return self

    def _move(self, size: int) -> None:
        """Larger memory, which begins with what there is."""
        larger: Any = blank(size) if self.device is META else np.zeros(size, np.uint8)
        if self.device is META:
            pass
        elif isinstance(self.array, DeviceArray):
            larger = from_host(larger, self.array.place)
            assigned[0](larger[: self.array.size], self.array)
        else:
            larger[: self.array.size] = self.array
        self.whole, self.start = larger, address(larger)
        self.has_moved = True

    def untyped(self) -> UntypedStorage:
        """This storage; it has no element type."""
        return self

    def cpu(self) -> UntypedStorage:
        """This storage; a copy if it is not on the CPU."""
        return self.to(device=CPU)

    def is_shared(self) -> bool:
        """Whether other processes see this memory."""
        return self.shared is not None or self.in_shared_file

    def share_memory_(self) -> UntypedStorage:
        """Move to memory that other processes see; tensors that look at it keep the old one."""
        if self.device is META:
            raise RuntimeError("_share_fd_: only available on CPU")
        if not self.is_shared():
            from flambeau._runtime.shared_memory import SharedMemory

            self.take_over(SharedMemory(self.nbytes()), copies=True)
        return self

    def take_over(self, shared: SharedMemory, copies: bool = False) -> UntypedStorage:
        """Become this memory; `copies`: with the bytes that are here."""
        if copies:
            shared.array[...] = self.array
        self.shared, self.array, self.start = shared, shared.array, address(shared.array)
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """New memory that other processes see."""
        from flambeau._runtime.shared_memory import SharedMemory

        return cls(0).take_over(SharedMemory(size))

    def __repr__(self) -> str:
        on_meta = self.device is META
        lines = "..." if on_meta else "\n ".join(map(str, self.array[:1000].tolist()))
        kind = f"torch.storage.UntypedStorage(device={self.device})"
        return f"{'' if on_meta else ' '}{lines}\n[{kind} of size {self.nbytes()}]"


def rebuild_on(place: str, array: np.ndarray) -> UntypedStorage:
    """A storage on a device from a pickle."""
    return UntypedStorage(from_host(array, check_available(place)))


def _new_bytes(size: Any, place: Any) -> np.ndarray:
    """So many bytes, or those of a sequence of ints, each modulo 256."""
    if place is not None:
        _check_place(place if isinstance(place, device) else device(place))
    found = check_available(place)
    if found is META:
        return blank(size if isinstance(size, int) else len(_bytes_of(size)))
    if isinstance(size, int):
        data = np.zeros(size, np.uint8)
        return from_host(data, found) if found.type == "cuda" else data  # type: ignore[no-any-return]
    data = _bytes_of(size)
    return from_host(data, found) if found.type == "cuda" else data  # type: ignore[no-any-return]


def _bytes_of(size: Any) -> np.ndarray:
    """The bytes of a sequence of ints, each modulo 256."""
    kind = type(size).__name__
    if not hasattr(size, "__len__"):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {kind}")
    for item in size:
        if not isinstance(item, int):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({kind}), "
                f"but one of the items was of type {type(item).__name__} instead of int"
            )
    return np.array([item & 255 for item in size], np.uint8)


def _check_place(place: device) -> None:
    """Raises for devices that this machine has not, or that have no storages."""
    if place.type == "xpu":
        raise AssertionError("Torch not compiled with XPU enabled")
    if place.type not in ("cpu", "cuda", "meta"):
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {place.type}")
    check_available(place)


def elements_under(storage: Any, wanted: Any, words: str = "") -> np.ndarray:
    """All whole elements of a storage, in its own memory.

    `wanted`: the element type, a torch dtype. A typed storage must be of that type; RuntimeError
    otherwise. `words` end its message.
    """
    found = getattr(storage, "dtype", wanted)
    if found is not wanted:
        kind = f"type {found.scalar_name}" if words else found.scalar_name
        raise RuntimeError(
            f"Expected a Storage of type {wanted.scalar_name} or an UntypedStorage, but got "
            f"{kind}{words}"
        )
    array = getattr(storage, "_untyped_storage", storage).array
    whole = array.size // wanted.itemsize * wanted.itemsize
    return array[:whole].view(wanted.numpy_dtype)  # type: ignore[no-any-return]


ARGUMENT_1 = " for argument 1 'storage'"


def is_storage(obj: Any) -> bool:
    """Whether an object is a storage, untyped or typed."""
    return isinstance(getattr(obj, "_untyped_storage", obj), UntypedStorage)


BYTE_ORDERS = {"little": "<", "big": ">", "native": "="}


def elements_of(
    buffer: Any, byte_order: str | None, count: int, offset: int, dtype: Any
) -> np.ndarray:
    """A copy of a buffer's elements, in this machine's byte order."""
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    element = dtype.numpy_dtype
    if byte_order is None and dtype.itemsize > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    one_byte = dtype.itemsize == 1 and not dtype.is_floating_point and element.kind != "b"
    if byte_order is not None and byte_order not in BYTE_ORDERS and not one_byte:
        raise ValueError(
            f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
        )
    data = np.frombuffer(buffer, np.uint8)
    start, end = _window(data.size, element.itemsize, count, offset)
    part = data[start:end].copy()
    if element.kind == "b":
        return part != 0
    if byte_order == "big":
        number = element.itemsize // 2 if element.kind in "cW" else element.itemsize
        part = np.ascontiguousarray(part.reshape(-1, number)[:, ::-1]).reshape(-1)
    return part.view(element)


def _window(size: int, itemsize: int, count: int, offset: int) -> tuple[int, int]:
    """The first byte that is wanted, and the one behind the last."""
    if not 0 <= offset <= size:
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({size}) , but got "
            f"{offset}"
        )
    if count < 0:
        if (size - offset) % itemsize:
            raise ValueError(
                f"buffer size ({size}) must be a multiple of element size ({itemsize})"
            )
        return offset, size
    if size - offset < count * itemsize:
        raise ValueError(
            f"buffer has only {size - offset} elements after offset {offset}, but specified a size "
            f"of {count}"
        )
    return offset, offset + count * itemsize


def _as_bytes(data: np.ndarray) -> np.ndarray:
    """A flat uint8 view from the first to the last byte that `data` reaches."""
    if data.size == 0:
        return np.empty(0, np.uint8)
    length = data.itemsize + sum((n - 1) * s for n, s in zip(data.shape, data.strides, strict=True))
    if data.flags.c_contiguous:
        return data.reshape(-1).view(np.uint8)
    window = np.lib.stride_tricks.as_strided(
        data, (length // data.itemsize,), (data.itemsize,), writeable=data.flags.writeable
    )
    return window.view(np.uint8)
