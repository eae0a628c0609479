"""Philox4x32-10 (Salmon and others, 2011), and how PyTorch's CUDA kernels deal it to elements.

A block is four words of 32 bits; its key is the seed, its counter is (offset / 4, number of the
thread). A kernel over n elements has threads in blocks of 256, as many as there are elements, but
no more than the multiprocessors hold at a time: the numbers of large tensors depend on the card.
In round r, thread t takes the block (offset / 4 + r, t) and serves `unroll` elements with it: its
i-th number goes to element (r * unroll + i) * threads + t. The unroll is 4 for numbers of one word
and 2 for those of two. A call moves the offset on by 4 for every round.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flambeau._core import special_function_unit as unit
from flambeau._core.random_normal import libm

BLOCK_THREADS = 256
CHUNK = 1 << 14
"""Threads whose words are made together: their arrays stay in the second-level cache."""

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SHIFT_53 = np.uint64(21)
_LOW_53 = np.uint64((1 << 53) - 1)

Words = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""The four words of some blocks: uint64 arrays of one shape whose numbers have 32 bits."""


class InGraph(int):
    """In place of a seed, while work is noted for a graph: the address on the device where seed and
    counter stand, when the graph is launched. Offsets are then those inside the graph."""


class Grid(NamedTuple):
    """How many threads a card runs at a time. The default is an H100's."""

    multiprocessors: int = 132
    threads_per_multiprocessor: int = 2048

    def threads(self, count: int) -> int:
        """The threads of a kernel over `count` elements, at least one."""
        resident = self.multiprocessors * (self.threads_per_multiprocessor // BLOCK_THREADS)
        return BLOCK_THREADS * min(-(-count // BLOCK_THREADS), resident)

    def rounds(self, count: int, unroll: int) -> int:
        """How many blocks of words each of these threads takes."""
        return (count - 1) // (self.threads(count) * unroll) + 1


def blocks(seed: int, threads: np.ndarray, counter: int | np.ndarray) -> Words:
    """The block of each thread (uint64) at a counter, or at a counter of its own.

    Errors: RuntimeError while work is noted for a graph, whose seed is not known yet.
    """
    if isinstance(seed, InGraph):
        raise RuntimeError("a graph cannot hold random numbers that the host makes")
    counters = np.asarray(counter, np.uint64)
    shape = np.broadcast_shapes(threads.shape, counters.shape)
    parts = (counters & _LOW, counters >> _HALF, threads & _LOW, threads >> _HALF)
    a, b, c, d = (np.broadcast_to(part, shape) for part in parts)
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(ROUNDS):
        p, q = a * np.uint64(MULTIPLIERS[0]), c * np.uint64(MULTIPLIERS[1])
        a = q >> _HALF
        a ^= b
        a ^= np.uint64(keys[0])
        c = p >> _HALF
        c ^= d
        c ^= np.uint64(keys[1])
        q &= _LOW
        p &= _LOW
        b, d = q, p
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, KEY_STEPS, strict=True)]
    return a, b, c, d


def first_threads(count: int) -> np.ndarray:
    """The numbers of the first threads."""
    return np.arange(count, dtype=np.uint64)


# -- words to numbers; the i-th number of a block --------------------------------------------------


def word32(words: Words, i: int) -> np.ndarray:
    """The i-th word, uint64."""
    return words[i]


def word64(words: Words, i: int) -> np.ndarray:
    """Two words as one of 64 bits, the first on top."""
    high: np.ndarray = words[2 * i] << _HALF
    high |= words[2 * i + 1]
    return high


def unit32(words: Words, i: int) -> np.ndarray:
    """A number of (0, 1], float32: the word in float32, in the middle of its step of 2**-32."""
    return units_of(words[i])


def units_of(word: np.ndarray) -> np.ndarray:
    """Words as numbers of (0, 1], float32."""
    values = word.astype(np.float32)
    values *= np.float32(2.0**-32)
    values += np.float32(2.0**-33)
    return values


def unit64(words: Words, i: int) -> np.ndarray:
    """A number of (0, 1], float64, from 53 bits of two words."""
    return _fraction(words[2 * i], words[2 * i + 1], 2.0**-53)


def _fraction(low: np.ndarray, high: np.ndarray, scale: float) -> np.ndarray:
    bits = high << _SHIFT_53
    bits ^= low
    bits &= _LOW_53
    values: np.ndarray = bits.astype(np.float64)
    values *= scale
    values += scale / 2
    return values


TURN = float(np.float32(2.0**-32) * np.float32(2 * math.pi))


def normal32(words: Words, i: int) -> np.ndarray:
    """A standard normal number, float32 (Box and Muller, 1958): sine first, then cosine.

    Sine and cosine are the card's approximate ones; the logarithm is rounded once, where CUDA's
    may be off by a unit of the last place.
    """
    logarithm = libm("log")(units_of(words[i & 2]).astype(np.float64)).astype(np.float32)
    angle = fused32(words[i | 1].astype(np.float32), TURN, TURN / 2)
    radius = np.sqrt(logarithm * np.float32(-2.0))
    wave = (unit.cosine if i & 1 else unit.sine)(angle).astype(np.float32)
    return radius * wave  # type: ignore[no-any-return]


def normal64(words: Words, i: int) -> np.ndarray:
    """A standard normal number, float64: the sine, or the cosine, of pi times a fraction of 2."""
    radius = np.sqrt(libm("log")(_fraction(words[0], words[1], 2.0**-53)) * -2.0)
    turn = _fraction(words[2], words[3], 2.0**-52)
    return radius * (cosine_of_half_turns(turn) if i else sine_of_half_turns(turn))


def sine_of_half_turns(turns: np.ndarray) -> np.ndarray:
    """sin(pi x), float64: x is reduced first, which is exact, so that the error stays small."""
    quarter = np.rint(turns * 2.0)
    return _rotated(turns - quarter * 0.5, quarter.astype(np.int64))


def cosine_of_half_turns(turns: np.ndarray) -> np.ndarray:
    """cos(pi x), float64."""
    quarter = np.rint(turns * 2.0)
    return _rotated(turns - quarter * 0.5, quarter.astype(np.int64) + 1)


PI_LOW = 1.2246467991473532e-16
"""What pi has beyond its double."""


def _rotated(part: np.ndarray, quarters: np.ndarray) -> np.ndarray:
    """The sine of pi * part and some quarters of a turn; part is in [-1/4, 1/4]."""
    angle = part * math.pi
    sine, cosine = libm("sin")(angle), libm("cos")(angle)
    rest = _product_rest(part, angle)
    values = np.where(quarters & 1, cosine - sine * rest, sine + cosine * rest)
    return np.where(quarters & 2, -values, values)


_SPLIT = 134217729.0  # 2**27 + 1 (Dekker, 1971)
_PI_HIGH = math.pi * _SPLIT - (math.pi * _SPLIT - math.pi)


def _product_rest(part: np.ndarray, product: np.ndarray) -> np.ndarray:
    """part * pi - product, where product is part * math.pi as rounded."""
    scaled = part * _SPLIT
    high = scaled - (scaled - part)
    low = part - high
    pi_low = math.pi - _PI_HIGH
    error = ((high * _PI_HIGH - product) + high * pi_low + low * _PI_HIGH) + low * pi_low
    return error + part * PI_LOW


def fused32(values: np.ndarray, factor: float, addend: float) -> np.ndarray:
    """`values * factor + addend` for float32 values and parameters, rounded once."""
    wide = values.astype(np.float64)
    wide *= float(np.float32(factor))
    wide += float(np.float32(addend))
    with np.errstate(over="ignore"):
        return wide.astype(np.float32)


# -- one thread's words, one after another: for samplers that reject -------------------------------


class Thread:
    """The words of one thread, one at a time."""

    __slots__ = ("_block", "_counter", "_place", "_seed", "_thread", "_waiting")

    def __init__(self, seed: int, thread: int, offset: int) -> None:
        self._seed, self._thread = seed, np.array([thread], np.uint64)
        self._counter, self._place = offset // 4, 4
        self._block: list[int] = []
        self._waiting: dict[str, float] = {}

    def word(self) -> int:
        """The next word."""
        if self._place == 4:
            found = blocks(self._seed, self._thread, self._counter)
            self._block = [int(word[0]) for word in found]
            self._counter += 1
            self._place = 0
        self._place += 1
        return self._block[self._place - 1]

    def unit(self) -> Any:
        """The next number of (0, 1], a float32."""
        return np.float32(self.word()) * np.float32(2.0**-32) + np.float32(2.0**-33)

    def low_unit(self) -> float:
        """The next number of [0, 1) with 24 bits."""
        return (self.word() & 0xFFFFFF) * 2.0**-24

    def normal(self) -> Any:
        """The next standard normal number, a float32; the cosine of a pair waits its turn."""
        if "normal" in self._waiting:
            return self._waiting.pop("normal")
        pair = (np.array([self.word()], np.uint64), np.array([self.word()], np.uint64))
        words = (*pair, *pair)
        self._waiting["normal"] = normal32(words, 1)[0]
        return normal32(words, 0)[0]
