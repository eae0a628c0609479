"""Histograms of many values, by kernels, against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flambeau

SEED = 17


def values(dtype: str, shape: tuple[int, ...], number: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(SEED + number)
    kind = getattr(torch, dtype)
    points = torch.randn(shape, generator=draw, dtype=kind)
    if number % 2:  # values that are edges
        points = (points * 8).round() / 8
    return points * 10.0 ** (number * 3 % 7 - 3)


def both(name: str, *arguments: object, **named: object) -> list[list[np.ndarray]]:
    """The counts and all edges by torch and by us."""
    found = []
    for module in (torch, flambeau):

        def given(value: object, module: object = module) -> object:
            here = isinstance(value, torch.Tensor) and module is flambeau
            return flambeau.from_numpy(value.numpy()) if here else value

        call = getattr(module, name)
        result = call(*map(given, arguments), **{key: given(v) for key, v in named.items()})
        edges = result[1] if isinstance(result[1], (list, tuple)) else [result[1]]
        found.append([part.numpy() for part in (result[0], *edges)])
    return found


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histogram(dtype: str, number: int) -> None:
    x = values(dtype, (5003,), number)
    bins = (1, 10, 100, 7, 3000, 64)[number]
    spread = float(x.abs().max()) / 2
    weight = values(dtype, (5003,), 0)
    given = [{}, {"range": (-spread, spread)}, {"range": (0.0, spread / 100)}]
    for named in (*given, {"weight": weight}, {"density": True}):
        theirs, ours = both("histogram", x, bins, **named)
        np.testing.assert_allclose(ours[1], theirs[1], 1e-6, 1e-6 * spread)
        if number % 2 and not np.array_equal(ours[1], theirs[1]):
            continue  # a value at an edge that is rounded differently
        if not named.keys() & {"weight", "density"}:
            assert np.abs(ours[0] - theirs[0]).sum() <= 4, named
        else:
            far = np.abs(ours[0] - theirs[0]) > 1e-3 * np.abs(theirs[0]).max() + 1e-3
            assert far.sum() <= 4, named


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histogramdd(dtype: str) -> None:
    x = values(dtype, (4001, 3), 0)
    theirs, ours = both("histogramdd", x, [5, 6, 7])
    assert np.abs(ours[0] - theirs[0]).sum() <= 4
    assert ours[0].sum() == theirs[0].sum() == 4001
    turned = x.t().contiguous().t()
    again = both("histogramdd", turned, [5, 6, 7])[1]
    np.testing.assert_array_equal(again[0], ours[0])


def test_odd_values() -> None:
    """nan and infinities are in no bin, the last edge is in the last one."""
    x = torch.linspace(0, 1, 4001)
    x[5], x[6], x[7], x[8] = float("nan"), float("inf"), -float("inf"), -1.0
    theirs, ours = both("histogram", x, 8, range=(0.0, 1.0))
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])
