"""Integers that no type of numbers holds, and numbers that a tensor's type does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch

HUGE = 2**70
USES: list[Callable[[Any], Any]] = [
    lambda x: x + HUGE,
    lambda x: HUGE - x,
    lambda x: x * HUGE,
    lambda x: x < HUGE,
    lambda x: x.mul_(HUGE),
    lambda x: x.fill_(HUGE),
    lambda x: x.clamp(HUGE),
    lambda x: x.pow(HUGE),
    lambda x: x.remainder(HUGE),
    lambda x: torch.add(x, x, alpha=HUGE),
    lambda x: torch.where(x > 0, x, HUGE),
    lambda x: x.masked_fill(x > 0, HUGE),
    lambda x: x.scatter(0, torch.tensor([0]), HUGE),
    lambda x: x.index_fill(0, torch.tensor([0]), HUGE),
]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.float32])
@pytest.mark.parametrize("use", USES)
def test_an_integer_beyond_all_types_is_an_error(use: Any, dtype: torch.dtype) -> None:
    x = torch.ones(3, dtype=dtype)
    with pytest.raises(OverflowError, match="int too big to convert"):
        use(x)
    assert x.tolist() == [1, 1, 1]


def test_the_last_integers_are_taken() -> None:
    x = torch.ones(1, dtype=torch.int64)
    assert (x + (2**64 - 1)).tolist() == [0]
    assert (x * -(2**63)).tolist() == [-(2**63)]
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        x + (-(2**63) - 1)
    with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
        torch.add(x, x, alpha=2**63)


@pytest.mark.parametrize("size", [0, 3])
def test_a_bound_has_to_fit(size: int) -> None:
    x = torch.ones(size, dtype=torch.uint8)
    for call in (torch.clamp_min, torch.clamp_max):
        for bound in (-300, 300):
            with pytest.raises(RuntimeError, match="type uint8_t without overflow"):
                call(x, bound)
    assert torch.clamp_min(x, -3).tolist() == [253] * size


def test_numbers_of_numpy_with_a_factor_and_out() -> None:
    x, result = torch.ones(2), torch.empty(2)
    torch.add(x, np.float32(1.5), alpha=2, out=result)
    assert result.tolist() == [4.0, 4.0]


def test_sizes_are_integers() -> None:
    with pytest.raises(TypeError, match="found element of type float at pos 0"):
        torch.ones(4).unflatten(0, [2.5, 2])
