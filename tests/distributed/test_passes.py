"""Sums of ranks and copies in one pass, against NumPy's own, to the last bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flambeau._runtime import choice
from flambeau.distributed import passes
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.reductions import FUNCTIONS, Copies, Fold
from tests.distributed.processes import run
from tests.random_seeds import generator

TYPES = [np.dtype(getattr(ml_dtypes, n, n)) for n in sorted(passes.SUMMED)] + [np.dtype("c8")]
SIZES = (0, 1, 31, 32, 33, 1000, 1025)
ENGINES = ("numpy", "kernels")
LARGE = """
import hashlib
def drawn(rank, size, dtype):
    numbers = np.random.default_rng([SEED, rank, size]).standard_normal(size + 1)
    return torch.from_numpy(numbers).to(dtype)[1:]  # behind a border of vectors
def expected(size, dtype, op):
    is_half = dtype.itemsize == 2
    terms = [drawn(rank, size, dtype) for rank in range(SIZE)]
    if is_half:
        terms = [term.float() for term in terms]
    total = terms[0].clone()
    for term in terms[1:]:
        total = total + term
    return (total / SIZE if op is dist.ReduceOp.AVG else total).to(dtype)
seen = []
for size, dtype in CASES:
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        results = [drawn(RANK, size, dtype) for _ in range(3)]  # in both slots, over older data
        for result in results:
            dist.all_reduce(result, op)
        same = all(torch.equal(result, expected(size, dtype, op)) for result in results)
        bits = results[0].contiguous().view(torch.uint8).numpy().tobytes()
        seen.append([same, hashlib.sha256(bits).hexdigest()])
tell(seen)
"""
"""Sums of three processes, of sizes that have no even shares; the largest takes several rounds."""
CASES = """
CASES = [(4_500_019, torch.float64), (1_500_001, torch.float32), (900_001, torch.float16),
         (900_001, torch.bfloat16), (16_411, torch.float32)]
"""


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


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_sums_of_processes(engine):
    if engine != "numpy":
        pytest.importorskip("llvmlite")
    seed = f"SEED = {generator('sums of processes').getrandbits(32)}\n"
    seen = run(seed + CASES + LARGE, 3, FLAMBEAU_ENGINE=engine)
    assert all(same for same, _ in seen[0]), seen[0]
    assert seen[0] == seen[1] == seen[2]
