"""The elementary functions of kernels: errors and speed, beside NumPy's and PyTorch's.

Usage: `python benchmarks/vector_math.py [names] [--every]`. Errors are in units of the last place
against float64 (float32: random bit patterns, with `--every` all 2**32 of them for functions of
one argument) and against NumPy's long double (float64). Speeds are elements per nanosecond in one
thread, over arrays that stay in the cache.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flambeau._compiler import language
from flambeau._compiler.native import from_source
from flambeau._compiler.vector_math import VECTOR_MATH
from flambeau._runtime import features
from flambeau._runtime.launch import kernel

COUNT = 1 << 15  # in the second cache; a call costs as much as 2,000 elements
SOURCE = """
def one(x: pointer(T), out: pointer(T), n: i64, F: static, T: static, W: static):
    for i in range(0, n, W):
        store(out + i, F(load(x + i, W)))

def two(x: pointer(T), y: pointer(T), out: pointer(T), n: i64, F: static, T: static, W: static):
    for i in range(0, n, W):
        store(out + i, F(load(x + i, W), load(y + i, W)))
"""
ONE, TWO = (from_source(text[4:7], text, vars(language))
            for text in SOURCE.strip().split("\n\n"))  # fmt: skip


def by_math(function: Callable[..., float]) -> Callable[[Any], Any]:
    return lambda x: np.frompyfunc(function, 1, 1)(x).astype(np.float64)


# Name -> low, high (arguments to time), NumPy's function, PyTorch's name.
UNARY: dict[str, tuple[float, float, Any, str]] = {
    "exp": (-10, 10, np.exp, "exp"), "exp2": (-10, 10, np.exp2, "exp2"),
    "expm1": (-10, 10, np.expm1, "expm1"), "log": (0.01, 10, np.log, "log"),
    "log2": (0.01, 10, np.log2, "log2"), "log10": (0.01, 10, np.log10, "log10"),
    "log1p": (-0.9, 10, np.log1p, "log1p"), "tanh": (-8, 8, np.tanh, "tanh"),
    "sin": (-100, 100, np.sin, "sin"), "cos": (-100, 100, np.cos, "cos"),
    "tan": (-100, 100, np.tan, "tan"), "arcsin": (-1, 1, np.arcsin, "asin"),
    "arccos": (-1, 1, np.arccos, "acos"), "arctan": (-8, 8, np.arctan, "atan"),
    "sinh": (-8, 8, np.sinh, "sinh"), "cosh": (-8, 8, np.cosh, "cosh"),
    "arcsinh": (-8, 8, np.arcsinh, "asinh"), "arccosh": (1, 8, np.arccosh, "acosh"),
    "arctanh": (-1, 1, np.arctanh, "atanh"), "erf": (-4, 4, by_math(math.erf), "erf"),
    "erfc": (-4, 8, by_math(math.erfc), "erfc"), "erfinv": (-1, 1, None, "erfinv"),
}  # fmt: skip
BINARY: dict[str, tuple[float, float, Any, str]] = {
    "power": (0.1, 10, np.power, "pow"), "arctan2": (-4, 4, np.arctan2, "atan2"),
    "hypot": (-4, 4, np.hypot, "hypot"), "fmod": (-9, 9, np.fmod, "fmod"),
    "remainder": (-9, 9, None, "remainder"), "logaddexp": (-9, 9, None, "logaddexp"),
    "floor_divide": (-9, 9, None, "floor_divide"),
}  # fmt: skip


def compiled(name: str, type: Any) -> Any:
    width = features.vector_bits() // (8 * np.dtype(type).itemsize)
    element = language.f32 if type is np.float32 else language.f64
    source = ONE if name in UNARY else TWO
    return kernel(source, F=VECTOR_MATH[name], T=element, W=width)


def best(step: Callable[[], Any], seconds: float = 0.03) -> float:
    """Seconds of the fastest call."""
    fastest = math.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def speeds(name: str, type: Any) -> list[str]:
    """Elements per nanosecond: ours, NumPy's, PyTorch's."""
    low, high, function, torch_name = {**UNARY, **BINARY}[name]
    random = np.random.default_rng(0)
    count = 1 if name in UNARY else 2
    arguments = [random.uniform(low, high, COUNT).astype(type) for _ in range(count)]
    out = np.empty_like(arguments[0])
    run = compiled(name, type)
    steps: list[Any] = [lambda: run(*arguments, out, COUNT), None, None]
    if isinstance(function, np.ufunc):
        steps[1] = lambda: function(*arguments, out)
    if TORCH is not None:
        tensors, result = [TORCH.from_numpy(a) for a in arguments], TORCH.from_numpy(out)
        theirs = getattr(TORCH, torch_name)
        steps[2] = lambda: theirs(*tensors, out=result)
    return ["" if step is None else f"{COUNT / best(step) / 1e9:.2f}" for step in steps]


def parts(every: bool) -> Iterator[np.ndarray]:
    """float32 in pieces: all of them, or 2**22 random ones."""
    if not every:
        random = np.random.default_rng(0)
        yield random.integers(0, 1 << 32, 1 << 22, np.uint32).view(np.float32)
        return
    for start in range(0, 1 << 32, 1 << 22):
        yield np.arange(start, start + (1 << 22), dtype=np.uint32).view(np.float32)


def largest_error(name: str, every: bool) -> str:
    """The largest error of a function of one argument in float32; `inf`: a wrong nan or inf."""
    wanted_of = UNARY[name][2]
    worst = 0.0
    for x in parts(every and isinstance(wanted_of, np.ufunc)):
        x = x if isinstance(wanted_of, np.ufunc) else x[: 1 << 18]
        out = np.empty_like(x)
        compiled(name, np.float32)(x, out, x.size)
        with np.errstate(all="ignore"):
            wanted = wanted_of(x.astype(np.float64))
            worst = max(worst, float(ulps(out, wanted, 24, 2.0**-126).max()))
    return f"{worst:.3f}"


def largest_error_of_doubles(name: str) -> str:
    random = np.random.default_rng(0)
    count = 1 << 17
    x = np.concatenate([random.integers(0, 1 << 64, count, np.uint64).view(np.float64),
                        random.uniform(-2, 2, count),
                        random.uniform(-750, 750, count)])  # fmt: skip
    out = np.empty_like(x)
    compiled(name, np.float64)(x, out, x.size)
    with np.errstate(all="ignore"):
        wanted = UNARY[name][2](x.astype(np.longdouble))
        return f"{float(ulps(out, wanted, 53, 2.0**-1022).max()):.3f}"


def ulps(got: np.ndarray, wanted: np.ndarray, digits: int, smallest: float) -> np.ndarray:
    exponent = np.frexp(np.maximum(np.abs(wanted), smallest))[1] - digits
    found = np.abs(got.astype(wanted.dtype) - wanted) / np.ldexp(wanted.dtype.type(1), exponent)
    finite = np.isfinite(wanted) & np.isfinite(got)
    same = (got == wanted.astype(got.dtype)) | (np.isnan(got) & np.isnan(wanted))
    return np.where(finite, found, np.where(same, 0, np.inf))


def find_torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


TORCH = find_torch()


def main() -> None:
    words = sys.argv[1:]
    every = "--every" in words
    wanted = [n for n in [*UNARY, *BINARY] if n in words or not set(words) - {"--every"}]
    print(
        "| function | ULP f32 | ULP f64 | f32: ours | NumPy | torch | f64: ours | NumPy | torch |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in wanted:
        known = name in UNARY and UNARY[name][2] is not None
        single = largest_error(name, every) if known else ""
        double = ""
        if known and isinstance(UNARY[name][2], np.ufunc):
            double = largest_error_of_doubles(name)
        cells = [name, single, double, *speeds(name, np.float32), *speeds(name, np.float64)]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
