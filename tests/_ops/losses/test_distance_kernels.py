"""The kernels of distances against the NumPy forms, and their gradients against tensors' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import flambeau as torch
from flambeau._ops.losses import distance_launch
from flambeau._runtime import choice

NORMS = [0.0, 1.0, 2.0, float("inf")]
SHAPES = [((), 5, (), 7, 3), ((2,), 9, (), 33, 40), ((2, 1), 4, (3,), 4, 300)]
TOLERANCES = {np.float32: 2e-5, np.float64: 1e-13}


def generator() -> np.random.Generator:
    seed = int(np.random.default_rng().integers(1 << 30))
    print("seed", seed)
    return np.random.default_rng(seed)


def answers(monkeypatch: pytest.MonkeyPatch, function: Any, *arrays: np.ndarray) -> Any:
    """Results and gradients by kernels and by NumPy; the rows' numbers are few, so that some
    differences are 0 and several are the largest."""
    found = []
    for limit in (0, choice.NEVER):
        monkeypatch.setitem(choice.LIMITS, "distances", limit)
        rows = [torch.tensor(array, requires_grad=True) for array in arrays]
        result = function(*rows)
        weights = torch.linspace(-1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
        gradients = torch.autograd.grad(result, rows, weights)
        found.append([result.detach().numpy(), *(each.numpy() for each in gradients)])
    return zip(*found, strict=True)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("p", NORMS)
def test_all_pairs(monkeypatch: pytest.MonkeyPatch, p: float, dtype: Any) -> None:
    rng = generator()
    for batch, count, other_batch, other_count, width in SHAPES:
        x1 = rng.integers(-2, 3, (*batch, count, width)).astype(dtype)
        x2 = rng.integers(-2, 3, (*other_batch, other_count, width)).astype(dtype)
        x2[..., 0, :] = x1.reshape(-1, count, width)[0, 0]
        mode = "donot_use_mm_for_euclid_dist"
        pairs = answers(monkeypatch, lambda a, b, mode=mode: torch.cdist(a, b, p, mode), x1, x2)
        for found, expected in pairs:
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=TOLERANCES[dtype],
                                       atol=20 * TOLERANCES[dtype])  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("p", NORMS)
def test_pairs_of_one_matrix(monkeypatch: pytest.MonkeyPatch, p: float, dtype: Any) -> None:
    rng = generator()
    for count, width in ((2, 1), (7, 20), (37, 5), (40, 300)):
        x = rng.integers(-2, 3, (count, width)).astype(dtype)
        pairs = answers(monkeypatch, lambda a: torch.nn.functional.pdist(a, p), x)
        for found, expected in pairs:
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=TOLERANCES[dtype],
                                       atol=20 * TOLERANCES[dtype])  # fmt: skip


@pytest.mark.parametrize("p", NORMS)
def test_nan_and_infinity(monkeypatch: pytest.MonkeyPatch, p: float) -> None:
    x = np.array([[1.0, np.nan, 2.0], [np.inf, 3.0, 4.0], [np.inf, 0.0, 0.0], [5.0, 6.0, 7.0]])
    pairs = answers(monkeypatch, lambda a: torch.nn.functional.pdist(a, p), x)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_gradients_of_gradients_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choice.LIMITS, "distances", 0)
    x = torch.tensor([[0.0, 1.0], [2.0, 5.0], [3.0, -1.0]], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(torch.nn.functional.pdist(x, 2.0).sum(), x, create_graph=True)
    assert first.requires_grad
    assert torch.autograd.grad(first[0, 0], x)[0].abs().sum() > 0


def test_bits_are_the_same_for_any_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).standard_normal((30, 50)).astype(np.float32)

    def work() -> list[bytes]:
        sizes = distance_launch.distances(x, x[:20], 1.0)
        slopes = distance_launch.slopes(np.ones_like(sizes), sizes, x, x[:20], 1.0)
        return [found.tobytes() for found in (sizes, slopes, distance_launch.pairs(x, 2.0))]

    one = work()
    monkeypatch.setattr(distance_launch, "TASK_NUMBERS", 256)
    monkeypatch.setattr(distance_launch, "get_num_threads", lambda: 3)
    assert work() == one
