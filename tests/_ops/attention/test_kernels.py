"""Attention in blocks against the formula in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.attention.launch import attend, attend_backward

SIZES = [  # batch, heads, queries, keys, width, width of values
    (1, 1, 1, 1, 1, 1),
    (2, 3, 7, 5, 4, 4),
    (1, 2, 64, 64, 32, 32),
    (2, 1, 33, 70, 20, 9),
    (1, 1, 300, 40, 16, 16),
    (1, 1, 25, 0, 8, 8),
]


def exact(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float) -> Any:
    """Weights and results in float64."""
    scores = q @ k.swapaxes(2, 3) * scale
    if causal:
        scores[..., np.triu(np.ones(scores.shape[2:], bool), 1)] = -np.inf
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == bool else mask)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return weights, weights @ v


def exact_gradients(g: Any, q: Any, k: Any, v: Any, weights: Any, scale: float) -> Any:
    """Gradients of query, key and value in float64."""
    slopes = g @ v.swapaxes(2, 3)
    inner = weights * (slopes - (slopes * weights).sum(-1, keepdims=True)) * scale
    return inner @ k, inner.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ g


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("kind", ["plain", "causal", "bool mask", "added mask", "transposed"])
def test_attention(size: Any, dtype: Any, kind: str) -> None:
    batch, heads, queries, keys, width, width_out = size
    rng = np.random.default_rng(sum(size))

    def draw(rows: int, columns: int) -> Any:
        if kind == "transposed":
            return rng.standard_normal((batch, rows, heads, columns)).astype(dtype).swapaxes(1, 2)
        return rng.standard_normal((batch, heads, rows, columns)).astype(dtype)

    q, k, v, g = draw(queries, width), draw(keys, width), draw(keys, width_out), None
    g = draw(queries, width_out)
    mask = None
    if kind == "bool mask":
        mask = rng.random((batch, 1, queries, keys)) < 0.7
        mask[:, :, 0] = False  # a row without any key
    elif kind == "added mask":
        mask = rng.standard_normal((queries, keys)).astype(np.float32)
    causal, scale = kind == "causal", 0.3
    out, log_sums = attend(q, k, v, mask, causal, scale)
    wide = [a.astype(np.float64) for a in (g, q, k, v)]
    weights, wanted = exact(*wide[1:], mask, causal, scale)
    tolerance = {np.float32: 2e-5, np.float64: 1e-12, np.float16: 5e-3}[dtype]
    assert out.dtype == dtype
    np.testing.assert_allclose(out, wanted, tolerance, tolerance)
    found = attend_backward(g, q, k, v, mask, causal, scale, out, log_sums)
    gradients = exact_gradients(*wide, weights, scale)
    for one, other in zip(found, gradients, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 10 * tolerance, 10 * tolerance)
