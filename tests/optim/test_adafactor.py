"""Adafactor: the state of a matrix is two vectors, and their product its squared gradients."""

from __future__ import annotations

import numpy as np

import flambeau as torch
from flambeau import optim


def test_a_matrix_keeps_means_of_rows_and_columns() -> None:
    x = torch.ones((2, 3, 4), requires_grad=True)
    x.grad = torch.arange(24.0).reshape(2, 3, 4)
    optimizer = optim.Adafactor([x])
    optimizer.step()
    state = optimizer.state_dict()["state"][0]
    square = np.arange(24.0).reshape(2, 3, 4) ** 2
    assert np.allclose(state["row_var"].numpy(), square.mean(-1, keepdims=True))
    assert np.allclose(state["col_var"].numpy(), square.mean(-2, keepdims=True))


def test_squares_of_rank_one_are_kept_whole() -> None:
    """Then the update is the sign of the gradient: of size lr where the parameter is one."""
    x = torch.ones((3, 4), requires_grad=True)
    x.grad = torch.outer(torch.tensor([1.0, -2.0, 3.0]), torch.tensor([1.0, 5.0, -0.5, 2.0]))
    sign = np.sign(x.grad.numpy())
    optim.Adafactor([x], lr=0.01).step()
    assert np.allclose(x.detach().numpy(), 1 - 0.01 * sign, atol=1e-6)
