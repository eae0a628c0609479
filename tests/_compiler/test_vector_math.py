"""The elementary functions of kernels: errors in units of the last place, and special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._compiler import language
from flambeau._compiler.native import from_source
from flambeau._compiler.types import OF_NUMPY
from flambeau._compiler.vector_math import VECTOR_MATH
from flambeau._runtime.launch import kernel

Array = np.ndarray
INF, NAN = float("inf"), float("nan")

SOURCE = """
def apply(x: pointer(T), y: pointer(T), out: pointer(T), n: i64,
          F: static, BOTH: static, T: static, WIDE: static, W: static):
    for i in range(0, n, W):
        if BOTH:
            store(out + i, T(F(WIDE(load(x + i, W)), WIDE(load(y + i, W)))))
        else:
            store(out + i, T(F(WIDE(load(x + i, W)))))
"""
APPLY = from_source("apply", SOURCE, vars(language))


def apply(name: str, x: Array, y: Array | None = None, width: int = 16) -> Array:
    """A function of the table, applied by a kernel; half types go through f32."""
    size = -x.size % 16
    x = np.concatenate([x, x[:1].repeat(size)])
    y = x if y is None else np.concatenate([y, y[:1].repeat(size)])
    out = np.empty_like(x)
    type = OF_NUMPY[x.dtype.name]
    wide = language.f32 if type.bits == 16 else type
    k = kernel(APPLY, F=VECTOR_MATH[name], BOTH=y is not x, T=type, WIDE=wide, W=width)
    k(x, y, out, x.size)
    return out[: x.size - size]


def errors(got: Array, wanted: Array, digits: int, smallest: float) -> Array:
    """|got - wanted| in units of the last of `digits` binary places of `wanted`; 0 where both are
    nan or the same infinity, infinite where only one of them is."""
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.maximum(np.abs(wanted), smallest))[1] - digits
        unit = np.ldexp(np.ones((), wanted.dtype), exponent)
        found = np.abs(got.astype(wanted.dtype) - wanted) / unit
        rounded = wanted.astype(got.dtype)
    finite = np.isfinite(wanted) & np.isfinite(got)
    same = (got == rounded) | (np.isnan(got) & np.isnan(wanted))
    return np.where(finite, found, np.where(same, 0, INF))


def single_errors(got: Array, wanted: Array) -> Array:
    return errors(got, np.asarray(wanted, np.float64), 24, 2.0**-126)


def by_math(function: Callable[..., float]) -> Callable[..., Array]:
    return lambda *x: np.frompyfunc(function, len(x), 1)(*x).astype(np.float64)


def inverse_of_erf(x: Array) -> Array:
    """By bisection and Newton's method on math.erf, in float64."""
    size = np.abs(x)
    low, high = np.zeros(x.shape), np.full(x.shape, 6.0)
    erfc = by_math(math.erfc)
    with np.errstate(all="ignore"):
        for _ in range(40):
            middle = (low + high) / 2
            below = erfc(middle) > 1 - size
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        slope = 2 / math.sqrt(math.pi) * np.exp(-low * low)
        gap = np.where(size < 0.5, by_math(math.erf)(low) - size, (1 - size) - erfc(low))
        found = np.where(size == 1, INF, low - gap / slope)
        return np.copysign(np.where(size <= 1, found, NAN), x)


@dataclass(frozen=True)
class Row:
    """A function: what it should be, its largest errors, and where to look closely."""

    name: str
    wanted: Any
    single: float = 2.0
    double: float = 2.0
    near: tuple[float, ...] = (0.5, 1.0, 2.0, 10.0)
    points: int = 1 << 20


HALVES = tuple(k * math.pi / 2 for k in (0.5, 1, 1.5, 2, 3, 5, 100, 10001))
ROWS = [
    Row("exp", np.exp, 1, near=(0.35, 1, 10, 87, 88.7, 103.9)),
    Row("exp2", np.exp2, near=(0.5, 1, 126, 127.9, 149)),
    Row("expm1", np.expm1, near=(1e-3, 0.35, 1.04, 17, 88.7)),
    Row("log", np.log, 1, near=(0.70710678, 1, 1.4142135, 1e-39)),
    Row("log2", np.log2, near=(0.70710678, 1, 1.4142135, 1e-39)),
    Row("log10", np.log10, near=(0.70710678, 1, 1.4142135, 1e-39)),
    Row("log1p", np.log1p, near=(0.29, 0.4142, 1, 1e8)),
    Row("tanh", np.tanh, 1, near=(0.625, 1, 9)),
    Row("sin", np.sin, 1, near=(*HALVES, 131072, 1e10, 3e38)),
    Row("cos", np.cos, 1, near=(*HALVES, 131072, 1e10, 3e38)),
    Row("tan", np.tan, near=(*HALVES, 131072, 1e10, 3e38)),
    Row("arcsin", np.arcsin, near=(0.5, 1)),
    Row("arccos", np.arccos, near=(0.5, 1)),
    Row("arctan", np.arctan, near=(0.4142, 1, 2.4142)),
    Row("sinh", np.sinh, near=(1, 5, 89)),
    Row("cosh", np.cosh, near=(1, 5, 89)),
    Row("arcsinh", np.arcsinh, near=(0.5, 1, 8192, 7e7)),
    Row("arccosh", np.arccosh, near=(1, 1.001, 2, 7e7)),
    Row("arctanh", np.arctanh, near=(0.17, 0.5, 1)),
    Row("erf", by_math(math.erf), 1, near=(0.5, 1, 3.9), points=1 << 17),
    Row("erfc", by_math(math.erfc), near=(0.5, 1, 5, 10), points=1 << 17),
    Row("erfinv", inverse_of_erf, near=(0.5, 0.99, 0.9999, 1), points=1 << 13),
]
PAIRS = [
    Row("power", np.power, 1, near=(0.99, 1.01, 3, 100)),
    Row("arctan2", np.arctan2, near=(0.4142, 1, 1e30)),
    Row("hypot", np.hypot, 1, near=(1, 1e30, 1e-30)),
    Row("fmod", np.fmod, 0, 0, near=(1, 1e30, 1e-30)),
]
EXACT = ("sqrt", "square", "reciprocal", "floor", "ceil", "trunc", "rint", "absolute", "sign")
SPECIAL = np.array([0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, -7, INF, -INF, NAN,
                    1e-45, -1e-45, 1e-40, 3e38, -3e38, 1e10, 2**24 + 1, 0.99999994,
                    1.0000001])  # fmt: skip
by_name: Any = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
by_pair: Any = pytest.mark.parametrize("row", PAIRS, ids=lambda row: row.name)


def points(row: Row, seed: int = 0) -> Array:
    """Bit patterns of float32, numbers around the places to look at, and special values."""
    random = np.random.default_rng(seed)
    count = row.points // 4
    anywhere = random.integers(0, 1 << 32, 2 * count, np.uint32).view(np.float32)
    close = random.choice(row.near, count) * (1 + random.normal(0, 1e-3, count))
    plain = random.uniform(-8, 8, count)
    with np.errstate(over="ignore"):
        signed = (close * random.choice([-1, 1], count)).astype(np.float32)
        special = SPECIAL.astype(np.float32)
    return np.concatenate([special, anywhere, signed, plain.astype(np.float32)])


def check(error: Array, bound: float, *arguments: Array) -> None:
    worst = int(error.argmax())
    assert error[worst] <= bound, (float(error[worst]), [float(a[worst]) for a in arguments])


@by_name
def test_float32(row: Row) -> None:
    x = points(row)
    with np.errstate(all="ignore"):
        wanted = row.wanted(x.astype(np.float64))
    got = apply(row.name, x)
    check(single_errors(got, wanted), row.single, x, got)
    zero = wanted == 0
    assert np.array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


@by_pair
def test_pairs_in_float32(row: Row) -> None:
    a, b = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(over="ignore"):
        x = np.concatenate([a.astype(np.float32), points(row, 1)])
        y = np.concatenate([b.astype(np.float32), np.random.default_rng(9).permuted(points(row))])
    with np.errstate(all="ignore"):
        wanted = row.wanted(x.astype(np.float64), y.astype(np.float64))
    got = apply(row.name, x, y)
    check(single_errors(got, wanted), row.single, x, y, got)
    zero = wanted == 0
    assert np.array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


DRAWS: tuple[Callable[[Any, int], Array], ...] = (
    lambda random, n: random.integers(0, 1 << 64, n, np.uint64).view(np.float64),
    lambda random, n: random.uniform(-4, 4, n),
    lambda random, n: 1 + random.uniform(-0.5, 0.5, n),
    lambda random, n: random.uniform(-750, 750, n),
    lambda random, n: np.round(random.uniform(0, 1e6, n)) * (math.pi / 4),
)
LONG: Any = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no longer type")


@LONG
@pytest.mark.parametrize("row", [r for r in [*ROWS, *PAIRS] if isinstance(r.wanted, np.ufunc)],
                         ids=lambda row: row.name)  # fmt: skip
def test_float64(row: Row) -> None:
    random = np.random.default_rng(3)
    x = np.concatenate([SPECIAL, *[draw(random, 4000) for draw in DRAWS]])
    arguments = [x] if row in ROWS else [x, random.permuted(x)]
    with np.errstate(all="ignore"):
        wanted = row.wanted(*[a.astype(np.longdouble) for a in arguments])
    got = apply(row.name, *arguments, width=4)
    check(errors(got, wanted, 53, 2.0**-1022), row.double, *arguments, got)


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "tan", "sin"])
def test_float64_in_fifty_digits(name: str) -> None:
    mpmath = pytest.importorskip("mpmath")
    random = np.random.default_rng(4)
    x = random.uniform(-1, 1, 300) if name == "erfinv" else random.uniform(-6, 26, 600)
    if name in ("sin", "tan"):
        x = np.concatenate([x, 2.0 ** random.uniform(20, 1023, 300)])
    with mpmath.workdps(360 if name in ("sin", "tan") else 50):
        wanted = [mpmath.mpf(getattr(mpmath, name)(mpmath.mpf(value))) for value in x.tolist()]
        got = apply(name, x, width=4)
        for value, have, want in zip(x.tolist(), got.tolist(), wanted, strict=True):
            unit = math.ulp(float(want))
            assert abs(mpmath.mpf(have) - want) <= 2 * unit, (value, have, want)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@by_name
def test_every_half(row: Row, half: str) -> None:
    import ml_dtypes

    type, digits, smallest = (
        (np.dtype(np.float16), 11, 2.0**-14)
        if half == "float16"
        else (np.dtype(ml_dtypes.bfloat16), 8, 2.0**-126)
    )
    x = np.arange(1 << 16, dtype=np.uint16).view(type)
    if row.name == "erfinv":
        x = x[np.abs(x.astype(np.float32)) <= 1]
    with np.errstate(all="ignore"):
        wanted = row.wanted(x.astype(np.float64))
        got = apply(row.name, x)
        check(errors(got, wanted, digits, smallest), 1, x, got)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("type", [np.float32, np.float64])
def test_exact(name: str, type: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.concatenate([SPECIAL, points(Row(name, None, points=1 << 12))]).astype(type)
        wanted = getattr(np, name)(x)
    got = apply(name, x)
    assert np.array_equal(got, wanted, equal_nan=True)
    number = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(got[number]), np.signbit(wanted[number])) or name == "sign"


def small_pairs() -> tuple[Array, Array]:
    random = np.random.default_rng(6)
    a, b = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))
    more = [random.uniform(-20, 20, 20000), np.round(random.uniform(-50, 50, 20000)),
            np.exp(random.uniform(-80, 80, 20000)) * random.choice([-1, 1], 20000)]  # fmt: skip
    x = np.concatenate([a, *more])
    return x, np.concatenate([b, *[random.permuted(part) for part in more]])


@pytest.mark.parametrize("type", [np.float32, np.float64])
def test_division_with_remainder(type: Any) -> None:
    with np.errstate(all="ignore"):
        x, y = (part.astype(type) for part in small_pairs())
        rest = np.fmod(x, y)
        rest = np.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)
        down = np.where(y == 0, x / y, np.floor_divide(x, y))
        whole = np.trunc(x / y)
    for name, wanted in (("remainder", rest), ("floor_divide", down), ("trunc_divide", whole)):
        got = apply(name, x, y)
        assert np.array_equal(got, wanted, equal_nan=True), name
        number = ~np.isnan(wanted)
        assert np.array_equal(np.signbit(got[number]), np.signbit(wanted[number])), name


@pytest.mark.parametrize("type", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials(name: str, type: Any) -> None:
    """The result may cancel: the error is counted in places of the larger argument."""
    with np.errstate(all="ignore"):
        x, y = (part.astype(type) for part in small_pairs())
        wanted = getattr(np, name)(x.astype(np.longdouble), y.astype(np.longdouble))
        got = apply(name, x, y)
        finite = np.isfinite(wanted)
        size = np.maximum(np.abs(np.maximum(x, y)), np.maximum(np.abs(wanted), 1))
        error = np.abs(got - wanted) / np.spacing(size.astype(type))
    assert error[finite].max() <= 2
    assert np.array_equal(got[~finite], wanted[~finite].astype(type), equal_nan=True)


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_one_number_and_vectors_agree(name: str) -> None:
    with np.errstate(all="ignore"):
        x = np.concatenate([points(Row(name, None, points=256)), np.float32([1e5, 2e5, 3e38])])
    one, many = apply(name, x, width=1), apply(name, x)
    assert np.array_equal(one, many, equal_nan=True)


def test_a_number_beside_a_vector() -> None:
    source = """
def powers(x: pointer(f32), out: pointer(f32), n: f32):
    store(out, P(load(x, 8), n))
    store(out + 8, P(n, load(x, 8)))
"""
    scope = {**vars(language), "P": VECTOR_MATH["power"]}
    x, out = np.linspace(-2, 2, 8).astype(np.float32), np.empty(16, np.float32)
    kernel(from_source("powers", source, scope))(x, out, 3.0)
    wanted = np.concatenate([x.astype(np.float64) ** 3, 3.0 ** x.astype(np.float64)])
    check(single_errors(out, wanted), 1, np.concatenate([x, x]), out)
