"""Permutations, choices and samplers that reject, as PyTorch's CUDA kernels draw them.

The samplers are those of `random_sample`; here an element has the words of a thread of its own, so
that all elements go on at the same time. Elements stand in the order of their indices.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from flambeau._core import philox, philox_fill, random_fill, random_sample
from flambeau._core.random_fill import BERNOULLI_TYPES, DIGITS, FLOATS, require_kernel, store
from flambeau._core.random_normal import libm

if TYPE_CHECKING:
    from flambeau._core.philox_generator import PhiloxGenerator

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_WIDE_FLOATS = (_SINGLE, _DOUBLE)


class Threads:
    """The words of many threads, each at its own place of its own stream."""

    def __init__(self, count: int, generator: PhiloxGenerator, words: int) -> None:
        """The first `count` threads, of whom the generator says that each takes so many words."""
        self.seed, offset = generator.reserve(words)
        self.counter = offset // 4
        self.numbers = philox.first_threads(count)
        self.taken = np.zeros(count, np.int64)
        self.waiting = np.full(count, np.nan, np.float32)

    def words(self, which: np.ndarray) -> np.ndarray:
        """The next word of each of these threads, uint64."""
        taken = self.taken[which]
        self.taken[which] = taken + 1
        words = philox.blocks(self.seed, self.numbers[which], self.counter + taken // 4)
        return np.choose(taken % 4, words)

    def units(self, which: np.ndarray) -> np.ndarray:
        """The next number of (0, 1] of each, float32."""
        return philox.units_of(self.words(which))

    def normals(self, which: np.ndarray) -> np.ndarray:
        """The next standard normal number of each, float32; the cosine of a pair waits."""
        found = self.waiting[which]
        missing = np.isnan(found)
        fresh = which[missing]
        pair = self.words(fresh), self.words(fresh)
        found[missing] = philox.normal32((*pair, *pair), 0)
        self.waiting[which] = np.nan
        self.waiting[fresh] = philox.normal32((*pair, *pair), 1)
        return found


# -- chances ---------------------------------------------------------------------------------------


def bernoulli_tensor_(
    out: np.ndarray, probability: np.ndarray, generator: PhiloxGenerator
) -> np.ndarray:
    """Ones with the probability that stands at the same place, else zeros.

    A thread serves four elements that follow each other, with numbers of 32 bits for all dtypes.
    Elements stand in the order of `out`'s indices, or of both memories where these agree.
    """
    if out.size == 0:
        return out
    require_kernel(out.dtype, BERNOULLI_TYPES, "bernoulli_tensor_cuda_self_")
    require_kernel(probability.dtype, FLOATS, "bernoulli_tensor_cuda_p_")
    chances = np.broadcast_to(probability, out.shape)
    random_fill.check_chances(chances.astype(np.float64))
    order = _common_order(out, chances)
    target, chances = out.transpose(order), chances.transpose(order)
    seed, offset = generator.reserve(10)
    groups = -(-out.size // 4)
    words = philox.blocks(seed, philox.first_threads(groups), offset // 4)
    units = philox.units_of(np.stack(words, -1).reshape(-1)[: out.size])
    ones = units.reshape(target.shape) <= chances.astype(np.float32, copy=False)
    store(target, ones)
    return out


def _common_order(first: np.ndarray, second: np.ndarray) -> list[int]:
    """The dims, swapped where the strides of no array fall and those of one rise."""
    order = list(range(first.ndim))
    for i in range(first.ndim - 1):
        for j in range(i + 1, first.ndim):
            a, b = order[i], order[j]
            if 1 in (first.shape[a], first.shape[b]):
                continue
            steps = [array.strides[b] - array.strides[a] for array in (first, second)]
            if any(step > 0 for step in steps) and not any(step < 0 for step in steps):
                order[i], order[j] = b, a
    return order


def dropout_mask_(
    mask: np.ndarray, input: np.ndarray, keep: float, generator: PhiloxGenerator
) -> np.ndarray:
    """Which elements of `input` a fused dropout keeps, into booleans of its shape.

    A thread serves as many neighbours as one access of 16 bytes moves, fewer where the number of
    elements or the address is no multiple of it. The offset is that of one number an element.
    """
    order = dense_order(input)
    count = mask.size
    lanes = 1 if order is None else lanes_of(input)
    view = mask if order is None else mask.transpose(order)
    threads = generator.grid.threads(count)
    seed, offset = generator.reserve(4 * generator.grid.rounds(count, 4))
    flat = np.empty(count, np.bool_)
    bound = np.float32(keep)
    step = threads * lanes
    for begin in range(0, count, step):
        part = flat[begin : begin + step]
        numbers = philox.first_threads(-(-part.size // lanes))
        kept = _kept(seed, offset // 4, numbers, begin // step * lanes, lanes, bound)
        part[...] = kept[: part.size]
    view[...] = flat.reshape(view.shape)
    return mask


def _kept(seed: int, counter: int, threads: np.ndarray, first: int, lanes: int,
          bound: np.float32) -> np.ndarray:  # fmt: skip
    """Whether the words of each thread from the first on, so many, are below the bound."""
    kept = np.empty((threads.size, lanes), np.bool_)
    words: Any = None
    for lane in range(lanes):
        place = first + lane
        if words is None or place % 4 == 0:
            words = philox.blocks(seed, threads, counter + place // 4)
        kept[:, lane] = philox.units_of(words[place % 4]) < bound
    return kept.reshape(-1)


def dense_order(array: np.ndarray) -> list[int] | None:
    """The dims from the largest stride to the smallest; None where there are gaps between."""
    order = sorted(range(array.ndim), key=lambda dim: (-array.strides[dim], -array.shape[dim]))
    return order if array.transpose(order).flags.c_contiguous else None


def lanes_of(array: np.ndarray) -> int:
    """The elements of one access, as the address and the number of elements allow."""
    lanes = max(1, 16 // array.itemsize)
    place = array.ctypes.data
    while lanes > 1 and (array.size % lanes or place % (lanes * array.itemsize)):
        lanes //= 2
    return lanes


def rrelu_noise(
    values: np.ndarray, lower: float, upper: float, generator: PhiloxGenerator
) -> np.ndarray:
    """Slopes for `rrelu`: uniform on (lower, upper] where `values <= 0`, else one.

    Every element takes a number, needed or not, in the order of indices.
    """
    noise = np.empty(values.shape, values.dtype)
    wide = values.dtype == np.float64
    take = philox.unit64 if wide else philox.unit32

    def number(words: philox.Words, i: int) -> np.ndarray:
        units = take(words, i).astype(np.float64)
        return units * (upper - lower) + lower

    draw = philox_fill.Draw(number, "slopes", 2 if wide else 4, (lower, upper))
    philox_fill.fill(noise, draw, generator)
    noise[values > 0] = 1
    return noise


# -- permutations ----------------------------------------------------------------------------------

_CHANCE_OF_TIES = 12 * math.log(0.9)


def randperm(size: int, dtype: np.dtype, generator: PhiloxGenerator) -> np.ndarray:
    """A random permutation of `range(size)`: the order of random keys, equal keys shuffled.

    Keys have so many bits that nine permutations of ten meet no equal ones.
    """
    random_sample.check_permutation(size, dtype)
    if size == 0:
        return np.empty(0, dtype)
    bits = math.ceil(math.log2(size - (6 * size * size + 1) / _CHANCE_OF_TIES))
    bits = min(64, bits)
    extent = (1 << 64 if bits > 32 else 1 << 32) - 1
    keys = np.empty(size, np.uint64)
    words64 = philox_fill.Draw(lambda words, i: philox.word64(words, i) % np.uint64(extent),
                               "keys", 2, (extent,))  # fmt: skip
    philox_fill.fill(keys, words64, generator)
    keys &= np.uint64((1 << bits) - 1)
    order = np.argsort(keys, kind="stable")
    _shuffle_ties(order, keys[order], generator)
    values = np.empty(size, dtype)
    store(values, order)
    return values


def _shuffle_ties(order: np.ndarray, keys: np.ndarray, generator: PhiloxGenerator) -> None:
    """Shuffle what lies between equal keys, with the words of the thread of its first place."""
    seed, offset = generator.reserve(order.size)
    same = keys[1:] == keys[:-1]
    starts = np.flatnonzero(same & ~np.concatenate(([False], same[:-1])))
    for start in starts.tolist():
        stop = start + 1
        while stop < order.size and keys[stop] == keys[start]:
            stop += 1
        words = philox.Thread(seed, start, offset)
        for last in range(stop - start - 1, 0, -1):
            other = words.word() % (last + 1)
            if other != last:
                a, b = start + last, start + other
                order[a], order[b] = order[b], order[a]


# -- multinomial -----------------------------------------------------------------------------------

_SAMPLE_THREADS = 128
_MOST_ROWS = 65535


def multinomial(
    weights: np.ndarray, count: int, replacement: bool, generator: PhiloxGenerator
) -> np.ndarray:
    """Indices drawn by weight along the last dim: (n,) to (count,), (m, n) to (m, count), int64.

    Errors: RuntimeError for other ranks, dtypes, counts, or weights that are no distribution.
    """
    random_sample.check_multinomial(weights, count, replacement)
    if not replacement or count == 1:
        return random_sample.race(weights, count, philox_fill.exponential_, generator)
    rows = weights.reshape(-1, weights.shape[-1])
    random_sample.check_weights(rows)
    kind = weights.dtype if weights.dtype in _WIDE_FLOATS else _SINGLE
    shares = rows.astype(kind)
    shares /= shares.sum(-1, keepdims=True)
    drawn = np.empty((len(rows), count), np.int64)
    # rows lie side by side in the grid, as far as it has rows; then a thread takes its next block
    high = min(len(rows), _MOST_ROWS)
    width = -(-count // _SAMPLE_THREADS) * _SAMPLE_THREADS
    seed, offset = generator.reserve(((len(rows) - 1) // high + 1) * 4)
    for row, share in enumerate(shares):
        threads = philox.first_threads(count) + np.uint64(row % high * width)
        words = philox.blocks(seed, threads, offset // 4 + row // high)
        drawn[row] = _searched(share, philox.units_of(words[0]))
    return drawn.reshape(*weights.shape[:-1], count)


def _searched(share: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The first category whose cumulative share reaches the number, and that has a share."""
    found = np.searchsorted(np.cumsum(share, dtype=share.dtype), units, side="left")
    found = np.minimum(found, share.size - 1)
    filled = np.maximum.accumulate(np.where(share > 0, np.arange(share.size), 0))
    return filled[found]


# -- samplers that reject --------------------------------------------------------------------------

_SMALL_RATE, _LARGE_RATE = 64, 4000


def poisson(rates: np.ndarray, generator: PhiloxGenerator) -> np.ndarray:
    """Poisson numbers with the given rates, same shape and dtype. Errors: a negative rate.

    Up to a rate of 64 numbers are multiplied until they fall below exp(-rate) (Knuth); above 4000
    a normal number is rounded; between, the numbers are not PyTorch's, though of the same law.
    """
    require_kernel(rates.dtype, tuple(DIGITS), "poisson_cuda")
    flat = rates.astype(np.float32).reshape(-1)
    random_sample.check_rates(flat)
    threads = Threads(flat.size, generator, 20)
    counts = np.zeros(flat.size, np.float64)
    small, large = flat < _SMALL_RATE, flat > _LARGE_RATE
    _multiply_down(np.flatnonzero(small), flat, counts, threads)
    which = np.flatnonzero(large)
    wide = flat[which].astype(np.float64)
    counts[which] = np.floor(threads.normals(which) * np.sqrt(wide) + wide + 0.5)
    for place in np.flatnonzero(~small & ~large).tolist():
        thread = philox.Thread(threads.seed, place, 4 * threads.counter)
        counts[place] = random_sample.poisson_by_rejection(float(flat[place]), thread)
    return random_sample.shaped(counts, rates)


def _multiply_down(
    which: np.ndarray, rates: np.ndarray, counts: np.ndarray, threads: Threads
) -> None:
    products = libm("exp")(rates[which].astype(np.float64)).astype(np.float32)
    while which.size:
        products *= threads.units(which)
        going = products > 1
        which, products = which[going], products[going]
        counts[which] += 1


def standard_gamma(alphas: np.ndarray, generator: PhiloxGenerator) -> np.ndarray:
    """Gamma numbers of scale 1, same shape and dtype as `alphas`, a float dtype."""
    require_kernel(alphas.dtype, tuple(DIGITS), "gamma_cuda")
    kind = np.float64 if alphas.dtype == np.float64 else np.float32
    drawn = _gammas(alphas.astype(kind).reshape(-1), Threads(alphas.size, generator, 10))
    values = random_sample.shaped(drawn, alphas)
    smallest = ml_dtypes.finfo(alphas.dtype).tiny
    return np.where(values > smallest, values, smallest)


def _gammas(alpha: np.ndarray, threads: Threads) -> np.ndarray:
    """Marsaglia and Tsang's sampler (2000), in the precision of `alpha`."""
    kind = alpha.dtype.type
    result = np.zeros(alpha.size, alpha.dtype)
    scale = np.ones(alpha.size, alpha.dtype)
    small = np.flatnonzero((alpha < 1) & (alpha != 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        base = (1 - threads.units(small)).astype(alpha.dtype)
        scale[small] = np.power(base, 1 / alpha[small])
        alpha = alpha.copy()
        alpha[small] += 1
        d = alpha - kind(1) / kind(3)
        c = 1 / np.sqrt(9 * d)
    waiting = np.flatnonzero(alpha > 0)
    while waiting.size:
        waiting = _gamma_round(waiting, c, d, scale, result, threads)
    return result


def _gamma_round(waiting: np.ndarray, c: np.ndarray, d: np.ndarray, scale: np.ndarray,
                 result: np.ndarray, threads: Threads) -> np.ndarray:  # fmt: skip
    """One trial of every element that waits; returns those that wait still."""
    kind = result.dtype.type
    x = threads.normals(waiting).astype(result.dtype)
    y = 1 + c[waiting] * x
    whole = y > 0
    again, waiting, x, y = waiting[~whole], waiting[whole], x[whole], y[whole]
    v = y * y * y
    u = (1 - threads.units(waiting)).astype(result.dtype)
    square, shape = x * x, d[waiting]
    with np.errstate(divide="ignore"):
        taken = u < 1 - kind(0.0331) * square * square
        taken |= np.log(u) < kind(0.5) * square + shape * (1 - v + np.log(v))
    chosen = waiting[taken]
    result[chosen] = scale[chosen] * d[chosen] * v[taken]
    return np.concatenate((again, waiting[~taken]))


def dirichlet(alphas: np.ndarray, generator: PhiloxGenerator) -> np.ndarray:
    """Points of the simplex along the last dim, same shape and dtype as `alphas`."""
    gammas = standard_gamma(alphas, generator)
    return random_sample.shares(gammas, alphas.dtype)


class _LowUnits:
    """A thread whose numbers have the low 24 bits of its words."""

    def __init__(self, thread: philox.Thread) -> None:
        self.unit = thread.low_unit


_THREADS, _EACH = 128, 4


def binomial(counts: np.ndarray, chances: np.ndarray, generator: PhiloxGenerator) -> np.ndarray:
    """Successes out of `counts` trials with `chances`; both of one shape and float dtype.

    128 threads serve 512 elements: a thread takes four, 128 apart, one after the other.
    """
    require_kernel(counts.dtype, tuple(DIGITS), "binomial_cuda")
    seed, offset = generator.reserve(42)
    kind: Any = np.float64 if counts.dtype == np.float64 else np.float32
    pairs = counts.astype(kind).reshape(-1), chances.astype(kind).reshape(-1)
    drawn = np.empty(counts.size, kind)
    for thread in range(-(-counts.size // (_THREADS * _EACH)) * _THREADS):
        first = thread // _THREADS * _THREADS * _EACH + thread % _THREADS
        source = _LowUnits(philox.Thread(seed, thread, offset))
        for place in range(first, min(first + _THREADS * _EACH, counts.size), _THREADS):
            drawn[place] = random_sample.one_binomial(
                kind, pairs[0][place], pairs[1][place], source
            )
    return random_sample.shaped(drawn, counts)
