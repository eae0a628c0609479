"""`tf.train.Example` without protobuf: features by name, from and to the wire format.

The messages (protocol buffers, proto3): Example { 1: Features }, Features { 1: map entries },
entry { 1: name, 2: Feature }, Feature { 1: BytesList, 2: FloatList, 3: Int64List }, each list
{ 1: repeated values }; floats and integers may be packed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5


class ExampleError(ValueError):
    """Bytes that are no Example."""


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """A number of up to ten bytes of seven bits, and the place behind it."""
    value = shift = 0
    while shift < 70:
        if place >= len(data):
            raise ExampleError("ends in the middle of a number")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, place
        shift += 7
    raise ExampleError("a number of more than ten bytes")


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """(number, kind, value) of a message's fields; values of kind LENGTH are memory."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, kind, value
            continue
        if kind == LENGTH:
            size, place = _varint(data, place)
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if kind == EIGHT_BYTES else 4
        else:
            raise ExampleError(f"a field of kind {kind}")
        if size > len(data) - place:
            raise ExampleError("ends in the middle of a field")
        yield tag >> 3, kind, data[place : place + size]
        place += size


def _bytes_list(data: memoryview) -> list[bytes]:
    return [bytes(value) for number, kind, value in _fields(data) if (number, kind) == (1, LENGTH)]


def _float_list(data: memoryview) -> np.ndarray:
    parts = [bytes(value) for number, kind, value in _fields(data)
             if number == 1 and kind in (LENGTH, FOUR_BYTES)]  # fmt: skip
    joined = b"".join(parts)
    if len(joined) % 4:
        raise ExampleError(f"{len(joined)} bytes of floats")
    return np.frombuffer(joined, "<f4").astype(np.float32)


def _int64_list(data: memoryview) -> np.ndarray:
    found: list[int] = []
    for number, kind, value in _fields(data):
        if number != 1:
            continue
        if kind == VARINT:
            found.append(value)
        elif kind == LENGTH:
            place = 0
            while place < len(value):
                one, place = _varint(value, place)
                found.append(one)
    return np.array(found, np.uint64).astype(np.int64)


LISTS = {1: _bytes_list, 2: _float_list, 3: _int64_list}


def _feature(data: memoryview) -> Any:
    found: Any = []
    for number, kind, value in _fields(data):
        if kind == LENGTH and number in LISTS:
            found = LISTS[number](value)
    return found


def parse(data: bytes) -> dict[str, Any]:
    """The features of an Example: lists of bytes, float32 arrays, int64 arrays.

    Raises:
        ExampleError: the bytes are no Example.
    """
    found: dict[str, Any] = {}
    for number, kind, features in _fields(memoryview(data)):
        if (number, kind) != (1, LENGTH):
            continue
        for inner, inner_kind, entry in _fields(features):
            if (inner, inner_kind) != (1, LENGTH):
                continue
            name, feature = "", memoryview(b"")
            for part, part_kind, value in _fields(entry):
                if (part, part_kind) == (1, LENGTH):
                    try:
                        name = str(value, "utf-8")
                    except UnicodeDecodeError as error:
                        raise ExampleError("a name that is no text") from error
                elif (part, part_kind) == (2, LENGTH):
                    feature = value
            found[name] = _feature(feature)
    return found


# ---- writing


def _number(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _number(number << 3 | LENGTH) + _number(len(data)) + data


def serialized(features: dict[str, Sequence[bytes] | Sequence[int] | Sequence[float]]) -> bytes:
    """An Example of features: lists of bytes, of integers, or of floats.

    >>> parse(serialized({"label": [3], "name": [b"cat"]}))
    {'label': array([3]), 'name': [b'cat']}
    """
    entries = b""
    for name, values in features.items():
        if all(isinstance(value, bytes) for value in values):
            kind, content = 1, b"".join(_field(1, value) for value in values)  # type: ignore[arg-type]
        elif all(isinstance(value, (int, np.integer)) for value in values):
            kind, content = 3, _field(1, b"".join(_number(int(value)) for value in values))
        else:
            kind, content = 2, _field(1, struct.pack(f"<{len(values)}f", *values))
        entries += _field(1, _field(1, name.encode()) + _field(2, _field(kind, content)))
    return _field(1, entries)
