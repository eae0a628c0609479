"""Gradients of the largest and smallest size of complex numbers, in all layouts and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

DIMS = (None, 0, 2, (1, 2), (0, 1, 2))
ORDERS = (float("inf"), float("-inf"))


def _numbers(shape: tuple[int, ...]) -> Any:
    drawn = np.random.default_rng(shape)
    return drawn.standard_normal(shape) + 1j * drawn.standard_normal(shape)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 4, 1), (1, 1, 1), (5, 7, 6)])
def test_gradients_of_extreme_sizes(shape: tuple[int, ...], dtype: str, wide: bool) -> None:
    def gradient(t: Any, order: float, dim: Any, view: Any) -> Any:
        x = t.tensor(_numbers(shape), dtype=getattr(t, dtype)).requires_grad_()
        # PyTorch's own gradient is NaN where the norm is of a wider type
        words = {"dtype": t.complex128} if wide and t is flambeau else {}
        t.linalg.vector_norm(view(x), order, dim, **words).sum().backward()
        return np.array(x.grad.tolist())

    for order in ORDERS:
        for dim in DIMS:
            for view in (lambda x: x, lambda x: x.conj(), lambda x: x.mT.contiguous().mT):
                ours, theirs = (gradient(t, order, dim, view) for t in (flambeau, reference))
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
