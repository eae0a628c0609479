"""Writing .safetensors files: the bytes of arrays, in the order that the header announces."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau.serialization.archive_writer import Sink
from flambeau.serialization.atomic import atomic_write
from flambeau.serialization.safetensors.dtypes import code_of
from flambeau.serialization.safetensors.header import SafetensorError, lay_out, write_header
from flambeau.serialization.storages import swap_bytes

Arrays = dict[str, tuple[np.ndarray, dt.dtype]]
"""Contiguous arrays by name, with the element type that the file gives them."""


def write_tensors(sink: Sink, arrays: Arrays, metadata: dict[str, str] | None) -> None:
    """Write a whole file. SafetensorError for what the format cannot express."""
    _check_texts(arrays, "tensor_dict")
    _check_texts([text for pair in (metadata or {}).items() for text in pair], "metadata")
    entries = [(name, code_of(name, dtype), array.shape) for name, (array, dtype) in arrays.items()]
    tensors = lay_out(entries)
    sink.write(write_header(tensors, metadata))
    for info in tensors:
        if info.end > info.start:
            sink.write(_little_endian(*arrays[info.name]).data)


def write_file(
    filename: str | os.PathLike[str], arrays: Arrays, metadata: dict[str, str] | None
) -> None:
    """Write a file that takes over its name when it is complete. SafetensorError if it cannot."""
    path = os.fspath(filename)
    if Path(path).is_dir():
        raise SafetensorError(f"Error while serializing: I/O error: Is a directory: {path}")
    try:
        with atomic_write(path) as sink:
            write_tensors(sink, arrays, metadata)
    except OSError as error:
        raise SafetensorError(f"Error while serializing: I/O error: {error}") from error


def _check_texts(texts: Iterable[Any], what: str) -> None:
    for text in texts:
        if not isinstance(text, str):
            kind = type(text).__name__
            raise TypeError(f"argument '{what}': '{kind}' object is not an instance of 'str'")


def _little_endian(array: np.ndarray, dtype: dt.dtype) -> np.ndarray:
    """The bytes of a contiguous array as the format wants them."""
    flat = array.reshape(-1).view(np.uint8)
    if sys.byteorder == "big":
        flat = flat.copy()
        swap_bytes(flat, dtype)
    return flat
