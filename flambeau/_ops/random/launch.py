"""Large fills from a generator, by compiled kernels: the words, the draws and the bits are those
of `_core.random_fill`, which calls these functions for large arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np

from flambeau._compiler import types
from flambeau._core import settings
from flambeau._core.generator import BLOCK, Generator
from flambeau._core.random_integer import signed
from flambeau._ops.random import kernels
from flambeau._ops.random.sampler_launch import (  # noqa: F401  (the same module for all fills)
    binomial,
    poisson,
    standard_gamma,
)
from flambeau._runtime.launch import Kernel, kernel

CHUNK = 1 << 18
"""Words that are made before they are used, one after another by one thread: a multiple of 16,
small enough for the second-level cache."""
GRAIN = 4096
"""Numbers that are worth a task."""
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
UINT32 = np.dtype(np.uint32)


@cache
def _lanes() -> int:
    from flambeau._runtime import features

    return min(8, features.vector_bits() // 32)


@cache
def _kernel(name: str, dtype: np.dtype[Any] | None = None, wide: bool = False) -> Kernel:
    statics: dict[str, Any] = {} if dtype is None else {"T": types.OF_NUMPY[dtype.name]}
    if wide:
        statics["W"] = _lanes()
    return kernel(getattr(kernels, name), **statics)


@cache
def _has_type(dtype: np.dtype[Any]) -> bool:
    return dtype.name in types.OF_NUMPY


def fits(out: np.ndarray) -> bool:
    """Whether an array can be filled in one go: row-major memory, real numbers."""
    return out.flags.c_contiguous and _has_type(out.dtype)


def _tasks(count: int) -> int:
    if count < 2 * GRAIN:
        return 1
    return max(1, min(2 * settings.get_num_threads(), count // GRAIN))


def fill_words(words: np.ndarray, generator: Generator) -> None:
    """The generator's next words, uint32 of shape (n,)."""
    generator.words_into(words, _kernel("twist", None, True))


def _drawn(count: int, each: int, generator: Generator) -> Iterator[tuple[slice, np.ndarray]]:
    """Parts of `count` numbers, with `each` words for every number; the words are read only."""
    if count * each <= BLOCK:
        yield slice(0, count), generator.words(count * each)
        return
    step = CHUNK // each
    words = np.empty(min(count, step) * each, UINT32)
    for start in range(0, count, step):
        stop = min(start + step, count)
        part = words[: (stop - start) * each]
        fill_words(part, generator)
        yield slice(start, stop), part


def _drawn_in_place(
    flat: np.ndarray, generator: Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Parts of an array of 32-bit numbers, and a word for each: in the number's own memory, unless
    they are few enough to be read where the generator has them."""
    if flat.size <= BLOCK:
        yield flat, generator.words(flat.size)
        return
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        fill_words(part.view(UINT32), generator)
        yield part, part


def uniform(out: np.ndarray, span: float, start: float, end: float, generator: Generator) -> None:
    """Numbers of [start, end); `span` and the bounds are in the precision of the draws."""
    flat = out.reshape(-1)
    if out.dtype == FLOAT32:
        run = _kernel("uniform32", FLOAT32, True)
        for part, words in _drawn_in_place(flat, generator):
            run.parallel(_tasks(part.size), words, part, part.size, span, start, end)
        return
    double = out.dtype == FLOAT64
    run = _kernel("uniform64") if double else _kernel("uniform32", out.dtype, True)
    for part, words in _drawn(flat.size, 2 if double else 1, generator):
        target = flat[part]
        run.parallel(_tasks(target.size), words, target, target.size, span, start, end)


def normal_blocks(flat: np.ndarray, mean: float, std: float, generator: Generator) -> None:
    """Normal numbers, float32 or float64 of shape (n,), n a multiple of 16."""
    if flat.dtype == FLOAT32:
        run = _kernel("normal32", None, True)
        for part, words in _drawn_in_place(flat, generator):
            run.parallel(_tasks(part.size), words, part, part.size // 16, mean, std)
        return
    run = _kernel("normal64")
    for place, words in _drawn(flat.size, 2, generator):
        part = flat[place]
        run.parallel(_tasks(8 * part.size), words, part, part.size // 16, mean, std)


def exponential(out: np.ndarray, scale: float, generator: Generator) -> None:
    """scale * log(1 - u)."""
    flat = out.reshape(-1)
    run = _kernel("exponential", out.dtype)
    for place, words in _drawn(flat.size, 2, generator):
        part = flat[place]
        run.parallel(_tasks(8 * part.size), words, part, part.size, scale)


def bernoulli(out: np.ndarray, bound: int, generator: Generator) -> None:
    """1 where a draw of 53 bits is below the bound, else 0."""
    flat = out.reshape(-1)
    run = _kernel("bernoulli", out.dtype)
    for place, words in _drawn(flat.size, 2, generator):
        part = flat[place]
        run.parallel(_tasks(part.size), words, part, part.size, bound)


def bernoulli_each(out: np.ndarray, chances: np.ndarray, generator: Generator) -> None:
    """1 where a draw of 24 bits is below its chance, float32 of shape (n,), else 0."""
    flat = out.reshape(-1)
    run = _kernel("bernoulli_each", out.dtype)
    for place, words in _drawn(flat.size, 1, generator):
        part = flat[place]
        run.parallel(_tasks(part.size), words, chances[place], part, part.size)


def integers(out: np.ndarray, extent: int, low: int, double: bool, generator: Generator) -> None:
    """low + (a word of 32 or of 64 bits) % extent; extent is at most 2**64."""
    run = _kernel("integers64" if double else "integers32", out.dtype)
    divisor = _divisor(extent, double)
    count = out.size * (1 + double)
    if count <= BLOCK:  # what a few numbers cost is the way to here
        run.once(generator.words(count), out, out.size, *divisor, low)
        return
    flat = out.reshape(-1)
    for place, words in _drawn(flat.size, 1 + double, generator):
        part = flat[place]
        run.parallel(_tasks(part.size), words, part, part.size, *divisor, low)


@lru_cache(256)
def _divisor(extent: int, double: bool) -> tuple[int, ...]:
    """What the kernels divide by: the extent, and for single words the multiple of its inverse."""
    if double:
        return (signed(extent),)
    return extent, signed(-(-(1 << 64) // extent))


def shuffle(order: np.ndarray, generator: Generator) -> None:
    """A permutation of range(n) into int64 memory of shape (n,)."""
    run = _kernel("shuffle_places", order.dtype)
    count = order.size - 1
    if count <= BLOCK:  # what a few numbers cost is the way to here
        run.once(generator.words(count), order, count + 1)
        return
    words = np.empty(count, UINT32)
    fill_words(words, generator)
    run(words, order, count + 1)


def categories(rows: np.ndarray, count: int, generator: Generator) -> np.ndarray:
    """Places by weight, int64 of shape (m, count), for weights (m, n), float32 or float64, of which
    none is negative and some in each row is not 0."""
    words = np.empty(2 * len(rows) * count, UINT32)
    fill_words(words, generator)
    out = np.empty((len(rows), count), np.int64)
    tasks = min(len(rows), _tasks(rows.size + 8 * out.size))
    _kernel("categories", rows.dtype).parallel(
        tasks, rows, np.empty_like(rows), words, out, *rows.shape, count
    )
    return out
