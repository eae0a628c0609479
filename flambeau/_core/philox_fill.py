"""Fill arrays with the numbers that PyTorch's CUDA kernels make from a seed and an offset.

Every function fills `out` in the order of its memory, advances the generator as far as the CUDA
kernel does, and returns `out`. Parameters and errors are those of `random_fill`. The 16-bit floats
get float32 numbers, rounded. In float32 PyTorch's kernels use the card's approximate functions:
sine, cosine and tangent are those of `special_function_unit`; logarithm and exponential are
computed in double precision and rounded once: the recorded ones differ by some 2**-22.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flambeau._core import philox, random_fill
from flambeau._core import special_function_unit as unit
from flambeau._core.philox import CHUNK, Words
from flambeau._core.random_fill import (
    BERNOULLI_TYPES,
    COMPLEX_PARTS,
    FLOATS,
    GEOMETRIC_TYPES,
    SCALAR_NAMES,
    as_real,
    memory_order,
    require_kernel,
    store,
)
from flambeau._core.random_integer import (
    FULL_64_BITS,
    FULL_RANGES,
    HALF_WORD_RANGE,
    INT64_MIN,
    WIDE_FULL,
    checked_bounds,
    remainder,
)
from flambeau._core.random_normal import fused_multiply_add, libm

if TYPE_CHECKING:
    from flambeau._core.philox_generator import PhiloxGenerator

Number = Callable[[Words, int], np.ndarray]


class Draw(NamedTuple):
    """What a kernel makes of a block of words: `number(words, i)` is the block's i-th number, for i
    below `unroll`. `kernel` of `_ops.random.philox_kernels` does the same with `parameters`."""

    number: Number
    kernel: str
    unroll: int = 4
    parameters: tuple[float, ...] = ()


def _no_kernels(out: np.ndarray, draw: Draw) -> Any:
    return None


class Compiled:
    """Where a layer that compiles kernels, or launches them on a device, says who fills an array:
    `fill(out, draw)` is None or a function of (seed, counter, threads)."""

    fill: Callable[..., Any] = staticmethod(_no_kernels)


def fill(out: np.ndarray, draw: Draw, generator: PhiloxGenerator) -> np.ndarray:
    """Fill `out` in memory order, and take as many words as the CUDA kernel does."""
    if out.size == 0:
        return out
    grid = generator.grid
    threads = grid.threads(out.size)
    seed, offset = generator.reserve(4 * grid.rounds(out.size, draw.unroll))
    view = memory_order(out)
    compiled = Compiled.fill(view, draw)
    if compiled is not None:
        compiled(seed, offset // 4, threads)
    elif view.flags.c_contiguous:
        fill_flat(view.reshape(-1), draw, seed, offset // 4, threads)
    else:
        flat = np.empty(view.size, view.dtype)
        fill_flat(flat, draw, seed, offset // 4, threads)
        view[...] = flat.reshape(view.shape)
    return out


def fill_flat(flat: np.ndarray, draw: Draw, seed: int, counter: int, threads: int) -> None:
    """Fill memory of shape (n,), of whatever size, with the numbers of so many threads."""
    step = threads * draw.unroll
    for begin in range(0, flat.size, step):
        for first in range(0, threads, CHUNK):
            start = begin + first
            count = min(CHUNK, threads - first, flat.size - start)
            if count <= 0:
                break
            numbers = philox.first_threads(count) + np.uint64(first)
            words = philox.blocks(seed, numbers, counter + begin // step)
            for i in range(draw.unroll):
                part = flat[start + i * threads :][:count]
                if part.size:
                    store(part, draw.number(words, i)[: part.size])


# -- uniform and normal ----------------------------------------------------------------------------


def uniform_(out: np.ndarray, low: float, high: float, generator: PhiloxGenerator) -> np.ndarray:
    """Uniform on [low, high) for float and complex dtypes; what meets the end is the start."""
    if out.dtype in COMPLEX_PARTS:
        uniform_(as_real(out), low, high, generator)
        return out
    random_fill.check_uniform(out.dtype, low, high)
    kind = out.dtype.type
    first, end = kind(low), kind(high)
    span, start = float(end - first), float(first)
    wide = out.dtype == np.float64

    def number(words: Words, i: int) -> np.ndarray:
        if wide:
            values = fused_multiply_add(philox.unit64(words, i), span, start)
        else:
            values = philox.fused32(philox.unit32(words, i), span, start)
            values = values.astype(out.dtype, copy=False)
        np.putmask(values, values == end, first)
        return values

    draw = Draw(
        number, "uniform64" if wide else "uniform32", 2 if wide else 4, (span, start, float(end))
    )
    return fill(out, draw, generator)


def normal_(out: np.ndarray, mean: float, std: float, generator: PhiloxGenerator) -> np.ndarray:
    """Normal numbers for float and complex dtypes."""
    random_fill.check_deviation(std)
    if out.dtype in COMPLEX_PARTS:
        # real and imaginary part share the variance
        normal_(as_real(out), mean, std / math.sqrt(2.0), generator)
        return out
    require_kernel(out.dtype, FLOATS, "normal_kernel_cuda")
    return fill(out, _normal(out.dtype, mean, std), generator)


def _normal(dtype: np.dtype, mean: float, std: float) -> Draw:
    if dtype == np.float64:
        return Draw(
            lambda words, i: fused_multiply_add(philox.normal64(words, i), std, mean),
            "normal64", 2, (std, mean),
        )  # fmt: skip
    return Draw(lambda words, i: philox.fused32(philox.normal32(words, i), std, mean),
                "normal32", 4, (std, mean))  # fmt: skip


def log_normal_(out: np.ndarray, mean: float, std: float, generator: PhiloxGenerator) -> np.ndarray:
    """The exponential of a normal number, for float dtypes. Errors: unless std > 0."""
    random_fill.check_log_deviation(std)
    require_kernel(out.dtype, FLOATS, "log_normal_cuda")
    normal = _normal(out.dtype, mean, std)

    def number(words: Words, i: int) -> np.ndarray:
        with np.errstate(over="ignore"):
            values = libm("exp")(normal.number(words, i).astype(np.float64, copy=False))
            return _narrow(values, out.dtype)

    return fill(out, Draw(number, f"log_{normal.kernel}", normal.unroll, (std, mean)), generator)


def _narrow(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Doubles in the precision that the kernel of a dtype computes in."""
    return values if dtype == np.float64 else values.astype(np.float32)


# -- from one uniform number each ------------------------------------------------------------------


def _of_unit(dtype: np.dtype, kernel: str, parameters: tuple[float, ...],
             transform: Callable[[np.ndarray], np.ndarray]) -> Draw:  # fmt: skip
    """A number of (0, 1] each, through a transform of doubles that are float32 or float64."""
    wide = dtype == np.float64

    def number(words: Words, i: int) -> np.ndarray:
        units = philox.unit64(words, i) if wide else philox.unit32(words, i)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return transform(units.astype(np.float64, copy=False))

    return Draw(number, f"{kernel}{64 if wide else 32}", 2 if wide else 4, parameters)


def _precision(dtype: np.dtype) -> tuple[type[np.floating], float]:
    """The type that the kernel of a dtype computes in, and its epsilon."""
    kind: type[np.floating] = np.float64 if dtype == np.float64 else np.float32
    return kind, float(np.finfo(kind).eps)


def exponential_(out: np.ndarray, rate: float, generator: PhiloxGenerator) -> np.ndarray:
    """`-log(u) / rate` for float dtypes; the largest u give what is half a step from 0."""
    random_fill.check_rate(rate)
    if out.size == 0:
        return out
    random_fill.check_continuous(out.dtype, "Exponential", SCALAR_NAMES[out.dtype][0])
    kind, epsilon = _precision(out.dtype)
    scale = float(kind(-1.0) / kind(rate))

    def transform(units: np.ndarray) -> np.ndarray:
        logs = np.where(units >= 1.0 - epsilon / 2, -epsilon / 2, libm("log")(units))
        return kind(scale) * logs.astype(kind, copy=False)

    return fill(out, _of_unit(out.dtype, "exponential", (scale,), transform), generator)


def cauchy_(out: np.ndarray, median: float, sigma: float, generator: PhiloxGenerator) -> np.ndarray:
    """`median + sigma * tan(pi * (u - 1/2))` for float dtypes, u away from both ends."""
    random_fill.check_sigma(sigma)
    random_fill.check_continuous(out.dtype, "Cauchy", SCALAR_NAMES[out.dtype][1])
    kind, epsilon = _precision(out.dtype)

    def transform(units: np.ndarray) -> np.ndarray:
        inner = np.clip(units, epsilon, float(kind(1.0 - epsilon))).astype(kind, copy=False)
        turns = kind(math.pi) * (inner - kind(0.5))
        if kind is np.float64:
            return fused_multiply_add(libm("tan")(turns), sigma, median)
        tangents = (unit.sine(turns) / unit.cosine(turns)).astype(np.float32)
        return philox.fused32(tangents, sigma, median)

    return fill(out, _of_unit(out.dtype, "cauchy", (sigma, median), transform), generator)


def geometric_(out: np.ndarray, probability: float, generator: PhiloxGenerator) -> np.ndarray:
    """Trials up to the first success: `ceil(log(u) / log(1 - p))`; all dtypes but bool, complex."""
    random_fill.check_success(probability)
    if out.size == 0:
        return out
    require_kernel(out.dtype, GEOMETRIC_TYPES, "geometric_cuda")
    base = math.log1p(-probability)
    whole = out.dtype.kind in "iu"

    def transform(units: np.ndarray) -> np.ndarray:
        trials = np.ceil(libm("log")(units) / base)
        return trials.astype(np.int64) if whole else trials

    return fill(out, _of_unit(out.dtype, "geometric", (base,), transform), generator)


def bernoulli_(out: np.ndarray, probability: float, generator: PhiloxGenerator) -> np.ndarray:
    """Ones with `probability`, else zeros: where a number of (0, 1] is below it."""
    random_fill.check_probability(probability)
    if out.size == 0:
        return out
    require_kernel(out.dtype, BERNOULLI_TYPES, "bernoulli_scalar_cuda_")
    kind, _ = _precision(out.dtype)
    bound = float(kind(probability))
    draw = _of_unit(out.dtype, "bernoulli", (bound,), lambda units: units < bound)
    return fill(out, draw, generator)


# -- integers --------------------------------------------------------------------------------------


def _integers(out: np.ndarray, extent: int, low: int, wide: bool,
              generator: PhiloxGenerator) -> np.ndarray:  # fmt: skip
    """low + (a word of 32 or of 64 bits) % extent; an extent of 2**64 takes words as they are."""
    take = philox.word64 if wide else philox.word32

    def number(words: Words, i: int) -> np.ndarray:
        values = remainder(take(words, i), extent).view(np.int64)
        return values + low if low else values

    kernel = "integers64" if wide else "integers32"
    return fill(out, Draw(number, kernel, 2 if wide else 4, (extent, low)), generator)


def random_(out: np.ndarray, generator: PhiloxGenerator) -> np.ndarray:
    """Integers of [0, largest]; for floats of [0, 2**digits]. `Tensor.random_()`."""
    if out.size == 0:
        return out
    require_kernel(out.dtype, tuple(FULL_RANGES), "random_kernel_cuda")
    return _integers(out, FULL_RANGES[out.dtype], 0, out.dtype in WIDE_FULL, generator)


def random_from_to_(
    out: np.ndarray, low: int, high: int | None, generator: PhiloxGenerator
) -> np.ndarray:
    """Integers of [low, high), or up to the dtype's largest when `high` is None."""
    if high is None and low == INT64_MIN:
        require_kernel(out.dtype, FULL_64_BITS, "random_full_64_bits_range_kernel_cuda")
        return _integers(out, 1 << 64, 0, True, generator)
    low, last = checked_bounds(out.dtype, low, high)
    extent = last - low + 1
    return _integers(out, extent, low, extent >= HALF_WORD_RANGE, generator)
