"""Small LSTM layers in one call: as step by step."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau._ops.templates import recurrent, recurrent_rows
from flambeau._runtime import choice

pytestmark = pytest.mark.skipif(not choice.available(), reason="no kernels without llvmlite")


def drawn(rng, dtype, *shape):
    return (rng.standard_normal(shape) * 0.3).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows, units", [(8, 64), (5, 16), (16, 128), (1, 32), (9, 48)])
@pytest.mark.parametrize("backwards", [False, True])
def test_all_steps_at_once_give_what_single_steps_give(monkeypatch, dtype, rows, units, backwards):
    rng = np.random.default_rng(rows)
    gates = drawn(rng, dtype, 6, rows, 4 * units)
    weight = drawn(rng, dtype, 4 * units, units)
    hidden, cell = drawn(rng, dtype, rows, units), drawn(rng, dtype, rows, units)
    grad, grad_cell = drawn(rng, dtype, 6, rows, units), drawn(rng, dtype, rows, units)
    assert recurrent_rows.fits(gates, units)
    results = []
    for fits in (recurrent_rows.fits, lambda gates, units: False):
        monkeypatch.setattr(recurrent_rows, "fits", fits)
        forward = recurrent.lstm(gates, weight, hidden, cell, backwards)
        back = recurrent.lstm_backward(grad, grad_cell, weight, hidden, cell, *forward, backwards)
        results.append((*forward, *back))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_large_and_odd_layers_go_step_by_step():
    assert not recurrent_rows.fits(np.empty((2, 4, 4 * 7), np.float32), 7)
    assert not recurrent_rows.fits(np.empty((2, 1, 4 * 1024), np.float32), 1024)
