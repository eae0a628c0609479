"""Untyped storage: the bytes under one or more tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.device import CPU, device
from flambeau._runtime.cpu import address, owner_of


class Storage:
    """A block of memory that tensors view. `torch.UntypedStorage` is its public name."""

    __slots__ = ("__weakref__", "array", "resizable", "start")

    def __init__(self, size: int | np.ndarray = 0, *, device: Any = None) -> None:
        if isinstance(size, int):
            size = np.zeros(size, np.uint8)
        self.array: np.ndarray = size  # one-dimensional, uint8
        self.resizable = True  # not where others own the memory
        self.start = address(size)

    @classmethod
    def under(cls, data: np.ndarray) -> Storage:
        """All the memory that the owner of `data` holds."""
        result = cls.exactly(owner_of(data))
        result.resizable = True
        return result

    @classmethod
    def exactly(cls, data: np.ndarray) -> Storage:
        """The memory from the first to the last element of `data`, as for foreign arrays."""
        result = cls(_as_bytes(data))
        result.start = address(data)  # an empty array has a place too
        result.resizable = False
        return result

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> Storage:
        """The first `nbytes` bytes of a file, mapped into memory.

        `shared` writes what is stored here back to the file, which is made or lengthened if need
        be; otherwise the file must have these bytes, and writes stay in this process.
        """
        import mmap  # one of few users

        if nbytes == 0:
            return Storage(0)
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
        result = Storage(np.frombuffer(mapped, np.uint8))
        result.resizable = False
        return result

    def holds(self, data: np.ndarray) -> bool:
        """Whether an array lies in this memory."""
        return self.start <= address(data) <= self.start + self.array.size

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self.start

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
        return CPU

    def __getitem__(self, index: Any) -> Any:
        found = self.array[index]
        return Storage(found) if isinstance(index, slice) else int(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as Python ints."""
        return self.array.tolist()  # type: ignore[no-any-return]

    def clone(self) -> Storage:
        """A copy in new memory."""
        return Storage(self.array.copy())

    def copy_(self, source: Storage, non_blocking: bool | None = None) -> Storage:
        """Overwrite with another storage's bytes."""
        self.array[...] = source.array
        return self

    def fill_(self, value: int) -> Storage:
        """Set every byte."""
        self.array[...] = value
        return self

    def __reduce__(self) -> Any:
        return Storage, (self.array,)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Storage:
        return Storage(self.copied(memo))

    def copied(self, memo: dict[Any, Any]) -> np.ndarray:
        """A copy of the memory, the same one for all that is copied together."""
        key = (id(self.array.base), self.start)
        if key not in memo:
            memo[key] = self.array.copy()
        return memo[key]  # type: ignore[no-any-return]

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def resize_(self, size: int) -> Storage:
        """Another size in bytes; tensors that look at the memory already keep the old one.

        Raises RuntimeError where the memory belongs to others: a NumPy array, a mapped file.
        """
        if not self.resizable:
            raise RuntimeError("Trying to resize storage that is not resizable")
        resized = np.zeros(size, np.uint8)
        kept = min(size, self.nbytes())
        resized[:kept] = self.array[:kept]
        self.array, self.start = resized, address(resized)
        return self

    def untyped(self) -> Storage:
        """This storage; it has no element type."""
        return self

    def cpu(self) -> Storage:
        """This storage; it is on the CPU already."""
        return self

    def is_shared(self) -> bool:
        """Whether other processes see this memory."""
        return False

    def __repr__(self) -> str:
        lines = "\n ".join(map(str, self.array[:1000]))
        kind = f"torch.storage.UntypedStorage(device={self.device})"
        return f" {lines}\n[{kind} of size {self.nbytes()}]"


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
