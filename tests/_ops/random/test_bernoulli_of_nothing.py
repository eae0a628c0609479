"""`bernoulli_` on tensors without elements looks at no probability."""

from __future__ import annotations

import pytest

import flambeau as torch


def test_probabilities_of_any_shape_are_taken_where_nothing_is_drawn() -> None:
    for shape in ((5,), (3, 3), (0, 3)):
        assert torch.ones(0, 3).bernoulli_(torch.ones(*shape)).shape == (0, 3)
    with pytest.raises(RuntimeError, match=r"expanded size of the tensor \(3\) must match"):
        torch.ones(2, 3).bernoulli_(torch.ones(5))
