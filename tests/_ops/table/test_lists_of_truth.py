"""Lists of ints that begin with a truth value are refused, as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

CALLS: list[Callable[[Any, Any], Any]] = [
    lambda x, ints: x.roll(ints),
    lambda x, ints: x.roll(ints, 0),
    lambda x, ints: x.roll(1, ints),
    lambda x, ints: x.tile(ints),
    lambda x, ints: x.expand(ints),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("ints", [(True,), [True]])
def test_a_truth_value_first(call: Callable[[Any, Any], Any], ints: Any):
    with pytest.raises(TypeError, match="found element of type bool at pos 0"):
        call(torch.zeros(2, 3), ints)
