"""Fill arrays from a generator: torch's in-place distributions on the CPU, bit for bit.

Every function fills ``out`` in torch's order (memory order for permuted layouts), draws exactly the
words that torch's CPU kernel draws, and returns ``out``. Products that meet a sum in torch's
vectorised build are fused there; ``_affine`` says so here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import random_normal

if TYPE_CHECKING:
    from flambeau._core.generator import Generator

# A multiple of 16, small enough for the second-level cache.
CHUNK = 16384

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (np.dtype(np.float16), BFLOAT16)
FLOATS = (*HALVES, np.dtype(np.float32), np.dtype(np.float64))
COMPLEX_PARTS = {
    np.dtype(ml_dtypes.complex32): np.float16,
    np.dtype(np.complex64): np.float32,
    np.dtype(np.complex128): np.float64,
}

SCALAR_NAMES = {kind.numpy_dtype: (kind.scalar_name, kind.c_name) for kind in dt.ALL}
"""Names as they stand in torch's messages: the scalar type, and the C++ type."""
RANDOM_TYPES = tuple(kind.numpy_dtype for kind in dt.ALL if "float8" not in kind.name)
_UNSIGNED_WIDE = tuple(np.dtype(kind) for kind in (np.uint16, np.uint32, np.uint64))
# Bits of the significand, for the float types.
DIGITS = {np.dtype(np.float16): 11, BFLOAT16: 8, np.dtype(np.float32): 24, np.dtype(np.float64): 53}
LARGEST = {dtype: float(ml_dtypes.finfo(dtype).max) for dtype in DIGITS}

Fill = Callable[[int], np.ndarray]


def _no_kernels(out: np.ndarray, work: str = "random") -> Any:
    return None


class Compiled:
    """Where a layer that compiles kernels says which module fills an array faster, with the same
    results: ``kernels(out, work)`` is the module or None."""

    kernels: Callable[..., Any] = staticmethod(_no_kernels)


# -- walking over the output --------------------------------------------------------------------


def memory_order(out: np.ndarray) -> np.ndarray:
    """A view of ``out`` whose dims go from the largest stride to the smallest."""
    if out.flags.c_contiguous:
        return out
    dims = sorted(range(out.ndim), key=lambda dim: -abs(out.strides[dim]))
    return out.transpose(dims)


def as_real(out: np.ndarray) -> np.ndarray:
    """The real and imaginary parts of a complex array as a last dim of two."""
    return out[..., None].view(COMPLEX_PARTS[out.dtype])


def _chunks(out: np.ndarray) -> Iterator[slice]:
    for start in range(0, out.size, CHUNK):
        yield slice(start, min(start + CHUNK, out.size))


def fill(out: np.ndarray, draw: Fill) -> np.ndarray:
    """Fill ``out`` in memory order with ``draw(count)``, a chunk at a time."""
    if out.flags.c_contiguous:
        flat = out.reshape(-1)
        if flat.size <= CHUNK:
            store(flat, draw(flat.size))
        else:
            _fill_flat(flat, draw)
        return out
    view = memory_order(out)
    values = np.empty(view.size, out.dtype)
    _fill_flat(values, draw)
    view[...] = values.reshape(view.shape)
    return out


def _fill_flat(flat: np.ndarray, draw: Fill) -> None:
    for part in _chunks(flat):
        store(flat[part], draw(part.stop - part.start))


def store(target: np.ndarray, values: np.ndarray) -> None:
    """Write with C's conversions: doubles reach the 16-bit floats by way of float32."""
    if values.dtype is target.dtype or values.dtype.kind == "b":
        target[...] = values
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if target.dtype in HALVES:
            values = values.astype(np.float32, copy=False)
        target[...] = values


def require_kernel(dtype: np.dtype, allowed: tuple[np.dtype, ...], kernel: str) -> None:
    """Raise torch's NotImplementedError unless ``dtype`` is among those the kernel has."""
    if dtype not in allowed:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{SCALAR_NAMES[dtype][0]}'")


def require_bounds(value: float, name: str, low: float, high: float, dtype: np.dtype) -> None:
    if not low <= value <= high:
        raise RuntimeError(f"{name} is out of bounds for {SCALAR_NAMES[dtype][1]}")


# -- uniform and normal -------------------------------------------------------------------------


_UNIT_DRAWS: dict[np.dtype, Callable[[Generator, int], np.ndarray]] = {
    np.dtype(np.float32): lambda generator, count: generator.units(count),
    np.dtype(np.float64): lambda generator, count: generator.units64(count),
}


def uniform_(out: np.ndarray, low: float, high: float, generator: Generator) -> np.ndarray:
    """Uniform on [low, high) for float and complex dtypes; the 16-bit floats draw 24 bits too.

    Errors: NotImplementedError for other dtypes, RuntimeError for bounds that do not fit.
    """
    if out.dtype in COMPLEX_PARTS:
        uniform_(as_real(out), low, high, generator)
        return out
    units = _UNIT_DRAWS.get(out.dtype) if low == 0 and high == 1 else None
    fast = Compiled.kernels(out, "random" if units is None else "random units")
    if units is not None and fast is None:
        if out.ndim == 1 and out.size <= CHUNK:
            out[...] = units(generator, out.size)
            return out
        return fill(out, partial(units, generator))
    check_uniform(out.dtype, low, high)
    wide = out.dtype == np.float64
    compute = np.float64 if wide else np.float32
    start = compute(low)
    span = compute(high) - start
    end = out.dtype.type(compute(high))
    first = out.dtype.type(compute(low))
    if fast is not None:
        fast.uniform(out, float(span), float(start), float(end), generator)
        return out

    def draw(count: int) -> np.ndarray:
        units = generator.units64(count) if wide else generator.units(count)
        values = _affine(units, span, start).astype(out.dtype, copy=False)
        # a value that rounded up to the open end becomes the closed one
        np.putmask(values, values == end, first)
        return values

    return fill(out, draw)


def check_uniform(dtype: np.dtype, low: float, high: float) -> None:
    require_kernel(dtype, FLOATS, "check_uniform_bounds")
    largest = LARGEST[dtype]
    require_bounds(low, "from", -largest, largest, dtype)
    require_bounds(high, "to", -largest, largest, dtype)
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{SCALAR_NAMES[dtype][0]}>::max(), "
            f"but found to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def _affine(units: np.ndarray, span: np.floating, start: np.floating) -> np.ndarray:
    """``units * span + start`` with one rounding."""
    if units.dtype == np.float64:
        return random_normal.fused_multiply_add(units, float(span), float(start))
    if start == 0:
        return units * span
    wide = units.astype(np.float64)
    wide *= float(span)
    wide += float(start)
    return wide.astype(np.float32)


def normal_(out: np.ndarray, mean: float, std: float, generator: Generator) -> np.ndarray:
    """Normal numbers for float and complex dtypes.

    Contiguous arrays of 16 elements or more go through blocks of 16 uniforms, others through
    pairs in double precision whose second number may wait in the generator.
    Errors: RuntimeError for a negative ``std``, NotImplementedError for other dtypes.
    """
    check_deviation(std)
    if out.size == 0:
        return out
    if out.dtype in COMPLEX_PARTS:
        # real and imaginary part share the variance
        normal_(as_real(out), mean, std / math.sqrt(2.0), generator)
        return out
    require_kernel(out.dtype, FLOATS, "normal_kernel_cpu")
    if out.size >= 16 and out.flags.c_contiguous:
        _normal_blocks(out.reshape(-1), mean, std, generator)
        return out

    def draw(count: int) -> np.ndarray:
        return serial_normals(count, mean, std, generator)

    return fill(out, draw)


def check_deviation(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _normal_blocks(flat: np.ndarray, mean: float, std: float, generator: Generator) -> None:
    """Box and Muller over blocks of 16; an odd tail recomputes the last 16 from new numbers."""
    whole = flat.size - flat.size % 16
    fast = Compiled.kernels(flat, "random_normal")
    fill_blocks = _numpy_blocks if fast is None else partial(_compiled_blocks, fast)
    fill_blocks(flat if whole == flat.size else flat[:whole], mean, std, generator)
    if whole == flat.size:
        return
    if flat.dtype not in HALVES:
        # the wider types draw for every element first, and these draws are lost
        generator.words((flat.size - whole) * (2 if flat.dtype == np.float64 else 1))
    fill_blocks(flat[-16:], mean, std, generator)


def _numpy_blocks(flat: np.ndarray, mean: float, std: float, generator: Generator) -> None:
    wide = flat.dtype == np.float64
    transform = random_normal.BLOCK_TRANSFORMS["double" if wide else "single"]
    units = generator.units64 if wide else generator.units
    for part in _chunks(flat):
        count = part.stop - part.start
        store(flat[part], transform(units(count).reshape(-1, 16), mean, std).reshape(-1))


def _compiled_blocks(
    fast: Any, flat: np.ndarray, mean: float, std: float, generator: Generator
) -> None:
    if flat.dtype not in HALVES:
        fast.normal_blocks(flat, mean, std, generator)
        return
    for part in _chunks(flat):
        singles = np.empty(part.stop - part.start, np.float32)
        fast.normal_blocks(singles, mean, std, generator)
        store(flat[part], singles)


def serial_normals(count: int, mean: float, std: float, generator: Generator) -> np.ndarray:
    """Normals in double precision, one after another, as float64 of shape (count,)."""
    if count <= 16:
        values = np.array(generator.normals(count))
        return random_normal.fused_multiply_add(values, std, mean)
    values = np.empty(count + 2)
    begin = 0
    if generator.next_normal is not None:
        values[0] = generator.next_normal
        generator.next_normal = None
        begin = 1
    pairs = (count - begin + 1) // 2
    end = begin + 2 * pairs
    units = generator.units64(2 * pairs).reshape(-1, 2)
    values[begin:end] = random_normal.normal_pairs(units).reshape(-1)
    if end > count:
        generator.next_normal = float(values[count])
    return random_normal.fused_multiply_add(values[:count], std, mean)


# -- Bernoulli ----------------------------------------------------------------------------------

BERNOULLI_TYPES = tuple(dtype for dtype in RANDOM_TYPES if dtype.kind not in "c")
BERNOULLI_TYPES = tuple(dtype for dtype in BERNOULLI_TYPES if dtype not in _UNSIGNED_WIDE)
_LOW_53 = np.uint64((1 << 53) - 1)
_PROBABILITY_ERROR = (
    "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
    "(Could this error message be improved?  If so, please report an enhancement request "
    "to PyTorch.)"
)


def bernoulli_(out: np.ndarray, probability: float, generator: Generator) -> np.ndarray:
    """Ones with ``probability``, else zeros; a 64-bit draw each. Dropout masks are made so.

    Errors: RuntimeError unless 0 <= probability <= 1; NotImplementedError for complex.
    """
    check_probability(probability)
    if out.size == 0:
        return out
    require_kernel(out.dtype, BERNOULLI_TYPES, "bernoulli_scalar_cpu_")
    # u < p for u = k * 2**-53, in whole numbers
    bound = np.uint64(math.ceil(probability * 2.0**53))
    fast = Compiled.kernels(out)
    if fast is not None:
        fast.bernoulli(out, int(bound), generator)
        return out

    def draw(count: int) -> np.ndarray:
        bits = generator.words64(count)
        bits &= _LOW_53
        return bits < bound

    return fill(out, draw)


def check_probability(probability: float) -> None:
    if not 0 <= probability <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={probability:g}")


def dropout_mask_(
    mask: np.ndarray, input: np.ndarray, keep: float, generator: Generator
) -> np.ndarray:
    """Which elements of ``input`` dropout keeps, into booleans of its shape."""
    return bernoulli_(mask, keep, generator)


def bernoulli_tensor_(out: np.ndarray, probability: np.ndarray, generator: Generator) -> np.ndarray:
    """Ones with the probability that stands at the same place; broadcast to ``out``'s shape.

    Double probabilities take 64-bit draws, the other floats 32-bit draws of 24 bits.
    """
    if out.size == 0:
        return out
    require_kernel(out.dtype, BERNOULLI_TYPES, "bernoulli_tensor_cpu_self_")
    require_kernel(probability.dtype, FLOATS, "bernoulli_tensor_cpu_p_")
    wide = probability.dtype == np.float64
    chances = np.broadcast_to(probability, out.shape)
    if not wide:
        chances = chances.astype(np.float32)
    check_chances(chances)
    order = sorted(range(out.ndim), key=lambda dim: -abs(out.strides[dim]))
    if not out.flags.c_contiguous:
        chances = chances.transpose(order)
    flat = np.ascontiguousarray(chances).reshape(-1)
    fast = None if wide else Compiled.kernels(out)
    if fast is not None:
        fast.bernoulli_each(out, flat, generator)
        return out
    drawn = 0

    def draw(count: int) -> np.ndarray:
        nonlocal drawn
        units = generator.units64(count) if wide else generator.units(count)
        part = flat[drawn : drawn + count]
        drawn += count
        return units < part

    return fill(out, draw)


def check_chances(chances: np.ndarray) -> None:
    if not bool(((chances >= 0) & (chances <= 1)).all()):
        raise RuntimeError(_PROBABILITY_ERROR)


# -- from one double each -----------------------------------------------------------------------


def exponential_(out: np.ndarray, rate: float, generator: Generator) -> np.ndarray:
    """``-log(1 - u) / rate`` for float dtypes. Errors: RuntimeError unless rate > 0."""
    check_rate(rate)
    if out.size == 0:
        return out
    check_continuous(out.dtype, "Exponential", SCALAR_NAMES[out.dtype][0])
    scale = -1.0 / rate
    fast = Compiled.kernels(out)
    if fast is not None:
        fast.exponential(out, scale, generator)
        return out
    log1p = random_normal.libm("log1p")
    return fill(out, lambda count: scale * log1p(-generator.units64(count)))


def check_rate(rate: float) -> None:
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")


def check_sigma(sigma: float) -> None:
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")


def check_continuous(dtype: np.dtype, law: str, name: str) -> None:
    """Raise torch's error for a dtype without fractions, under the name that it has there."""
    if dtype not in FLOATS:
        raise RuntimeError(
            f"{law} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {name}"
        )


def cauchy_(out: np.ndarray, median: float, sigma: float, generator: Generator) -> np.ndarray:
    """``median + sigma * tan(pi * (u - 1/2))`` for float dtypes. Errors: unless sigma > 0."""
    check_sigma(sigma)
    check_continuous(out.dtype, "Cauchy", SCALAR_NAMES[out.dtype][1])
    tan = random_normal.libm("tan")

    def draw(count: int) -> np.ndarray:
        tangent = tan(math.pi * (generator.units64(count) - 0.5))
        return random_normal.fused_multiply_add(tangent, sigma, median)

    return fill(out, draw)


def log_normal_(out: np.ndarray, mean: float, std: float, generator: Generator) -> np.ndarray:
    """The exponential of a normal number, for float dtypes. Errors: unless std > 0."""
    check_log_deviation(std)
    if out.size == 0:
        return out
    require_kernel(out.dtype, FLOATS, "log_normal_cpu")
    exp = random_normal.libm("exp")

    def draw(count: int) -> np.ndarray:
        with np.errstate(over="ignore"):
            return exp(serial_normals(count, mean, std, generator))

    return fill(out, draw)


def check_log_deviation(std: float) -> None:
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")


GEOMETRIC_TYPES = tuple(dtype for dtype in BERNOULLI_TYPES if dtype != np.bool_)


def geometric_(out: np.ndarray, probability: float, generator: Generator) -> np.ndarray:
    """Trials up to the first success: ``ceil(log(u) / log(1 - p))``; all dtypes but bool, complex.

    Errors: RuntimeError unless 0 < probability < 1.
    """
    check_success(probability)
    if out.size == 0:
        return out
    require_kernel(out.dtype, GEOMETRIC_TYPES, "geometric_cpu")
    log = random_normal.libm("log")
    base = math.log1p(-probability)
    whole = out.dtype.kind in "iu"

    def draw(count: int) -> np.ndarray:
        trials = np.ceil(log(generator.units64(count)) / base)
        return trials.astype(np.int64) if whole else trials

    return fill(out, draw)


def check_success(probability: float) -> None:
    if not 0 < probability < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={probability:g}")
