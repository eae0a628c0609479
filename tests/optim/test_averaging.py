"""Lists of tensors moved by one kernel: the numbers of `lerp_`, whatever lies in the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._runtime import choice
from flambeau.optim.averaging import approach


def averaged(dtype: Any, weight: float, limit: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Averages after a move: dense ones, an empty one, one with gaps and one beside such a one."""
    monkeypatch.setitem(choice.LIMITS, "optimizer", limit)
    torch.manual_seed(0)
    averages = [torch.randn(shape, dtype=dtype) for shape in ((7,), (5000,), (), (0, 3), (6, 4))]
    currents = [torch.randn(average.shape, dtype=dtype) for average in averages]
    averages.append(torch.randn(4, 6, dtype=dtype).t())
    currents.append(torch.randn(6, 4, dtype=dtype))
    averages.append(torch.randn(4, 6, dtype=dtype))
    currents.append(torch.randn(6, 4, dtype=dtype).t())
    approach(averages, currents, weight)
    assert all(average._version == 1 for average in averages)
    return averages


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("weight", [0.01, 0.7])
def test_the_numbers_of_lerp(dtype: Any, weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    compiled, plain = (averaged(dtype, weight, limit, monkeypatch) for limit in (0, choice.NEVER))
    tolerance = 1e-6 if dtype is not torch.float64 else 1e-14
    for one, other in zip(compiled, plain, strict=True):
        first, second = one.double().numpy(), other.double().numpy()
        np.testing.assert_allclose(first, second, tolerance, tolerance)
