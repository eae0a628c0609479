"""CRC-32C (Castagnoli), the checksum of TFRecords; RFC 3720, appendix B.4."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

POLYNOMIAL = 0x82F63B78
"""Without x^32; the highest bit stands for x^0."""
LANES = 1024
"""Stretches of a long record that NumPy goes through side by side."""


def crc32c(data: bytes) -> int:
    """The checksum of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    memory = np.frombuffer(data, np.uint8)
    kernel = _kernel()
    if kernel is None:
        return _by_numpy(memory)
    out = np.empty(1, np.int64)
    kernel(memory, out, memory.size)
    return int(out[0]) & 0xFFFFFFFF


def masked(data: bytes) -> int:
    """The checksum as TFRecord files hold it: turned by 15 bits, plus a constant, so that sums of
    data that holds sums are no special case."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _kernel() -> Any:
    """The compiled form, where there can be one and the processor has the instruction; else
    None."""
    from flambeau._runtime import choice

    if not choice.available() or choice.ENGINE == "numpy":
        return None
    from flambeau._runtime import features

    if not (features.has("sse4.2") or features.has("crc")):
        return None
    from flambeau._runtime.launch import kernel
    from flambeau.utils.data.archives import crc_kernel as crc

    try:
        return kernel(crc.crc32c)
    except choice.KernelMissing:
        return None


# ---- by NumPy


@cache
def _table() -> np.ndarray:
    """What a byte does to a sum."""
    value = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        value = np.where(value & 1, value >> 1 ^ POLYNOMIAL, value >> 1).astype(np.uint32)
    return value


def _after(crc: Any, columns: np.ndarray) -> Any:
    """Sums of several stretches after columns of bytes, one from each stretch."""
    table = _table()
    for column in columns:
        crc = table[(crc ^ column) & 255] ^ (crc >> 8)
    return crc


def _by_numpy(data: np.ndarray) -> int:
    """Long data in stretches of one length side by side; then what is left."""
    crc = np.uint32(0xFFFFFFFF)
    width = data.size // LANES
    if width:
        lanes = np.zeros(LANES, np.uint32)
        lanes[0] = crc
        lanes = _after(lanes, data[: width * LANES].reshape(LANES, width).T)
        crc = lanes[0]
        shift = _zeros(width)
        for lane in lanes[1:]:
            crc = _shifted(crc, shift) ^ lane
    crc = _after(np.array([crc], np.uint32), data[width * LANES :, None])[0]
    return int(crc) ^ 0xFFFFFFFF


def _shifted(crc: Any, columns: np.ndarray) -> Any:
    """A sum after as many zero bytes as `columns` stands for: a product over GF(2)."""
    bits = crc >> np.arange(32, dtype=np.uint32) & 1
    return np.bitwise_xor.reduce(columns[bits.astype(bool)], initial=np.uint32(0))


@cache
def _zeros(count: int) -> np.ndarray:
    """What `count` zero bytes make of each of the 32 bits of a sum."""
    unit = np.uint32(1) << np.arange(32, dtype=np.uint32)
    one = _after(unit, np.zeros((1, 32), np.uint32))
    result = unit
    while count:
        if count & 1:
            result = np.array([_shifted(value, one) for value in result], np.uint32)
        one = np.array([_shifted(value, one) for value in one], np.uint32)
        count >>= 1
    return result
