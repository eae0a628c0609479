"""CRC-32 of large records, in pieces that several threads take.

`zlib.crc32` lets other threads run while it works, so the cores share a record; the sums of the
pieces join by the arithmetic of CRCs, polynomials over GF(2) modulo the one of IEEE 802.3.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from flambeau._core import settings

POLYNOMIAL = 0xEDB88320  # of IEEE 802.3, without x^32; the highest bit stands for x^0
ONE = 1 << 31
PIECE = 4 << 20
BLOCK = 128 << 10
WORTH_SHARING = 256 << 10
"""Records below this many bytes are quicker done than handed to another thread."""


def combine(first: int, second: int, second_length: int) -> int:
    """The CRC-32 of two pieces in a row, from the CRC-32 of each and the second's bytes."""
    return _multiply(first, _power_of_x(8 * second_length)) ^ second


def _multiply(left: int, right: int) -> int:
    """The product of two polynomials modulo the CRC's."""
    product = 0
    for bit in range(31, -1, -1):
        if left >> bit & 1:
            product ^= right
        right = (right >> 1) ^ (POLYNOMIAL if right & 1 else 0)
    return product


@lru_cache(64)
def _power_of_x(exponent: int) -> int:
    result = ONE
    square = ONE >> 1  # x
    while exponent:
        if exponent & 1:
            result = _multiply(square, result)
        square = _multiply(square, square)
        exponent >>= 1
    return result


Fill = Callable[[int, np.ndarray], None]
"""What copies bytes from a place of a record on into an array."""


def filler_of(source: np.ndarray) -> Fill:
    """What copies bytes out of an array."""

    def copy(start: int, target: np.ndarray) -> None:
        target[:] = source[start : start + target.size]

    return copy


def copy_and_sum(fill: Fill, start: int, target: np.ndarray, verify: bool) -> int:
    """Copy bytes from a place on; their CRC-32, or 0 where nobody asks.

    Block by block: what has just been copied is summed while it is still in the core's cache.
    """
    running = 0
    for position in range(0, target.size, BLOCK):
        block = target[position : position + BLOCK]
        fill(start + position, block)
        if verify:
            running = zlib.crc32(block.data, running)
    return running


class Pending:
    """A CRC-32 that other threads are computing, in pieces."""

    def __init__(self, pieces: list[tuple[Any, int]]) -> None:
        self.pieces = pieces  # futures of sums, with the lengths of their pieces

    def result(self) -> int:
        """Wait for all pieces and join their sums."""
        total = 0
        for future, length in self.pieces:
            total = combine(total, future.result(), length)
        return total


class Workers:
    """Threads that sum, or copy and sum, while the caller goes on; a `with` block ends them.

    With one thread (`torch.set_num_threads(1)`) there are none, and `sharing` is False.
    """

    def __init__(self, nbytes: int) -> None:
        threads = min(settings.get_num_threads(), nbytes // WORTH_SHARING)
        self.sharing = threads > 1
        self._executor: Any = None
        if self.sharing:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(threads)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def sum(self, data: np.ndarray) -> Callable[[], int] | None:
        """Begin the CRC-32 of bytes; calling the result waits for it. None: not worth the while."""
        if not self.sharing or data.size < WORTH_SHARING:
            return None
        return self._pending(data.size, lambda part: (zlib.crc32, data[part])).result

    def copy(self, fill: Fill, target: np.ndarray, *, verify: bool) -> Callable[[], int]:
        """Begin to copy bytes; calling the result waits and gives their CRC-32."""
        return self._pending(
            target.size, lambda part: (copy_and_sum, fill, part.start, target[part], verify)
        ).result

    def _pending(self, size: int, task: Callable[[slice], tuple[Any, ...]]) -> Pending:
        submit = self._executor.submit
        return Pending([(submit(*task(part)), part.stop - part.start) for part in _pieces(size)])


def _pieces(size: int) -> Iterator[slice]:
    for start in range(0, size, PIECE):
        yield slice(start, min(start + PIECE, size))
