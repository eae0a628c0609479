"""Sums of ranks and copies in one pass, against NumPy's own, to the last bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flambeau._runtime import choice
from flambeau.distributed import passes
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.reductions import FUNCTIONS, Copies, Fold
from tests.random_seeds import generator

TYPES = [np.dtype(getattr(ml_dtypes, n, n)) for n in sorted(passes.SUMMED)] + [np.dtype("c8")]
SIZES = (0, 1, 31, 32, 33, 1000, 1025)
ENGINES = ("numpy", "kernels")


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """Both ways, whatever the size."""
    if request.param == "kernels":
        pytest.importorskip("llvmlite")
    limit = 0 if request.param == "kernels" else choice.NEVER
    for work in ("sum of ranks", "copy past caches"):
        monkeypatch.setitem(choice.LIMITS, work, limit)
    monkeypatch.setattr(passes, "STREAMED", 0)


def drawn(rng: np.random.Generator, element: np.dtype, size: int, offset: int) -> np.ndarray:
    """Numbers that begin `offset` elements behind a border."""
    return (rng.standard_normal(size + offset) * 50).astype(element)[offset:]


def reduced(values: list[np.ndarray], operation: RedOpType) -> np.ndarray:
    """What is asked for: value after value, halves in float32."""
    element = values[0].dtype
    is_half = element.itemsize == 2 and element.kind not in "iu"
    wide = [value.astype(np.float32) if is_half else value for value in values]
    total = wide[0]
    for value in wide[1:]:
        total = FUNCTIONS[operation](total, value)
    if operation is RedOpType.AVG:
        total = np.divide(total, len(values)).astype(total.dtype)
    return total.astype(element)


@pytest.mark.parametrize("element", TYPES, ids=str)
@pytest.mark.parametrize("operation", [RedOpType.SUM, RedOpType.AVG, RedOpType.MAX], ids=str)
def test_reductions_are_numpys(engine, element, operation):
    if operation is RedOpType.AVG and element.kind in "iu":
        pytest.skip("integers have no averages")
    rng = np.random.default_rng(generator("passes", str(element), operation.name).getrandbits(32))
    for size in SIZES:
        for ranks in (1, 2, 3, 5):
            values = [drawn(rng, element, size, int(rng.integers(3))) for _ in range(ranks)]
            expected = reduced(values, operation)
            rank = int(rng.integers(ranks))
            own = values[rank].copy()
            pieces = [None if r == rank else v.view(np.uint8) for r, v in enumerate(values)]
            for out in (own, np.zeros_like(own)):
                also = np.full(own.nbytes + 64, 7, np.uint8)
                Fold(operation, own, out, rank, ranks).make(0, pieces, also)
                assert out.tobytes() == expected.tobytes(), (size, ranks, rank)
                assert also[: own.nbytes].tobytes() == expected.tobytes()
                assert (also[own.nbytes :] == 7).all()
                own = values[rank].copy()


def test_copies_touch_what_they_should(engine):
    rng = np.random.default_rng(generator("copies").getrandbits(32))
    for size in (0, 1, 127, 128, 129, 5000):
        for offset in (0, 1, 64, 77):
            source = rng.integers(0, 256, size + 3).astype(np.uint8)[3:]
            target = np.full(size + offset + 10, 7, np.uint8)
            Copies([None, target[offset : offset + size]]).take(0, [None, source])
            assert (target[offset : offset + size] == source).all()
            assert (target[:offset] == 7).all() and (target[offset + size :] == 7).all()
