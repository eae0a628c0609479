"""jacobian, hessian and products, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import functional

MATRIX = np.array([[1.0, -2.0, 0.5], [0.3, 4.0, -1.0]])
POINT = np.array([0.5, -1.0, 2.0])


def linear(x: Any) -> Any:
    return torch.tensor(MATRIX) @ x


def cubic(x: Any) -> Any:
    """Hessian: 6 diag(x) + 2 MᵀM."""
    return (x**3).sum() + (linear(x) ** 2).sum()


HESSIAN = 6 * np.diag(POINT) + 2 * MATRIX.T @ MATRIX
VECTOR = np.array([1.0, -0.5, 0.25])


def close(found: Any, wanted: Any) -> bool:
    return np.allclose(found.numpy(), wanted, 1e-10, 1e-12)


def test_jacobian() -> None:
    x = torch.tensor(POINT)
    assert close(functional.jacobian(linear, x), MATRIX)
    assert close(functional.jacobian(linear, x, vectorize=True), MATRIX)
    first, second = functional.jacobian(lambda a, b: a * b, (x, x))
    assert close(first, np.diag(POINT))
    assert close(second, np.diag(POINT))


def test_hessian_and_its_products() -> None:
    x, v = torch.tensor(POINT), torch.tensor(VECTOR)
    assert close(functional.hessian(cubic, x), HESSIAN)
    assert close(functional.hvp(cubic, x, v)[1], HESSIAN @ VECTOR)
    assert close(functional.vhp(cubic, x, v)[1], VECTOR @ HESSIAN)


def test_products_with_the_jacobian() -> None:
    x = torch.tensor(POINT)
    output, product = functional.vjp(linear, x, torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert close(output, MATRIX @ POINT)
    assert close(product, [1.0, 2.0] @ MATRIX)
    assert close(functional.jvp(linear, x, torch.tensor(VECTOR))[1], MATRIX @ VECTOR)


def test_create_graph_and_strict() -> None:
    x = torch.tensor(POINT, requires_grad=True)
    found = functional.jacobian(lambda v: (v**2).sum(), x, create_graph=True)
    found.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(
        RuntimeError, match="independent of input|does not require gradients|strict"
    ):
        functional.jacobian(lambda v: torch.ones(2), x, strict=True)
