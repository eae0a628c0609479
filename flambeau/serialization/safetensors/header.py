"""The header of a .safetensors file, parsed and written without trust.

The format (https://github.com/huggingface/safetensors#format): eight bytes, little-endian, with the
length N of the header; N bytes of JSON, padded with spaces; then the bytes of all tensors. The JSON
is one object: `{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}`, and
`"__metadata__"` may map texts to texts. Offsets count from the end of the header.

The grammar is small, so the parser is too: it never nests, needs no memory that the header does
not justify, and refuses what two readers could understand differently, such as a name given
twice, which the reference implementation lets pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

LENGTH_BYTES = 8
MAX_HEADER = 100_000_000
MAX_DIMS = 64  # NumPy's limit
LARGEST = 2**64 - 1
METADATA = "__metadata__"

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
"""Bits of an element by the name of its dtype, in the format's own order."""


class SafetensorError(Exception):
    """A file or a request that the format does not allow."""


class TensorInfo(NamedTuple):
    """One tensor as the header describes it; `start` and `end` count from the end of the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """The tensors by name, in the order of their bytes, and where in the file the bytes begin."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str] | None
    data_start: int


def error(detail: str) -> SafetensorError:
    """The error for a file that cannot be read, in the words of the reference."""
    return SafetensorError(f"Error while deserializing: {detail}")


def parse_header(data: Any) -> Header:
    """The header of a whole file, every number checked against the file. SafetensorError."""
    if len(data) < LENGTH_BYTES:
        raise error("header too small")
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length > MAX_HEADER:
        raise error("header too large")
    data_start = LENGTH_BYTES + length
    if data_start > len(data):
        raise error("invalid header length")
    parser = _Parser(bytes(data[LENGTH_BYTES:data_start]))
    tensors, metadata = parser.run()
    tensors.sort(key=lambda info: (info.start, info.end))
    check_layout(tensors, len(data) - data_start)
    return Header({info.name: info for info in tensors}, metadata, data_start)


def check_layout(tensors: Iterable[TensorInfo], data_size: int) -> None:
    """Sizes equal to shape times element, no holes, no overlaps, nothing left over."""
    position = 0
    for info in tensors:
        if info.start != position or info.end < info.start:
            raise error(f"invalid offset for tensor `{info.name}`")
        if info.end - info.start != size_in_bytes(info):
            raise error(
                f"invalid shape, data type, or offset for tensor `{info.name}`: {info.dtype} "
                f"{list(info.shape)} takes {size_in_bytes(info)} bytes, "
                f"not {info.end - info.start}"
            )
        position = info.end
    if position != data_size:
        raise error(
            f"incomplete metadata, file not fully covered: the tensors take {position} bytes, "
            f"the file has {data_size}"
        )


def size_in_bytes(info: TensorInfo) -> int:
    """The bytes that the shape and the dtype ask for."""
    # An empty tensor of sizes 0 x 2**62 x 2**62 has no strides that fit 64 bits.
    if prod(size or 1 for size in info.shape) * BITS[info.dtype] > LARGEST:
        raise error("overflow computing buffer size from shape and/or element type")
    count = prod(info.shape)
    if count * BITS[info.dtype] % 8:
        raise error(f"the {count} elements of tensor `{info.name}` fill no whole bytes")
    return count * BITS[info.dtype] // 8


# ---- reading

# Possessive repeats (*+) never go back, so that no text makes the matcher slow or hungry.
SPACE = rb"[ \t\r\n]*+"
STRING = re.compile(SPACE + rb'("[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")')
NUMBER = re.compile(SPACE + rb"((?:0|[1-9][0-9]{0,19}+)(?![0-9.eE+-]))")
MARKS = {mark: re.compile(SPACE + re.escape(mark)) for mark in (b"{", b"}", b"[", b"]", b":", b",")}
END = re.compile(SPACE + rb"\Z")
FIELDS = ("dtype", "shape", "data_offsets")
# A tensor as writers put it, read by one match instead of some twenty
# (benchmarks/safetensors_files.py, "2000 small tensors").
COUNT = rb"(?:0|[1-9][0-9]{0,17})"
USUAL = re.compile(
    rb'\{"dtype":"([A-Z0-9_]{1,16})","shape":\[(|%b(?:,%b){0,31})\],"data_offsets":\[(%b),(%b)\]\}'
    % ((COUNT,) * 4)
)


class _Parser:
    """A cursor over the JSON text."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.position = 0

    def run(self) -> tuple[list[TensorInfo], dict[str, str] | None]:
        """All of the header. A name that comes twice is an error."""
        tensors: dict[str, TensorInfo] = {}
        metadata: dict[str, str] | None = None
        for name in self._members("the header"):
            if name == METADATA:
                if metadata is not None:
                    raise self._wrong(f"duplicate field `{METADATA}`")
                metadata = self._metadata()
            elif name in tensors:
                raise self._wrong(f"duplicate tensor `{name}`")
            else:
                tensors[name] = self._tensor(name)
        if END.match(self.text, self.position) is None:
            raise self._wrong("trailing characters")
        return list(tensors.values()), metadata

    def _members(self, what: str) -> Iterator[str]:
        """The keys of an object; the caller reads each value before it asks for the next key."""
        self._take(b"{", f"expected an object for {what}")
        if self._accept(b"}"):
            return
        while True:
            key = self._string()
            self._take(b":", "expected `:`")
            yield key
            if self._accept(b"}"):
                return
            self._take(b",", "expected `,` or `}`")

    def _metadata(self) -> dict[str, str]:
        result: dict[str, str] = {}
        for key in self._members(f"`{METADATA}`"):
            if key in result:
                raise self._wrong(f"duplicate key `{key}` in `{METADATA}`")
            result[key] = self._string()
        return result

    def _tensor(self, name: str) -> TensorInfo:
        usual = USUAL.match(self.text, self.position)
        if usual is not None and usual[1].decode() in BITS:
            self.position = usual.end()
            sizes = usual[2].split(b",") if usual[2] else ()
            shape = tuple([int(size) for size in sizes])
            return TensorInfo(name, usual[1].decode(), shape, int(usual[3]), int(usual[4]))
        return self._unusual_tensor(name)

    def _unusual_tensor(self, name: str) -> TensorInfo:
        """A tensor with spaces, or its fields in another order, or something wrong."""
        found: dict[str, Any] = {}
        for field in self._members(f"tensor `{name}`"):
            if field not in FIELDS or field in found:
                kind = "duplicate" if field in found else "unknown"
                raise self._wrong(f"{kind} field `{field}` of tensor `{name}`")
            found[field] = self._string() if field == "dtype" else self._numbers()
        for field in FIELDS:
            if field not in found:
                raise self._wrong(f"missing field `{field}` of tensor `{name}`")
        dtype, shape, offsets = (found[field] for field in FIELDS)
        if dtype not in BITS:
            raise self._wrong(f"unknown variant `{dtype}`, expected one of {', '.join(BITS)}")
        if len(offsets) != 2:
            raise self._wrong(f"tensor `{name}` has {len(offsets)} data_offsets instead of 2")
        return TensorInfo(name, dtype, shape, *offsets)

    def _numbers(self) -> tuple[int, ...]:
        self._take(b"[", "expected a list of integers")
        values: list[int] = []
        if self._accept(b"]"):
            return ()
        while True:
            if len(values) == MAX_DIMS:
                raise self._wrong(f"more than {MAX_DIMS} integers in a list")
            values.append(self._number())
            if self._accept(b"]"):
                return tuple(values)
            self._take(b",", "expected `,` or `]`")

    def _number(self) -> int:
        value = int(self._match(NUMBER, "expected an integer that is not negative"))
        if value > LARGEST:
            raise self._wrong(f"the integer {value} does not fit 64 bits")
        return value

    def _string(self) -> str:
        literal = self._match(STRING, "expected a string")
        try:
            if b"\\" not in literal:
                return literal[1:-1].decode()
            value: str = json.loads(literal)
            value.encode()
        except UnicodeDecodeError:
            raise error(f"invalid UTF-8 in header before byte {self.position}") from None
        except ValueError:
            raise self._wrong("invalid escape in a string") from None
        return value

    def _match(self, pattern: re.Pattern[bytes], expected: str) -> bytes:
        found = pattern.match(self.text, self.position)
        if found is None:
            raise self._wrong(expected)
        self.position = found.end()
        return found[1]

    def _accept(self, mark: bytes) -> bool:
        found = MARKS[mark].match(self.text, self.position)
        if found is None:
            return False
        self.position = found.end()
        return True

    def _take(self, mark: bytes, expected: str) -> None:
        if not self._accept(mark):
            raise self._wrong(expected)

    def _wrong(self, detail: str) -> SafetensorError:
        return error(f"invalid JSON in header: {detail} at byte {self.position}")


# ---- writing


def lay_out(tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> list[TensorInfo]:
    """Give (name, dtype, shape) their places: wide dtypes first, then by name.

    That keeps every tensor aligned to its own element, and equals the reference's order.
    """
    rank = {code: place for place, code in enumerate(BITS)}
    result = []
    position = 0
    for name, dtype, shape in sorted(tensors, key=lambda item: (-rank[item[1]], item[0])):
        if name == METADATA:
            raise SafetensorError(f"a tensor cannot be called `{METADATA}`")
        size = size_in_bytes(TensorInfo(name, dtype, shape, 0, 0))
        result.append(TensorInfo(name, dtype, shape, position, position + size))
        position += size
    return result


def write_header(tensors: Iterable[TensorInfo], metadata: dict[str, str] | None) -> bytes:
    """The length and the padded JSON, a multiple of eight bytes."""
    table: dict[str, object] = {}
    if metadata is not None:
        table[METADATA] = dict(sorted(metadata.items()))
    for info in tensors:
        offsets = [info.start, info.end]
        table[info.name] = {"dtype": info.dtype, "shape": info.shape, "data_offsets": offsets}
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise SafetensorError("Error while serializing: header too large")
    return len(text).to_bytes(LENGTH_BYTES, "little") + text
