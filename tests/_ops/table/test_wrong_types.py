"""What is no tensor is named where it was given, by operators that are made of others, too."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch

F = torch.nn.functional
SCORES = torch.ones(2, 2)
CASES = [
    (F.cross_entropy, (SCORES, 3),
     "cross_entropy_loss(): argument 'target' (position 2) must be Tensor, not int"),
    (F.cross_entropy, (SCORES, torch.tensor([0, 1]), [1, 2]),
     "cross_entropy_loss(): argument 'weight' (position 3) must be Tensor, not list"),
    (F.nll_loss, (SCORES, None),
     "nll_loss_nd(): argument 'target' (position 2) must be Tensor, not NoneType"),
    (torch.kron, (SCORES, 3), "kron(): argument 'other' (position 2) must be Tensor, not int"),
    (torch.inner, (SCORES, "a"), "inner(): argument 'other' (position 2) must be Tensor, not str"),
    (torch.flatten, (3,), "flatten(): argument 'input' (position 1) must be Tensor, not int"),
    (torch.ravel, ("a",), "ravel(): argument 'input' (position 1) must be Tensor, not str"),
    (torch.meshgrid, (SCORES[0], 3), "expected Tensor as element 1 in argument 0, but got int"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "text"), CASES)
def test_the_error_names_it(function: Any, given: Any, text: str) -> None:
    named = {"indexing": "ij"} if function is torch.meshgrid else {}
    with pytest.raises(TypeError) as error:
        function(*given, **named)
    assert str(error.value) == text
