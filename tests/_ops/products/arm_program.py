"""Products as programs for Arm: machine code made here, run by an emulator of such a processor.

A program is a static ELF file of two segments: code (a few instructions that call the kernel and
write its result, then the kernel) and memory (the kernel's arguments, operands, panels, result).
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from flambeau._compiler.module import Module
from flambeau._ops.products import panels
from flambeau._ops.products.kernels import panels as kernels
from flambeau._ops.products.tiles import Tile
from flambeau._runtime import llvm as maker

EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")
CODE, MEMORY, PAGE = 0x400000, 0x10000000, 0x1000
WRITE, EXIT = 64, 93
"""Numbers of Linux's system calls."""
STUB = 256
"""Bytes before the kernel's code."""


@cache
def emulator() -> str | None:
    """A program that runs programs for Arm, if there is one."""
    found = (shutil.which(name) for name in EMULATORS)
    return next(filter(None, found), None)


def machine(features: str) -> Any:
    """LLVM's target: such a processor, as many servers have it, with some features more.
    RuntimeError where this LLVM has none."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    return target.create_target_machine(cpu="neoverse-n1", features=features, opt=1,
                                        codemodel="small")  # fmt: skip


@cache
def module(tile: Tile) -> Any:
    """The driver with a tile, for one thread, as LLVM has it before machine code."""
    statics = {"S": tile.number, "O": tile.sums, "BIAS": 0, "SCALED": False, "OTHER": False,
               "SHARED": False, **tile.constants}  # fmt: skip
    text = Module(llvm_version=maker.VERSION)  # without rooms: all is on the stack
    text.entry(kernels.multiply_panels, statics)
    parsed = llvm.parse_assembly(text.text())
    parsed.verify()
    maker.optimise(parsed, maker.PASSES)
    return parsed


PAGE_OF, PART, PARTS = 275, 277, {284: 1, 285: 2, 286: 3, 299: 4}
"""Relocations of adrp, add, and of loads from 2 to 16 bytes (powers of two), as Arm numbers them in
"ELF for the Arm 64-bit Architecture"."""


def code(item: bytes) -> tuple[bytes, int]:
    """An object's instructions and, behind them, its constants, as they lie from CODE + STUB on;
    and where `entry` begins."""
    sections = [((part.name() or b"").decode(), part.data())
                for part in llvm.ObjectFileRef.from_data(item).sections()]  # fmt: skip
    found = dict(sections)
    text, begins = bytearray(found[".text"]), {}
    for number, (name, data) in enumerate(sections):
        if name.startswith(".rodata"):
            text += bytes(-len(text) % 16)
            begins[number] = len(text)
            text += data
        elif name == ".text":
            begins[number] = 0
    symbols = list(struct.iter_unpack("<IBBHQQ", found[".symtab"]))
    for at, kind, symbol, addend in struct.iter_unpack("<QIIq", found.get(".rela.text", b"")):
        section, value = symbols[symbol][3:5]
        relocate(text, at, kind, CODE + STUB + begins[section] + value + addend)
    names = found[".strtab"]
    for name, _, _, _, value, _ in symbols:
        if names[name : names.index(b"\0", name)] == b"entry":
            return bytes(text), value
    raise ValueError("no entry")


def relocate(text: bytearray, at: int, kind: int, target: int) -> None:
    """Let an instruction mean an address."""
    (word,) = struct.unpack_from("<I", text, at)
    low = target % PAGE
    if kind == PAGE_OF:
        pages = (target // PAGE) - (CODE + STUB + at) // PAGE
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif kind == PART:
        word |= low << 10
    else:
        word |= low >> PARTS[kind] << 10
    struct.pack_into("<I", text, at, word)


def constant(register: int, value: int) -> list[int]:
    """Instructions that put a number of 32 bits into a register: movz, movk."""
    low, high = value & 0xFFFF, value >> 16
    return [0xD2800000 | low << 5 | register, 0xF2A00000 | high << 5 | register]


def stub(entry: int, out: int, size: int) -> bytes:
    """entry(MEMORY, 0, 1); write(1, out, size); exit(0)."""
    words = [*constant(0, MEMORY), *constant(1, 0), *constant(2, 1)]
    words.append(0x94000000 | (STUB + entry) // 4 - len(words))  # bl
    svc = 0xD4000001
    words += [*constant(0, 1), *constant(1, out), *constant(2, size), *constant(8, WRITE), svc]
    words += [*constant(0, 0), *constant(8, EXIT), svc]
    return struct.pack(f"<{len(words)}I", *words).ljust(STUB, b"\0")


def program(text: bytes, memory: bytes) -> bytes:
    """The ELF file."""
    segments = [(CODE, text, 5), (MEMORY, memory, 6)]  # read and execute, read and write
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 183, 1, CODE, 64, 0, 0, 64, 56,
                       len(segments), 0, 0, 0)  # fmt: skip
    at, body = PAGE, b""
    for address, data, rights in segments:
        head += struct.pack("<IIQQQQQQ", 1, rights, at, address, address, len(data), len(data),
                            PAGE)  # fmt: skip
        whole = data.ljust(-(-len(data) // PAGE) * PAGE, b"\0")
        at, body = at + len(whole), body + whole
    return head.ljust(PAGE, b"\0") + body


def product(tile: Tile, features: str, left: np.ndarray, right: np.ndarray,
            folder: Path) -> np.ndarray:  # fmt: skip
    """`left @ right` by a tile, by the emulator."""
    dtype = np.dtype(np.int32 if not tile.sums.is_float else f"f{tile.sums.size}")
    plan = panels.Panels(left, right, dtype, tile, 1)
    assert not plan.shared and not plan.copies
    tile = plan.tile
    room = np.zeros(plan.room, np.uint8)
    out = np.full(plan.shape, -77, dtype)
    arrays = (left, right, out, room)
    places, at = [], PAGE
    for array in arrays:
        places.append(MEMORY + at)
        at += -(-array.nbytes // PAGE) * PAGE + PAGE
    a, b, c, packed = places
    slots = [a, b, c, c, c, packed, *plan.numbers, 0, 0, 0]
    factor = "d" if tile.sums.is_float else "q"
    memory = bytearray(at)
    struct.pack_into(f"<{len(slots)}q2{factor}", memory, 0, *map(int, slots), 1, 1)
    for array, place in zip(arrays, places, strict=True):
        start = place - MEMORY
        memory[start : start + array.nbytes] = array.tobytes("A")
    text, entry = code(machine(features).emit_object(module(replace(tile, name=""))))
    file = folder / "product"
    file.write_bytes(program(stub(entry, c, out.nbytes) + text, bytes(memory)))
    file.chmod(0o755)
    done = subprocess.run([emulator() or "", "-cpu", "max", str(file)], capture_output=True,
                          timeout=120, check=True)  # fmt: skip
    return np.frombuffer(done.stdout, dtype).reshape(plan.shape)
