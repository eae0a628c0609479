"""The Jacobians that PyTorch deprecates, by central differences and by backward."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.autograd.deprecated_jacobians import get_analytical_jacobian, get_numerical_jacobian


def test_both_are_the_derivatives() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    wanted = torch.tensor([[2.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
        (numerical,) = get_numerical_jacobian(lambda values: values[0] ** 2, (x,))
    with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
        (analytical,), is_same, *_ = get_analytical_jacobian((x,), x**2)
    assert torch.allclose(numerical, wanted)
    assert torch.equal(analytical, wanted)
    assert is_same


def test_a_backward_that_changes_is_seen() -> None:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    y = x * 1
    calls = iter(range(100))
    y.register_hook(lambda g: g * next(calls))
    with pytest.warns(FutureWarning):
        assert not get_analytical_jacobian((x,), y)[1]
