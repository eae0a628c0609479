"""Attention as a graph of cuDNN's, computed by the stand-in, against its definition."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flambeau._runtime.cuda.libraries.cudnn import Wishes
from flambeau._runtime.cuda.libraries.cudnn_attention import Attention, forward
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
