"""`safetensors.numpy`: dicts of NumPy arrays to and from .safetensors files.

The element types that NumPy itself lacks are those of `ml_dtypes`: bfloat16 and the float8 kinds.
"""

from __future__ import annotations

import io
import os

import numpy as np

from flambeau._core.dtype import BY_NUMPY
from flambeau.serialization.safetensors import torch
from flambeau.serialization.safetensors.dtypes import CODES
from flambeau.serialization.safetensors.header import SafetensorError
from flambeau.serialization.safetensors.reader import safe_open
from flambeau.serialization.safetensors.writer import Arrays, write_file, write_tensors

__all__ = ["load", "load_file", "save", "save_file"]


def save(tensor_dict: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """The content of a .safetensors file with these arrays. SafetensorError for other dtypes."""
    sink = io.BytesIO()
    write_tensors(sink, _arrays(tensor_dict), metadata)
    return sink.getvalue()


def save_file(
    tensor_dict: dict[str, np.ndarray],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Save arrays under their names; an older file stays whole until the new one is complete."""
    write_file(filename, _arrays(tensor_dict), metadata)


def load(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of a .safetensors file given as bytes, each in memory of its own."""
    return {name: tensor._data for name, tensor in torch.load(data).items()}


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, np.ndarray]:
    """The arrays of a .safetensors file, in the order of their bytes; see `safe_open`."""
    with safe_open(filename, framework="np", backend=backend) as file:
        return file.get_tensors()


def _arrays(tensors: dict[str, np.ndarray]) -> Arrays:
    result = {}
    for name, array in tensors.items():
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        dtype = BY_NUMPY.get(native.dtype)
        if dtype not in CODES:
            known = ", ".join(entry.name for entry in CODES)
            raise SafetensorError(f'Unknown dtype "{array.dtype.name}". Supported dtypes: {known}')
        result[name] = (native.reshape(array.shape), dtype)
    return result
