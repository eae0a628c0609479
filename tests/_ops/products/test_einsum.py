"""einsum against NumPy's, on the first call and on the second, which runs a remembered plan."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

CASES = [
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bhqk,bhkd->bqhd", (2, 3, 4, 6), (2, 3, 6, 5)),
    ("...ij,...jk->...ik", (1, 2, 3), (2, 3, 4)),
    ("ijk,jkl", (2, 3, 4), (3, 4, 5)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ii,ij->i", (3, 3), (3, 2)),
    ("ij,kj->", (2, 3), (4, 3)),
    ("bi,bj->bij", (2, 3), (2, 4)),
    ("i,i", (0,), (0,)),
]


@pytest.mark.parametrize(("equation", "left", "right"), CASES)
def test_pairs(equation, left, right):
    random = np.random.RandomState(0)
    a, b = random.standard_normal(left), random.standard_normal(right)
    expected = np.einsum(equation, a, b)
    for _ in range(2):
        result = torch.einsum(equation, torch.tensor(a), torch.tensor(b)).numpy()
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected)


def test_a_plan_keeps_gradients():
    a = torch.ones(2, 3, requires_grad=True)
    b = torch.full((3, 4), 2.0, requires_grad=True)
    for _ in range(2):
        a.grad = b.grad = None
        torch.einsum("ij,jk->ki", a, b).sum().backward()
        assert a.grad.tolist() == [[8.0] * 3] * 2
        assert b.grad.tolist() == [[2.0] * 4] * 3


def test_one_of_size_one_broadcasts_against_the_sum():
    result = torch.einsum("ij,jk->ik", torch.ones(2, 1), torch.ones(3, 4))
    assert result.tolist() == [[3.0] * 4] * 2


def test_sublists():
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    assert torch.einsum(a, [0, 5], b, [5, 1], [1, 0]).shape == (4, 2)


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij->k", "output subscript k does not appear in the equation for any input operand"),
        ("i1", "invalid subscript given at index 1 in the equation string"),
        ("ijk", r"number of subscripts in the equation \(3\) does not match the number of dim"),
        ("ii", r"subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
    ],
)
def test_errors(equation, message):
    with pytest.raises(RuntimeError, match=message):
        torch.einsum(equation, torch.ones(2, 3))


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,jk->ki", "ij,jk->i"])
@pytest.mark.parametrize("inner", [1, 3])
def test_what_is_summed_is_a_view(equation, inner):
    """As in PyTorch, where views of a product end a sum: writes to the result rewrite the base."""
    a = torch.ones(2, inner, requires_grad=True)
    for _ in range(2):
        result = torch.einsum(equation, a, torch.ones(inner, 4))
        assert result._is_view()
        assert result.grad_fn.name() == "ViewBackward0"
        saved = result.abs().sum()
        result.clamp_(0.5, 1.0)
        with pytest.raises(RuntimeError, match="which is output 0 of AsStrided, is at version 1"):
            saved.backward()
    assert not torch.einsum("ij,kj->ijk", a, a)._is_view()
