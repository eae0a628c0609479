"""Attention of bfloat16 by tiles of AMX, in loops on any processor, against float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau import get_num_threads, set_num_threads
from flambeau._compiler.tiles.amx import HARDWARE, LOOPS
from flambeau._ops.attention import launch
from tests._ops.attention.test_kernels import exact

SIZES = [  # batch, heads, queries, keys, width, width of values
    (1, 1, 1, 1, 1, 1),
    (1, 2, 9, 16, 32, 32),
    (2, 3, 17, 33, 31, 5),
    (1, 1, 64, 64, 64, 64),
    (1, 2, 300, 70, 20, 48),
    (1, 1, 25, 0, 8, 8),
]
KINDS = ("plain", "causal", "bool mask", "added mask", "transposed")
BFLOAT16 = ml_dtypes.bfloat16


def drawn(size: tuple[int, ...], kind: str) -> tuple[Any, ...]:
    """Query, key, value and mask."""
    batch, heads, queries, keys, width, width_out = size
    rng = np.random.default_rng(sum(size))

    def numbers(rows: int, columns: int) -> Any:
        if kind == "transposed":
            return (
                rng.standard_normal((batch, rows, heads, columns)).astype(BFLOAT16).swapaxes(1, 2)
            )
        return rng.standard_normal((batch, heads, rows, columns)).astype(BFLOAT16)

    mask: Any = None
    if kind == "bool mask":
        mask = rng.random((batch, 1, queries, keys)) < 0.7
        mask[:, :, 0] = False  # a row without any key
    elif kind == "added mask":
        mask = rng.standard_normal((queries, keys)).astype(np.float32)
    return numbers(queries, width), numbers(keys, width), numbers(keys, width_out), mask


def attended(form: str, monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> tuple[Any, Any]:
    """What `attend` gives with tiles of this form."""
    monkeypatch.setattr(launch, "tiles_for", lambda dtype, queries: form)
    return launch.attend(*arguments)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_loops(size: Any, kind: str, monkeypatch: pytest.MonkeyPatch):
    *given, mask = drawn(size, kind)
    causal = kind == "causal"
    out, log_sums = attended(LOOPS, monkeypatch, *given, mask, causal, 0.3)
    wide = [array.astype(np.float64) for array in given]
    _, wanted = exact(*wide, mask, causal, 0.3)
    assert out.dtype == BFLOAT16
    assert log_sums.dtype == np.float32
    # weights, queries' products and results are rounded to 8 bits
    assert abs(out.astype(np.float64) - wanted).max(initial=0) <= 0.01 * (
        1 + abs(wide[2]).max(initial=0)
    )
    vectors, their_sums = attended("", monkeypatch, *given, mask, causal, 0.3)
    assert np.allclose(log_sums, their_sums, rtol=1e-5, atol=1e-5)
    assert abs(out.astype(np.float64) - vectors.astype(np.float64)).max(initial=0) < 0.05


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_give_the_bits_of_loops(size: Any, kind: str, monkeypatch: pytest.MonkeyPatch):
    if launch.tiles_for(np.dtype(BFLOAT16), launch.FEW) != HARDWARE:
        pytest.skip("needs AMX")
    arguments = *drawn(size, kind), kind == "causal", 0.3
    loops, tiles = (attended(form, monkeypatch, *arguments) for form in (LOOPS, HARDWARE))
    assert [array.tobytes() for array in loops] == [array.tobytes() for array in tiles]


def test_any_number_of_threads_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    arguments = *drawn((2, 1, 600, 70, 32, 32), "plain"), True, 0.2
    before, found = get_num_threads(), set()
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.add(attended(LOOPS, monkeypatch, *arguments)[0].tobytes())
    finally:
        set_num_threads(before)
    assert len(found) == 1
