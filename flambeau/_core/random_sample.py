"""Permutations and samplers that reject: torch's CPU algorithms, word for word.

The rejection samplers are Marsaglia and Tsang's gamma (2000, doi:10.1145/358407.358414),
Hormann's transformed rejection for Poisson and binomial numbers (1993), inversion for small means.
They run one element after another, as each takes a number of draws that depends on the draws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from flambeau._core import random_fill
from flambeau._core.random_fill import BFLOAT16, DIGITS, SCALAR_NAMES, require_kernel, store

if TYPE_CHECKING:
    from flambeau._core.generator import Generator

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_WIDE_FLOATS = (_SINGLE, _DOUBLE)

# -- permutations -------------------------------------------------------------------------------

_PERMUTATION_TYPES = tuple(np.dtype(code) for code in "Bbhiqefd") + (BFLOAT16,)
# torch looks at these only: bfloat16 permutations repeat values.
_COUNT_LIMITS = {
    np.dtype(np.float16): ((1 << 11) + 1, "2049"),
    _SINGLE: ((1 << 24) + 1, "2^24+1"),
    _DOUBLE: ((1 << 53) + 1, "2^53+1"),
}
# From here on one 32-bit word would favour the small remainders.
_LARGE_PERMUTATION = ((1 << 32) - 1) // 20
_SMALL_PERMUTATION = 1000

SAMPLERS = "random samplers"
"""Those that reject, as a kind of work."""


def randperm(size: int, dtype: np.dtype, generator: Generator) -> np.ndarray:
    """A random permutation of ``range(size)`` as an array of shape (size,).

    Errors: RuntimeError for a negative size or one that the dtype cannot count to.
    """
    _require_permutation(size, dtype)
    shuffle = _shuffled if size < _LARGE_PERMUTATION else _shuffled_inside_out
    order = shuffle(size, generator)
    if dtype == order.dtype:
        return order
    values = np.empty(size, dtype)
    store(values, order)
    return values


def check_permutation(size: int, dtype: np.dtype) -> None:
    """Raise torch's error for a negative size or one that the dtype cannot count to."""
    if size < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {size}: [{size}]")
    _check_countable(size, dtype)


@lru_cache(64)
def _require_permutation(size: int, dtype: np.dtype) -> None:
    check_permutation(size, dtype)
    require_kernel(dtype, _PERMUTATION_TYPES, "randperm")


def _check_countable(size: int, dtype: np.dtype) -> None:
    if dtype in _COUNT_LIMITS:
        limit, text = _COUNT_LIMITS[dtype]
        if size > limit:
            name = SCALAR_NAMES[dtype][0]
            raise RuntimeError(f"n cannot be greater than {text} for {name} type.")
    if dtype.kind in "iu" and size > 1 << (8 * dtype.itemsize - (dtype.kind == "i")):
        name = f"{dtype.name}_t"
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")


def _shuffled(size: int, generator: Generator) -> np.ndarray:
    """Swap element i with one of those from i on, i ascending (Fisher and Yates)."""
    if size == 0:
        return np.empty(0, np.int64)
    result = np.empty(size, np.int64)
    fast = random_fill.Compiled.kernels(result)
    if fast is not None:
        fast.shuffle(result, generator)
        return result
    left = np.arange(size, 1, -1, dtype=np.uint32)
    targets = (generator.words(size - 1) % left).astype(np.int64)
    targets += np.arange(size - 1)
    if size > _SMALL_PERMUTATION:
        return _follow_swaps(targets)
    order = list(range(size))
    for place, target in enumerate(targets.tolist()):
        order[place], order[target] = order[target], order[place]
    return np.array(order, np.int64)


def _follow_swaps(targets: np.ndarray) -> np.ndarray:
    """What the swaps (i, targets[i]), i ascending, targets[i] >= i, make of range(n + 1).

    All at once: the element that step i finds at its own place was put there by the last earlier
    step that aimed at i, and was what that step found at its own place, and so on back; pointer
    doubling walks all these chains in a few rounds.
    """
    steps = np.arange(targets.size)
    moved = targets != steps
    places = np.arange(targets.size + 1)
    found = places.copy()
    found[targets[moved]] = steps[moved]
    active = np.flatnonzero(found != places)
    while active.size:
        near = found[active]
        far = found[near]
        unfinished = far != near
        active = active[unfinished]
        found[active] = far[unfinished]
    # The step before i with the same target left its own element there.
    key = targets << 32
    key |= steps
    key.sort()
    sorted_targets, sorted_steps = key >> 32, key & 0xFFFFFFFF
    repeated = np.flatnonzero(sorted_targets[1:] == sorted_targets[:-1])
    result = np.append(targets, found[-1])
    result[:-1][~moved] = found[:-1][~moved]
    result[sorted_steps[repeated + 1]] = found[sorted_steps[repeated]]
    return result


def _shuffled_inside_out(size: int, generator: Generator) -> np.ndarray:
    """The variant with 64-bit draws: element i goes to a place up to i, its owner goes to i."""
    order = np.empty(size, np.int64)
    for start in range(0, size, random_fill.CHUNK):
        stop = min(start + random_fill.CHUNK, size)
        bounds = np.arange(start + 1, stop + 1, dtype=np.uint64)
        targets = (generator.words64(stop - start) % bounds).tolist()
        for place, target in zip(range(start, stop), targets, strict=True):
            order[place] = order[target] if target != place else place
            order[target] = place
    return order


# -- multinomial --------------------------------------------------------------------------------


def multinomial(
    weights: np.ndarray, count: int, replacement: bool, generator: Generator
) -> np.ndarray:
    """Indices drawn by weight along the last dim: (n,) to (count,), (m, n) to (m, count), int64.

    Without replacement, equal races (frequent with 16-bit weights only) keep the order of their
    indices, where torch's order is its sort's.
    Errors: RuntimeError for other ranks, dtypes, counts, or weights that are no distribution.
    """
    check_multinomial(weights, count, replacement)
    rows = np.atleast_2d(weights)
    if replacement and count > 1:
        drawn = _rows_with_replacement(rows, count, generator)
        return drawn.reshape(*weights.shape[:-1], count)
    return race(weights, count, random_fill.exponential_, generator)


def race(
    weights: np.ndarray, count: int, exponential_: Callable[..., Any], generator: Generator
) -> np.ndarray:
    """Indices drawn without replacement: the largest of w / Exp(1) is i with probability w[i]."""
    rows = weights.reshape(-1, weights.shape[-1])
    check_weights(rows)
    # memory is filled in its order; that of expanded weights is the one of their dims
    noise = np.empty_like(weights, order="C" if 0 in weights.strides else "K")
    exponential_(noise, 1.0, generator)
    with np.errstate(divide="ignore", invalid="ignore"):
        races = (rows / noise.reshape(rows.shape)).astype(weights.dtype).astype(np.float64)
    if count == 1:
        best = races.argmax(-1)
    else:
        best = np.argsort(-races, axis=-1, kind="stable")[:, :count]
    return best.astype(np.int64).reshape(*weights.shape[:-1], count)


def check_multinomial(weights: np.ndarray, count: int, replacement: bool) -> None:
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype not in DIGITS:
        name = SCALAR_NAMES[weights.dtype][0]
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {name}"
        )
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if weights.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")


INVALID_WEIGHTS = "probability tensor contains either `inf`, `nan` or element < 0"
INVALID_SUM = "invalid multinomial distribution (sum of probabilities <= 0)"


def check_weights(rows: np.ndarray) -> None:
    wide = rows.astype(np.float64)
    if not bool((np.isfinite(wide) & (wide >= 0)).all()):
        raise RuntimeError(INVALID_WEIGHTS)
    if not bool((wide > 0).any(-1).all()):
        raise RuntimeError(INVALID_SUM)


def _rows_with_replacement(rows: np.ndarray, count: int, generator: Generator) -> np.ndarray:
    wide = rows.astype(rows.dtype if rows.dtype in _WIDE_FLOATS else _SINGLE, order="C")
    fast = random_fill.Compiled.kernels(wide, SAMPLERS)
    if fast is not None and wide.size and _are_weights(wide):
        return fast.categories(wide, count, generator)  # type: ignore[no-any-return]
    drawn = [_with_replacement(row, count, generator) for row in rows]
    return np.array(drawn, np.int64)


def _are_weights(rows: np.ndarray) -> bool:
    """Whether every row can be drawn from; False where there is a NaN."""
    largest = rows.max(-1)
    return bool(rows.min() >= 0 and largest.min() > 0 and largest.max() < np.inf)


def _with_replacement(row: np.ndarray, count: int, generator: Generator) -> np.ndarray:
    """Binary search of 64-bit uniforms in the cumulative weights, which the row's dtype sums."""
    kind = row.dtype if row.dtype in _WIDE_FLOATS else _SINGLE
    row = row.astype(kind)
    if not bool((row >= 0).all()):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not bool(np.isfinite(row).all()):
        raise RuntimeError(
            "invalid multinomial distribution (encountering probability entry = infinity or NaN)"
        )
    sums = np.cumsum(row, dtype=kind)
    if not (sums.size and sums[-1] > 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    sums /= sums[-1]
    sums[-1] = 1
    return np.searchsorted(sums.astype(np.float64), generator.units64(count), side="left")


# -- Poisson ------------------------------------------------------------------------------------


def poisson(rates: np.ndarray, generator: Generator) -> np.ndarray:
    """Poisson numbers with the given rates, same shape and dtype. Errors: a negative rate."""
    require_kernel(rates.dtype, tuple(DIGITS), "poisson_cpu")
    wide = rates.astype(np.float64).ravel()
    fast = random_fill.Compiled.kernels(wide, SAMPLERS)
    if fast is None:
        drawn = np.array([_poisson(rate, generator) for rate in wide.tolist()], np.float64)
        return shaped(drawn, rates)
    drawn = fast.poisson(wide, generator)
    if np.isnan(drawn).any():
        check_rates(wide)
    return shaped(drawn, rates)


def _poisson(rate: float, generator: Generator) -> int:
    if not rate >= 0:
        check_rates(rate)
    if rate == 0:
        return 0
    if rate >= 10:
        return poisson_by_rejection(rate, generator)
    limit = math.exp(-rate)
    product = generator.unit()
    count = 0
    while product > limit:
        product *= generator.unit()
        count += 1
    return count


def check_rates(rates: Any) -> None:
    if not np.all(rates >= 0):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")


def poisson_by_rejection(rate: float, generator: Any) -> int:
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = generator.unit() - 0.5
        v = generator.unit()
        us = 0.5 - abs(u)
        # torch divides by zero here once in 2**53 draws; the draw is then refused
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= squeeze:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = _log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


# -- gamma, Dirichlet ---------------------------------------------------------------------------

_THIRD = float(np.float32(1.0) / np.float32(3.0))
_SQUEEZE = float(np.float32(0.0331))


def standard_gamma(alphas: np.ndarray, generator: Generator) -> np.ndarray:
    """Gamma numbers of scale 1, same shape and dtype as ``alphas``, float32 or float64."""
    require_kernel(alphas.dtype, _WIDE_FLOATS, "gamma_cpu")
    single = alphas.dtype == _SINGLE
    wide = alphas.astype(np.float64).ravel()
    fast = random_fill.Compiled.kernels(wide, SAMPLERS)
    if fast is None:
        drawn = np.array([_gamma(alpha, single, generator) for alpha in wide.tolist()], np.float64)
    else:
        drawn = fast.standard_gamma(wide, single, generator)
    values = shaped(drawn, alphas)
    smallest = ml_dtypes.finfo(alphas.dtype).tiny
    # in this form, NaN gives the smallest number too
    return np.where(values > smallest, values, smallest)


def dirichlet(alphas: np.ndarray, generator: Generator) -> np.ndarray:
    """Points of the simplex along the last dim, same shape and dtype as ``alphas``."""
    require_kernel(alphas.dtype, _WIDE_FLOATS, "dirichlet")
    gammas = standard_gamma(alphas.astype(np.float64), generator)
    return shares(gammas, alphas.dtype)


def shares(gammas: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Gamma numbers over their sum along the last dim: neither 0 nor 1."""
    parts = (gammas / gammas.sum(-1, keepdims=True)).astype(dtype)
    below_one = np.nextafter(dtype.type(1), dtype.type(0))
    return np.minimum(below_one, np.maximum(ml_dtypes.finfo(dtype).tiny, parts))


def _gamma(alpha: float, single: bool, generator: Generator) -> float:
    """One number; ``single`` keeps ``alpha``'s own arithmetic in float32, as torch does."""
    scale = 1.0
    if alpha < 1.0:
        if alpha == 0.0:
            return 0.0
        power = float(np.float32(1.0) / np.float32(alpha)) if single else 1.0 / alpha
        scale = (1.0 - generator.unit()) ** power
        alpha = _in_single(alpha + 1.0, single)
    d = _in_single(alpha - _THIRD, single)
    c = 1.0 / math.sqrt(9.0 * d) if d > 0 else math.nan
    while True:
        x = generator.normal()
        y = 1.0 + c * x
        while y <= 0:
            x = generator.normal()
            y = 1.0 + c * x
        v = y * y * y
        u = 1.0 - generator.unit()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def _in_single(value: float, single: bool) -> float:
    return float(np.float32(value)) if single else value


# -- binomial -----------------------------------------------------------------------------------

# log(k!) less Stirling's formula, for k below ten.
_STIRLING_TAILS = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


def binomial(counts: np.ndarray, chances: np.ndarray, generator: Generator) -> np.ndarray:
    """Successes out of ``counts`` trials with ``chances``; both of one shape and float dtype."""
    require_kernel(counts.dtype, _WIDE_FLOATS, "binomial_cpu")
    given = counts.ravel(), chances.ravel()
    fast = random_fill.Compiled.kernels(given[0], SAMPLERS)
    if fast is not None:
        drawn = fast.binomial(*given, generator)
        return drawn.reshape(counts.shape)  # type: ignore[no-any-return]
    kind = counts.dtype.type
    pairs = zip(*given, strict=True)
    chosen = [one_binomial(kind, count, chance, generator) for count, chance in pairs]
    return np.array(chosen, counts.dtype).reshape(counts.shape)


def one_binomial(
    kind: type[np.floating], count: np.floating, chance: np.floating, generator: Any
) -> np.floating:
    """One number; float32 arguments keep float32 arithmetic among themselves."""
    if count <= 0 or chance <= 0:
        return kind(0)
    if chance >= 1:
        return count
    if chance <= 0.5:
        return _binomial_small_chance(kind, count, chance, generator)
    if chance > 0.5:
        failure = kind(1.0 - float(chance))
        return count - _binomial_small_chance(kind, count, failure, generator)
    return kind(math.nan)


def _binomial_small_chance(
    kind: type[np.floating], count: np.floating, chance: np.floating, generator: Generator
) -> np.floating:
    if count * chance >= 10:
        return kind(_binomial_by_rejection(count, chance, generator))
    log_failure = float(np.log1p(-chance))
    total, limit = 0.0, float(count)
    if math.isnan(limit):  # torch would draw for ever
        return kind(math.nan)
    for successes in itertools.count():
        total += math.ceil(_log(generator.unit()) / log_failure)
        if total > limit:
            return kind(successes)
    raise AssertionError("unreachable")


def _binomial_by_rejection(count: np.floating, chance: np.floating, generator: Generator) -> float:
    """Hormann's BTRS. Names in the formulas are the paper's."""
    one = chance.dtype.type(1)
    deviation = float(np.sqrt(count * chance * (one - chance)))
    n, p = float(count), float(chance)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = float(count * chance) + 0.5
    squeeze = 0.92 - 4.2 / b
    r = float(chance / (one - chance))
    alpha = (2.83 + 5.1 / b) * deviation
    m = float(np.floor((count + one) * chance))
    while True:
        u = generator.unit() - 0.5
        v = generator.unit()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= squeeze:
            return float(k)
        if _log(v * alpha / (a / (us * us) + b)) <= _log_ratio(n, m, float(k), r):
            return float(k)


def _log_ratio(n: float, m: float, k: float, r: float) -> float:
    """The log of the probability of ``k`` over that of the mode ``m``."""
    ratio = (m + 0.5) * math.log((m + 1) / (r * (n - m + 1)))
    ratio += (n + 1) * math.log((n - m + 1) / (n - k + 1))
    ratio += (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
    ratio += _stirling_tail(m) + _stirling_tail(n - m)
    return ratio - _stirling_tail(k) - _stirling_tail(n - k)


def _stirling_tail(k: float) -> float:
    if k < len(_STIRLING_TAILS):
        return _STIRLING_TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


# -- leaky slopes -------------------------------------------------------------------------------


def rrelu_noise(values: np.ndarray, lower: float, upper: float, generator: Generator) -> np.ndarray:
    """Slopes for ``rrelu``: uniform on [lower, upper) where ``values <= 0``, else one."""
    noise = np.ones(values.shape, values.dtype)
    leaky = values <= 0
    # the bounds pass through the dtype
    start, end = np.array([lower, upper], values.dtype).tolist()
    units = generator.units64(int(np.count_nonzero(leaky)))
    noise[leaky] = (units * (end - start) + start).astype(values.dtype)
    return noise


def shaped(drawn: np.ndarray, model: np.ndarray) -> np.ndarray:
    """``drawn`` in the shape and dtype of ``model``, C-contiguous."""
    result = np.empty(model.shape, model.dtype)
    store(result, drawn.reshape(model.shape))
    return result
