"""Where the gradients of linear algebra take a turn of their own."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck


def matrix(*shape, seed=0):
    values = np.random.RandomState(seed).standard_normal(shape)
    return torch.tensor(values, requires_grad=True)


def test_det_of_a_singular_matrix():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    torch.linalg.det(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), [[4.0, -2.0], [-2.0, 1.0]], atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
def test_factors_of_every_shape(shape):
    a = matrix(*shape)
    assert gradcheck(lambda x: torch.linalg.lu(x)[1:], (a,))
    assert gradgradcheck(lambda x: [part.abs() for part in torch.linalg.qr(x)], (a,))
    assert gradgradcheck(torch.linalg.pinv, (a,))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_products_with_reflectors(left, transpose):
    a, other = matrix(4, 3), matrix(*((4, 2) if left else (2, 4)), seed=1)
    tau = torch.tensor([0.5, 0.2, -0.3], dtype=torch.float64, requires_grad=True)

    def product(a, tau, other):
        return torch.ormqr(a, tau, other, left, transpose)

    assert gradcheck(product, (a, tau, other))


def test_multiplication_order():
    from flambeau._ops.products.composed import chain_order

    cut = chain_order([30, 35, 15, 5, 10, 20, 25])
    assert cut[0][5] == 2  # ((A1 (A2 A3)) ((A4 A5) A6)): the textbook's example
    assert cut[0][2] == 0
    assert cut[3][5] == 4


def test_results_own_their_memory():
    a = matrix(3, 3).detach()
    spd = a @ a.mT + torch.eye(3, dtype=torch.float64)
    results = [torch.linalg.cholesky(spd, upper=True), *torch.linalg.qr(a), *torch.linalg.lu(a)]
    for result in results:
        assert result.untyped_storage().nbytes() == 9 * 8
        result.zero_()
