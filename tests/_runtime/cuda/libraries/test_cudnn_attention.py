"""Attention as a graph of cuDNN's, computed by the stand-in, against its definition."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Wishes, library
from flambeau._runtime.cuda.libraries.cudnn_attention import (
    Attention,
    Slopes,
    backward,
    forward,
)
from tests._runtime.cuda.libraries.conftest import OnDevice, close, drawn, random, wide

TYPES = {"float16": (np.float16, 1e-2), "bfloat16": (ml_dtypes.bfloat16, 4e-2)}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_weighted_values_and_sums(device, name, causal):
    """Heads lie behind tokens, as projections leave them."""
    dtype, tolerance = TYPES[name]
    rng = random("attention", name, causal)
    q, k, v = (drawn(rng, (2, size, 3, 8), dtype).transpose(0, 2, 1, 3) for size in (5, 7, 7))
    a, b, c, out = (OnDevice(one) for one in (q, k, v, np.zeros_like(q)))
    sums = OnDevice(np.zeros((2, 3, 5, 1), np.float32))
    asked = Attention(name, a.array, b.array, c.array, out.array, causal)
    plan = forward(asked, Wishes())
    for scale in (0.5, 0.25):
        plan.run(a.address, b.address, c.address, out.address, sums.address, scale)
        scores = wide(q) @ wide(k).swapaxes(2, 3) * scale
        if causal:
            scores[..., np.arange(7) > np.arange(5)[:, None]] = -np.inf
        powers = np.exp(scores)
        totals = powers.sum(3, keepdims=True)
        close(out.back(), powers / totals @ wide(v), tolerance)
        close(sums.back(), np.log(totals), tolerance)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_gradients(device, name, causal):
    """Of queries, keys and values that are parts of one array, as one projection leaves them."""
    dtype, tolerance = TYPES[name]
    rng = random("attention gradients", name, causal)
    joint = drawn(rng, (2, 128, 3, 3, 8), dtype)
    q, k, v = joint.transpose(2, 0, 3, 1, 4)
    grad = drawn(rng, (2, 128, 3, 8), dtype).transpose(0, 2, 1, 3)
    scale = 0.3
    scores = wide(q) @ wide(k).swapaxes(2, 3) * scale
    if causal:
        scores[..., np.arange(128) > np.arange(128)[:, None]] = -np.inf
    totals = np.exp(scores).sum(3, keepdims=True)
    weights = np.exp(scores) / totals
    result = (weights @ wide(v)).astype(dtype)
    along = (wide(result) * wide(grad)).sum(3, keepdims=True)
    slope = weights * (wide(grad) @ wide(v).swapaxes(2, 3) - along) * scale

    arrays = [OnDevice(one) for one in (q, k, v, result, np.log(totals).astype(np.float32), grad)]
    results = [OnDevice(np.zeros_like(one)) for one in (q, k, v)]
    work = [OnDevice(np.full((*q.shape[:3], n), np.nan, np.float32)) for n in (1, 8)]
    asked = Attention(name, *(one.array for one in arrays[:4]), causal)
    plan = backward(Slopes(asked, arrays[5].array, *(one.array for one in results)), Wishes())
    plan.run(*(one.address for one in (*arrays, *work)), [one.address for one in results], scale)
    wanted = slope @ wide(k), slope.swapaxes(2, 3) @ wide(q), weights.swapaxes(2, 3) @ wide(grad)
    for found, exact in zip(results, wanted, strict=True):
        close(found.back(), exact, tolerance)


def test_sizes_that_a_version_computes_wrongly_are_refused(device, monkeypatch):
    arrays = [OnDevice(np.zeros((1, 1, size, 8), np.float16)).array for size in (4, 130, 130, 4)]
    asked = Attention("float16", *arrays, causal=False)
    wanted = Slopes(asked, arrays[0], *arrays[:3])
    assert backward(wanted, Wishes())
    monkeypatch.setattr(library(0), "version", 91500)
    with pytest.raises(Unsupported, match="cuDNN 91500 has no gradient of attention"):
        backward(wanted, Wishes())
