"""Products of complex numbers by kernels for real ones, and by NumPy's BLAS: with deterministic
algorithms bits do not depend on the number of threads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._core import settings
from flambeau._ops.products import blas, complexes, gemm
from tests.random_seeds import generator

pytestmark = pytest.mark.skipif(not gemm.usable(), reason="BLAS multiplies where there is no FMA")
BATCHES = (((), ()), ((3,), (3,)), ((3,), (1,)), ((2, 2), (2, 2)))


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    settings.Determinism.enabled = True
    yield
    settings.Determinism.enabled = False


def drawn(draw: random.Random, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    rng = np.random.default_rng(draw.getrandbits(32))
    found: np.ndarray = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if draw.random() < 0.5:
        return np.ascontiguousarray(found.swapaxes(-1, -2)).swapaxes(-1, -2)
    return found


def by_threads(compute: Callable[[], np.ndarray | None], draw: random.Random) -> np.ndarray:
    """The same bits with two numbers of threads."""
    before, results = settings.get_num_threads(), []
    for threads in draw.sample(range(1, 9), 2):
        settings.set_num_threads(threads)
        try:
            results.append(compute())
        finally:
            settings.set_num_threads(before)
    first, second = results
    assert first is not None and second is not None
    assert first.flags.c_contiguous and first.tobytes() == second.tobytes()
    return first


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("multiply", [complexes.multiply, blas.multiply])
def test_equals_double_precision(
    multiply: Callable[..., np.ndarray | None], batches: tuple[tuple[int, ...], ...], dtype: type
) -> None:
    draw = generator("complex products")
    for _ in range(5):
        rows, depth, columns = (draw.randint(1, 150) for _ in range(3))
        left = drawn(draw, (*batches[0], rows, depth), dtype)
        right = drawn(draw, (*batches[1], depth, columns), dtype)
        found = by_threads(partial(multiply, left, right), draw)
        wide = left.astype(np.complex128), right.astype(np.complex128)
        size = abs(wide[0]) @ abs(wide[1])
        assert found.dtype == dtype
        off = abs(found - wide[0] @ wide[1])
        assert (off <= (2 * depth + 6) * float(np.finfo(dtype).eps) * size).all()


def test_large_products_are_those_of_real_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(complexes, "multiply", lambda left, right: asked.append(left.shape))
    ones = np.ones((513, 512), np.complex64)
    assert blas.multiply(ones, ones.T)[0, 0] == 512
    assert blas.multiply(ones[:8], ones.T)[0, 0] == 512
    assert asked == [(513, 512)]
    settings.Determinism.enabled = False
    assert blas.multiply(ones, ones.T)[0, 0] == 512
    assert asked == [(513, 512)]
