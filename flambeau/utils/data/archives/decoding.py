"""From the bytes of a field to a value, by the field's extension."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._ops.table.namespace import ops

Decoder = Callable[[bytes], Any]


def image(data: bytes) -> Any:
    """An image as uint8 [3, H, W], red, green, blue."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as opened:
        colours = opened if opened.mode == "RGB" else opened.convert("RGB")
        # band by band: a quarter less time in all than one array, transposed by NumPy;
        # benchmarks/archives.py
        planes = bytearray().join([band.tobytes() for band in colours.split()])
        width, height = colours.size
    return ops.as_tensor(np.frombuffer(planes, np.uint8).reshape(3, height, width))


def array(data: bytes) -> Any:
    """A tensor from a `.npy` file; arrays of Python objects are refused."""
    return ops.as_tensor(np.load(io.BytesIO(data), allow_pickle=False))


def number(data: bytes) -> int:
    """An integer, as text."""
    return int(data)


def text(data: bytes) -> str:
    """Text in UTF-8."""
    return data.decode("utf-8")


def tensors(data: bytes) -> Any:
    """A dict of tensors from a `.safetensors` file."""
    from flambeau.serialization.safetensors.torch import load

    return load(data)


DECODERS: dict[str, Decoder] = {
    **dict.fromkeys(("jpg", "jpeg", "png", "bmp", "gif", "webp", "ppm", "pgm"), image),
    "npy": array,
    "json": json.loads,
    **dict.fromkeys(("cls", "cls2", "id", "index"), number),
    **dict.fromkeys(("txt", "text", "transcript"), text),
    "safetensors": tensors,
}
"""What becomes of a field by its extension; fields of others stay bytes."""


def decoder_of(field: str, decoders: dict[str, Decoder]) -> Decoder | None:
    """The decoder of a field: of its whole extension (`seg.png`), or of the last part of it."""
    return decoders.get(field) or decoders.get(field.rpartition(".")[2])
