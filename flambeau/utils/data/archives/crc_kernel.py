"""CRC-32C by the processor's own instruction, eight bytes at a time."""

from __future__ import annotations

import platform

from flambeau._compiler.language import *
from flambeau._compiler.native import native

ARM = platform.machine().lower() in ("aarch64", "arm64")


@native
def step_of_eight(crc, word):
    """The sum after eight more bytes; it is in the low 32 bits."""
    if ARM:
        return i64(intrinsic("llvm.aarch64.crc32cx", i32, i32(crc), word))
    return intrinsic("llvm.x86.sse42.crc32.64.64", i64, crc, word)


@native
def step_of_one(crc, byte):
    """The sum after one more byte."""
    if ARM:
        return i64(intrinsic("llvm.aarch64.crc32cb", i32, i32(crc), i32(byte)))
    return i64(intrinsic("llvm.x86.sse42.crc32.32.8", i32, i32(crc), i8(byte)))


@native
def crc32c(data: pointer(u8), out: pointer(i64), size: i64):
    """out[0] = the CRC-32C of `size` bytes, in the low 32 bits."""
    crc = i64(0xFFFFFFFF)
    words = cast(pointer(i64), data)
    whole = size // 8
    for k in range(whole):
        crc = step_of_eight(crc, words[k])
    for k in range(whole * 8, size):
        crc = step_of_one(crc, data[k])
    out[0] = crc ^ 0xFFFFFFFF
