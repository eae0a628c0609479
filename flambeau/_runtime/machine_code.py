"""Machine code into the process: object files of Linux on x86-64, placed without LLVM's linker.

LLVM's linker maps two pieces of memory for every object. A program of many thousand kernels comes
to the system's limit on mappings (65,530), and LLVM then ends the process, as it does wherever it
gets no memory; before that it is slower with every object. Here kernels share large pieces, and
no memory is a MemoryError.

Kernels need little of what a linker can do: they are compiled for the large code model, so that
every reference is a 64-bit address. What looks different is left to LLVM (`NotPlain`).

A page is never writable and executable at once: it is filled, then made executable for good.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import sys
import threading
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

POSSIBLE = sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 2**32
HEADER = b"\x7fELF\x02\x01"  # 64 bits, little-endian
RELOCATABLE, X86_64 = 1, 62
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
SYMBOL_TABLE, RELOCATIONS, NO_BITS = 2, 4, 8
WRITABLE, ALLOCATED = 1, 2
UNDEFINED, RESERVED = 0, 0xFF00
ADDRESS = 1  # R_X86_64_64: the 64-bit address of a symbol

PAGE = mmap.PAGESIZE
PIECE = 1 << 20
"""Bytes that are mapped at once; a larger object gets a piece of its own."""


class NotPlain(Exception):
    """An object that needs more than addresses filled in."""


class Section(NamedTuple):
    """One section of an object, by ELF's fields."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    each: int


class Symbol(NamedTuple):
    """One symbol: its name, in which section it lies, and where in it."""

    name: str
    section: int
    value: int


class Memory:
    """Pieces of memory that objects are placed in, one after the other."""

    def __init__(self) -> None:
        self.next = self.end = 0

    def take(self, size: int) -> int:
        """The address of so many bytes, whole pages: writable, zero, nobody else's."""
        size = -(-size // PAGE) * PAGE
        if self.next + size > self.end:
            length = max(size, PIECE)
            self.next = _map(length)
            self.end = self.next + length
        address = self.next
        self.next += size
        return address


class Shared:
    """Where the next object goes: what stays as it is apart from what kernels write to."""

    fixed, written = Memory(), Memory()
    lock = threading.Lock()


def _forget_lock() -> None:
    """Nobody in the child of a fork holds the lock."""
    Shared.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def place(code: bytes, wanted: tuple[str, ...],
          given: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:  # fmt: skip
    """Load an object; the addresses of the symbols that are wanted. `given`: addresses of symbols
    that neither the object nor the process has.

    Raises:
        NotPlain: the object, or this system, needs LLVM's linker.
        RuntimeError: the object is damaged or lacks a symbol.
        MemoryError: there is no memory for it.
    """
    try:
        sections = _sections(code)
        symbols = _symbols(code, sections)
        relocations = [section for section in sections if section.kind == RELOCATIONS]
        with Shared.lock:
            bases = _take(sections)
        addresses = [_address(symbol, bases, given) for symbol in symbols]
        _fill(code, sections, bases, relocations, addresses)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise RuntimeError(f"damaged machine code: {error}") from None
    found = {symbol.name: address for symbol, address in zip(symbols, addresses, strict=True)}
    missing = [name for name in wanted if not found.get(name)]
    if missing:
        raise RuntimeError(f"machine code without {', '.join(missing)}")
    return {name: found[name] for name in wanted}


def _sections(code: bytes) -> list[Section]:
    kind, machine = struct.unpack_from("<HH", code, 16)
    if not code.startswith(HEADER) or (kind, machine) != (RELOCATABLE, X86_64):
        raise NotPlain
    (table,) = struct.unpack_from("<Q", code, 40)
    (count,) = struct.unpack_from("<H", code, 60)
    return [Section._make(SECTION.unpack_from(code, table + SECTION.size * number))
            for number in range(count)]  # fmt: skip


def _symbols(code: bytes, sections: list[Section]) -> list[Symbol]:
    """The symbols in the order that relocations count them."""
    table = next((section for section in sections if section.kind == SYMBOL_TABLE), None)
    if table is None:
        raise ValueError("it has no symbols")
    texts = sections[table.link].offset
    symbols = []
    for start in range(table.offset, table.offset + table.size, SYMBOL.size):
        name, _, _, section, value, _ = SYMBOL.unpack_from(code, start)
        text = code[texts + name : code.index(b"\0", texts + name)]
        symbols.append(Symbol(text.decode(), section, value))
    return symbols


def _take(sections: list[Section]) -> dict[int, int]:
    """Addresses for the sections that a running program has, by their number."""
    bases = {}
    for is_written, memory in ((False, Shared.fixed), (True, Shared.written)):
        offsets, size = {}, 0
        for number, section in enumerate(sections):
            if section.flags & ALLOCATED and bool(section.flags & WRITABLE) is is_written:
                alignment = max(section.alignment, 1)
                size = -(-size // alignment) * alignment
                offsets[number] = size
                size += section.size
        if size:
            start = memory.take(size)
            bases.update({number: start + offset for number, offset in offsets.items()})
    return bases


def _address(symbol: Symbol, bases: dict[int, int], given: Mapping[str, int]) -> int:
    """Where a symbol lies; one that the object has not is given, or a function of the process."""
    if symbol.section >= RESERVED:  # the name of the source file, common blocks
        return 0
    if symbol.section != UNDEFINED:
        return bases.get(symbol.section, 0) + symbol.value
    if not symbol.name:
        return 0
    return given.get(symbol.name) or _in_process(symbol.name)


@cache
def _in_process(name: str) -> int:
    try:
        function = getattr(_library(), name)
    except AttributeError:
        raise RuntimeError(f"this process has no function {name}") from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _fill(
    code: bytes, sections: list[Section], bases: dict[int, int], relocations: list[Section],
    addresses: list[int],
) -> None:  # fmt: skip
    """Copy the sections to their places, with every address in them, and let them run."""
    contents = {number: bytearray(code[sections[number].offset :][: sections[number].size])
                for number in bases if sections[number].kind != NO_BITS}  # fmt: skip
    for section in relocations:
        if section.info in bases:
            _relocate(code, section, contents[section.info], addresses)
    for number, content in contents.items():
        if len(content) != sections[number].size:
            raise ValueError("it ends too early")
        ctypes.memmove(bases[number], bytes(content), len(content))
    for number, base in bases.items():
        if not sections[number].flags & WRITABLE:
            _make_executable(base, sections[number].size)


def _relocate(code: bytes, section: Section, content: bytearray, addresses: list[int]) -> None:
    for start in range(section.offset, section.offset + section.size, RELOCATION.size):
        place, what, addend = RELOCATION.unpack_from(code, start)
        number, kind = what >> 32, what & 0xFFFFFFFF
        if kind != ADDRESS or not addresses[number]:
            raise NotPlain
        struct.pack_into("<Q", content, place, (addresses[number] + addend) & (2**64 - 1))


# ---- the system


@cache
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


def _map(length: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address: int = _library().mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address == ctypes.c_void_p(-1).value:
        raise MemoryError(f"no {length} bytes for machine code: {os.strerror(ctypes.get_errno())}")
    return address


def _make_executable(address: int, size: int) -> None:
    start = address // PAGE * PAGE
    if _library().mprotect(start, address + size - start, mmap.PROT_READ | mmap.PROT_EXEC):
        raise NotPlain  # a system that wants it done another way
