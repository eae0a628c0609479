"""float16 by integer arithmetic: the bits of NumPy's conversions, for all numbers that differ."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._compiler.language import i64, load, pointer, static, store
from flambeau._compiler.module import Module
from flambeau._compiler.native import Native, from_source
from flambeau._compiler.types import OF_NUMPY
from flambeau._runtime import engine, llvm

LANES = 8


HEAD = "(source: pointer(S), target: pointer(T), n: i64, S: static, T: static, W: static):"
WORDS = {"i64": i64, "load": load, "pointer": pointer, "static": static, "store": store}


def made(name: str, value: str) -> Native:
    """A kernel that stores a value for each vector of the source."""
    lines = [
        f"def {name}{HEAD}",
        "    for i in range(0, n, W):",
        f"        store(target + i, {value})",
    ]
    return from_source(name, "\n".join(lines) + "\n", WORDS)


converted = made("converted", "T(load(source + i, W))")
compared = made("compared", "T(load(source + i, W) < load(source + (n - W - i), W))")


def run(kernel: Any, source: np.ndarray, dtype: Any, width: int = LANES) -> np.ndarray:
    """A kernel over an array, compiled as for a processor without instructions for halves."""
    target = np.empty(source.shape, dtype)
    types = {"S": OF_NUMPY[source.dtype.name], "T": OF_NUMPY[target.dtype.name], "W": width}
    module = Module(llvm_version=llvm.VERSION, halves=False)
    module.export(kernel, types)
    text = module.text()
    assert "half" in text and not re.search(r"(fpext|fptrunc|itofp|fpto.i|fcmp).*half", text)
    code = llvm.assemble(text, llvm.PASSES)
    name = f"halves {kernel.name} {types}"
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(
        engine._link(name, code, (kernel.name,))[kernel.name]
    )
    call(source.ctypes.data, target.ctypes.data, source.size)
    return target


def every_half() -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def near_every_half() -> np.ndarray:
    """Floats that are halves, in the middle between two, and the next ones on both sides."""
    # the last finite half counts as 65520 away from infinity; subnormals are equally far apart
    positive = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (positive + np.append(positive[1:], 65536.0)) / 2
    some = np.concatenate([positive, middles, [2.0**-149, 1e-10, 1e10, np.inf]])
    words = some.astype(np.float32).view(np.int32)
    words = np.concatenate([words, words + 1, np.maximum(words - 1, 0), [0x7FC01234, 0x7FFFFFFF]])
    words = words.astype(np.int32)
    both = np.concatenate([words, words | np.int32(-(1 << 31))])
    return np.resize(both, -(-both.size // LANES) * LANES).view(np.float32)


@pytest.mark.parametrize("width", [1, 4, LANES])
def test_widened_like_numpy(width: int) -> None:
    halves = every_half()
    found = run(converted, halves, np.float32, width)
    with np.errstate(invalid="ignore"):  # signalling nan, which becomes quiet
        wanted = halves.astype(np.float32)
    number = ~np.isnan(wanted)
    assert np.array_equal(found.view(np.uint32)[number], wanted.view(np.uint32)[number])
    assert np.isnan(found[~number]).all()
    assert (found.view(np.uint32)[~number] & 1 << 22 != 0).all()


@pytest.mark.parametrize("width", [1, 4, LANES])
def test_narrowed_like_numpy(width: int) -> None:
    floats = near_every_half()
    with np.errstate(over="ignore", under="ignore"):
        wanted = floats.astype(np.float16)
    found = run(converted, floats, np.float16, width)
    number = ~np.isnan(wanted)
    assert np.array_equal(found.view(np.uint16)[number], wanted.view(np.uint16)[number])
    assert np.isnan(found[~number]).all() and (~number).any()


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint8, np.float64, "bfloat16"])
def test_other_types_go_through_float32(dtype: Any) -> None:
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    numbers = np.arange(-1024, 1024).astype(np.float16) / np.float16(8)
    numbers = np.abs(numbers) if dtype.kind == "u" else numbers
    wanted = numbers.astype(np.float32).astype(dtype)
    assert np.array_equal(run(converted, numbers, dtype), wanted)
    assert np.array_equal(
        run(converted, wanted, np.float16), wanted.astype(np.float32).astype(np.float16)
    )


def test_halves_are_compared_as_numbers() -> None:
    halves = every_half()
    n = halves.size
    others = np.concatenate([halves[n - LANES - i : n - i] for i in range(0, n, LANES)])
    assert np.array_equal(run(compared, halves, np.uint8), (halves < others).astype(np.uint8))
