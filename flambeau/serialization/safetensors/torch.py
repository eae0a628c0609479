"""`safetensors.torch`: dicts of tensors to and from .safetensors files.

from flambeau.serialization.safetensors.torch import load_file, save_file

save_file({"weight": torch.zeros(3, 4)}, "model.safetensors")
weight = load_file("model.safetensors")["weight"]
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from flambeau._core.layout import strided
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.serialization.safetensors.header import parse_header
from flambeau.serialization.safetensors.reader import read_array, safe_open
from flambeau.serialization.safetensors.sharing import duplicates, refuse_shared
from flambeau.serialization.safetensors.writer import Arrays, write_file, write_tensors

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The content of a .safetensors file with these tensors, which `load` reads.

    Raises:
        ValueError: something is no tensor, or is not dense and contiguous.
        RuntimeError: tensors share memory.
        SafetensorError: the format has no such dtype.
    """
    sink = io.BytesIO()
    write_tensors(sink, _arrays(tensors), metadata)
    return sink.getvalue()


def save_file(
    tensors: dict[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Save tensors under their names; an older file stays whole until the new one is complete.

    Raises as `save` does, and SafetensorError when the file cannot be written.
    """
    write_file(filename, _arrays(tensors), metadata)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a .safetensors file given as bytes, each in memory of its own."""
    if not isinstance(data, bytes):
        kind = type(data).__name__
        raise TypeError(f"argument 'bytes': '{kind}' object is not an instance of 'bytes'")
    header = parse_header(memoryview(data))

    def read(start: int, size: int) -> np.ndarray:
        return np.frombuffer(data, np.uint8, size, start if size else 0).copy()

    tensors = header.tensors.items()
    return {name: wrap(read_array(info, header.data_start, read)) for name, info in tensors}


def load_file(
    filename: str | os.PathLike[str], device: str | int | None = "cpu", *, backend: str = "mmap"
) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, in the order of their bytes; see `safe_open`."""
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


def load_at(filename: str, map_location: Any) -> dict[str, Tensor]:
    """`load_file` for `torch.load`. RuntimeError if `map_location` names no device."""
    if isinstance(map_location, dict) or callable(map_location):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. "
            "Use a device string or torch.device instead."
        )
    return load_file(filename, "cpu" if map_location is None else str(map_location))


def save_model(
    model: Any,
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Save a module's state; of tensors that share memory, one, and the metadata names the rest.

    Args:
        force_contiguous: save tensors that are not contiguous as contiguous copies.
    """
    state = model.state_dict()
    for kept, others in duplicates(state).items():
        for name in others:
            metadata = {name: kept, **(metadata or {})}
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(dict(state), filename, metadata)
    except ValueError as error:
        hint = (
            " Or use save_model(..., force_contiguous=True), read the docs for potential caveats."
        )
        raise ValueError(str(error) + hint) from None


def load_model(
    model: Any,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int | None = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[set[str], list[str]]:
    """Load a file of `save_model` into a module: names missing from it, names it did not expect.

    RuntimeError if there are any and `strict` is True.
    """
    state = load_file(filename, device=device, backend=backend)
    left_out = duplicates(model.state_dict(), preferred=state)
    absent, unexpected = model.load_state_dict(state, strict=False)
    missing = set(absent)
    for others in left_out.values():
        for name in others:
            if name in missing:
                missing.remove(name)
            else:
                unexpected.append(name)
    if strict and (missing or unexpected):
        raise RuntimeError(_strict_message(type(model).__name__, missing, unexpected))
    return missing, unexpected


def _strict_message(model: str, missing: set[str], unexpected: list[str]) -> str:
    lines = [f"Error(s) in loading state_dict for {model}:"]
    for word, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            quoted = ", ".join(f'"{name}"' for name in sorted(names))
            lines.append(f"    {word} key(s) in state_dict: {quoted}")
    return "\n".join(lines)


def _arrays(tensors: Any) -> Arrays:
    """The arrays under tensors, once all of them can be saved."""
    _check_tensors(tensors)
    refuse_shared(tensors)
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. "
                "It either means you are trying to save tensors which are reference of each other "
                "in which case it's recommended to save only the full tensors, and reslice at load "
                "time, or simply call `.contiguous()` on your tensor to pack it before saving."
            )
    return {name: (tensor._data, tensor.dtype) for name, tensor in tensors.items()}


def _check_tensors(tensors: Any) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}"
            )
    sparse = [name for name, tensor in tensors.items() if tensor.layout is not strided]
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not "
            "support. You can make it a dense tensor before saving with `.to_dense()` but be aware "
            "this might make a much larger file than needed."
        )
