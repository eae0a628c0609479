"""Recurrent layers in one call, small and large: as step by step.

Units come in vectors, of 16 numbers at most: multiples of that fit on all processors.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import flambeau as torch
from flambeau._ops.recurrent import (
    launch as recurrent,
)
from flambeau._ops.recurrent import (
    launch_rows as recurrent_rows,
)
from flambeau._ops.recurrent import (
    launch_steps as recurrent_steps,
)


def drawn(rng, dtype, *shape):
    return (rng.standard_normal(shape) * 0.3).astype(dtype)


def never(gates, units):
    return False


def compare_with_single_steps(monkeypatch, way, dtype, steps, rows, units, backwards):
    """Forward and backward, `way` against a launch for each product and each step's gates."""
    rng = np.random.default_rng(rows)
    gates = drawn(rng, dtype, steps, rows, 4 * units)
    weight = drawn(rng, dtype, 4 * units, units)
    hidden, cell = drawn(rng, dtype, rows, units), drawn(rng, dtype, rows, units)
    grad, grad_cell = drawn(rng, dtype, steps, rows, units), drawn(rng, dtype, rows, units)
    assert way.fits(gates, units)
    fits = way.fits
    results = []
    for chosen in (fits, never):
        monkeypatch.setattr(recurrent_rows, "fits", never)
        monkeypatch.setattr(recurrent_steps, "fits", never)
        monkeypatch.setattr(way, "fits", chosen)
        forward = recurrent.lstm(gates, weight, hidden, cell, backwards)
        back = recurrent.lstm_backward(grad, grad_cell, weight, hidden, cell, *forward, backwards)
        results.append((*forward, *back))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows, units", [(8, 64), (5, 16), (16, 128), (1, 32), (9, 48)])
@pytest.mark.parametrize("backwards", [False, True])
def test_sequences_through_all_steps(monkeypatch, dtype, rows, units, backwards):
    compare_with_single_steps(monkeypatch, recurrent_rows, dtype, 6, rows, units, backwards)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "steps, rows, units", [(6, 8, 64), (4, 33, 192), (1, 7, 112), (3, 210, 16)]
)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 6])
def test_parts_of_a_step_after_each_other(monkeypatch, dtype, steps, rows, units, backwards,
                                          threads):  # fmt: skip
    monkeypatch.setattr(recurrent_steps, "LEAST", 1 << 10)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        compare_with_single_steps(monkeypatch, recurrent_steps, dtype, steps, rows, units,
                                  backwards)  # fmt: skip
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "steps, rows, units", [(6, 8, 64), (4, 33, 192), (1, 7, 112), (3, 210, 16)]
)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 6])
@pytest.mark.parametrize("biased", [False, True])
def test_parts_of_a_step_of_a_gru(monkeypatch, dtype, steps, rows, units, backwards, threads,
                                  biased):  # fmt: skip
    monkeypatch.setattr(recurrent_steps, "LEAST", 1 << 10)
    rng = np.random.default_rng(rows)
    given = drawn(rng, dtype, steps, rows, 3 * units)
    weight, bias = drawn(rng, dtype, 3 * units, units), drawn(rng, dtype, 3 * units)
    hidden, grad = drawn(rng, dtype, rows, units), drawn(rng, dtype, steps, rows, units)
    assert recurrent_steps.fits(given, units)
    results = []
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for fits in (recurrent_steps.fits, never):
            monkeypatch.setattr(recurrent_steps, "fits", fits)
            forward = recurrent.gru(given, weight, bias if biased else None, hidden, backwards)
            back = recurrent.gru_backward(grad, weight, hidden, *forward, backwards)
            results.append((*forward, *back))
    finally:
        torch.set_num_threads(before)
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_large_and_odd_layers_go_step_by_step():
    assert not recurrent_rows.fits(np.empty((2, 4, 4 * 7), np.float32), 7)
    assert not recurrent_rows.fits(np.empty((2, 1, 4 * 1024), np.float32), 1024)
    assert not recurrent_steps.fits(np.empty((2, 4, 4 * 7), np.float32), 7)
    assert recurrent_steps.fits(np.empty((2, 1, 4 * 1024), np.float32), 1024)
    assert not recurrent_steps.fits(np.empty((2, 1, 4 * 4096), np.float32), 4096)
