"""`safe_open`: a .safetensors file whose tensors are read when they are asked for."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._core.device import check_available, device
from flambeau._runtime.cpu import address
from flambeau._tensor.tensor import wrap
from flambeau.serialization.archive import map_file
from flambeau.serialization.file_bytes import bytes_of_file
from flambeau.serialization.safetensors.dtypes import dtype_of
from flambeau.serialization.safetensors.header import (
    Header,
    SafetensorError,
    TensorInfo,
    parse_header,
)
from flambeau.serialization.storages import swap_bytes

FRAMEWORKS = {
    "pt": "torch", "torch": "torch", "pytorch": "torch", "np": "numpy", "numpy": "numpy",
}  # fmt: skip
OTHER_FRAMEWORKS = frozenset(("tf", "tensorflow", "jax", "flax", "mlx", "paddle", "paddlepaddle"))
BACKENDS = ("mmap", "pread")

# The bytes of one tensor, as a flat uint8 array that nothing else writes to.
ReadBytes = Callable[[int, int], np.ndarray]


class safe_open:
    """A file opened for reading: its header is checked at once, its tensors come one by one.

    Args:
        filename: a path.
        framework: "pt" (also "torch", "pytorch") for tensors, "np" ("numpy") for arrays.
        device: where tensors go: the name of a device, or its number among the CUDA devices.
        backend: "mmap" views the file: a slice touches only the pages that it needs, and writes
            stay private to the process. "pread" reads each tensor into memory of its own.

    Raises:
        FileNotFoundError: there is no such file.
        SafetensorError: the file breaks a rule of the format, or an argument is unknown.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str,
        device: str | int | None = "cpu",
        *,
        backend: str = "mmap",
    ) -> None:
        self._wrap = _wrapper(framework)
        _check_device(device)
        if backend not in BACKENDS:
            raise SafetensorError(
                f'backend "{backend}" is invalid (expected one of: "mmap", "pread")'
            )
        path = os.fspath(filename)
        if not Path(path).exists():
            raise FileNotFoundError(f"No such file or directory: {path}")
        content = bytes_of_file(path)
        self._open_header: Header | None = parse_header(content)
        is_mapped = backend == "mmap"
        self._read = _mapped(map_file(path, mmap.ACCESS_COPY)) if is_mapped else _read(content)

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._header.tensors)

    def offset_keys(self) -> list[str]:
        """The names of all tensors, in the order of their bytes."""
        return list(self._header.tensors)

    def metadata(self) -> dict[str, str] | None:
        """The texts that the file keeps beside its tensors; None if it has no place for them."""
        return self._header.metadata

    def get_tensor(self, name: str) -> Any:
        """One tensor, in a storage of its own."""
        info = self._info(name)
        return self._wrap(read_array(info, self._header.data_start, self._read))

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name, in the order of their bytes."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> TensorSlice:
        """A stand-in for a tensor, to be indexed: `file.get_slice("weight")[:, ::8]`."""
        return TensorSlice(self, self._info(name))

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: object) -> None:
        # Tensors that were handed out keep the mapping alive.
        self._open_header = None

    @property
    def _header(self) -> Header:
        if self._open_header is None:
            raise SafetensorError("File is closed")
        return self._open_header

    def _info(self, name: str) -> TensorInfo:
        info = self._header.tensors.get(name)
        if info is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return info


class TensorSlice:
    """One tensor of an open file, read by indexing."""

    def __init__(self, file: safe_open, info: TensorInfo) -> None:
        self._file = file
        self._info = info

    def get_shape(self) -> list[int]:
        """The sizes of the whole tensor."""
        return list(self._info.shape)

    def get_dtype(self) -> str:
        """The dtype by its name in the format, such as "BF16"."""
        return self._info.dtype

    def __getitem__(self, index: Any) -> Any:
        return self._file.get_tensor(self._info.name)[index]


def read_array(info: TensorInfo, data_start: int, read: ReadBytes) -> np.ndarray:
    """The elements of a tensor in this machine's byte order; the format's is little-endian.

    What does not lie at a multiple of its element's size, as in files whose header is not padded,
    is copied.
    """
    dtype = dtype_of(info)
    flat = read(data_start + info.start, info.end - info.start)
    if address(flat) % dtype.itemsize:
        flat = flat.copy()
    if sys.byteorder == "big":
        swap_bytes(flat, dtype)
    return flat.view(dtype.numpy_dtype).reshape(info.shape)


def _mapped(mapped: Any) -> ReadBytes:
    return lambda start, size: np.frombuffer(mapped, np.uint8, size, start if size else 0)


def _read(content: Any) -> ReadBytes:
    def read(start: int, size: int) -> np.ndarray:
        return np.frombuffer(content[start : start + size], np.uint8).copy()

    return read


def _wrapper(framework: str) -> Callable[[np.ndarray], Any]:
    if framework in OTHER_FRAMEWORKS:
        raise NotImplementedError(f"safe_open: framework {framework} is not supported by flambeau")
    if framework not in FRAMEWORKS:
        raise SafetensorError(f"framework {framework} is invalid")
    return wrap if FRAMEWORKS[framework] == "torch" else np.asarray


def _check_device(place: Any) -> None:
    if place is None:
        return
    if not isinstance(place, str | int):
        raise SafetensorError(f"device {place!r} is invalid")
    try:
        wanted = device(place)
    except RuntimeError:
        raise SafetensorError(f"device {place} is invalid") from None
    if wanted.type == "meta":
        raise SafetensorError(f"device {place} is invalid")
    check_available(wanted)
