"""The kernel of bags of rows against its NumPy form."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flambeau._ops.indexing import bags

pytest.importorskip("llvmlite")

from flambeau._ops.indexing import bag_launch

TOLERANCES = {np.float32: 1e-5, np.float64: 1e-14, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}


def sample(rng: np.random.Generator, dtype: type, index: type) -> tuple:
    """A table, positions and starts of bags, of which some are empty."""
    rows, width, count, bag_count = (int(n) for n in rng.integers(1, (40, 300, 60, 20)))
    weight = rng.standard_normal((rows, width))
    if rng.random() < 0.5:
        weight = weight.round()
        weight[rng.random(weight.shape) < 0.1] = np.nan
        weight[rng.random(weight.shape) < 0.1] = np.inf
    starts = np.sort(rng.integers(0, count + 1, bag_count))
    starts[0] = 0
    indices = rng.integers(0, rows, count)
    return weight.astype(dtype), indices.astype(index), starts.astype(index)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("index", [np.int64, np.int32])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_kernel_and_numpy_agree(dtype: type, index: type, mode: str) -> None:
    seed = int(np.random.default_rng().integers(1 << 30))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(12):
        weight, indices, starts = sample(rng, dtype, index)
        padding = int(rng.integers(-1, len(weight)))
        samples = None
        if mode == "sum" and rng.random() < 0.5:
            samples = rng.random(indices.size).astype(dtype)
        with np.errstate(all="ignore"):
            expected = bags.by_numpy(weight, indices, starts, mode, samples, padding)
        found = bags.Bags(*bag_launch.reduce(weight, indices, starts, mode, samples, padding))
        assert found.values.dtype == expected.values.dtype
        tolerance = 0 if mode == "max" else TOLERANCES[dtype]
        scale = 1 if mode != "sum" else indices.size
        np.testing.assert_allclose(found.values.astype(float), expected.values.astype(float),
                                   rtol=tolerance, atol=tolerance * scale)  # fmt: skip
        for name in ("bags", "sizes", "positions"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
            assert getattr(found, name).dtype == index


def test_sums_have_the_same_bits_for_any_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((50, 70)).astype(np.float32)
    indices, starts = rng.integers(0, 50, 400), np.arange(0, 400, 16)
    one = bag_launch.reduce(weight, indices, starts, "sum", None, -1)[0]
    monkeypatch.setattr(bag_launch, "TASK_NUMBERS", 256)
    monkeypatch.setattr(bag_launch, "get_num_threads", lambda: 3)
    assert bag_launch.reduce(weight, indices, starts, "sum", None, -1)[0].tobytes() == one.tobytes()
