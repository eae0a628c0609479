"""SparseAdam, and the other optimizers' steps for sparse gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch

TOUCHED = [1, 3]


def look_up(weight: Any) -> Any:
    """Row 3 counts twice."""
    return torch.nn.functional.embedding(torch.tensor([1, 3, 3]), weight, sparse=True)


def trained(name: str, steps: int, **options: Any) -> tuple[np.ndarray, Any]:
    weight = torch.nn.Parameter(torch.arange(10.0, dtype=torch.float64).view(5, 2) / 3)
    optimizer = getattr(torch.optim, name)([weight], **options)
    for _ in range(steps):
        optimizer.zero_grad()
        (look_up(weight) ** 2).sum().backward()
        optimizer.step()
    return weight.detach().numpy(), optimizer


def by_formula(steps: int, lr: float, betas: tuple[float, float], eps: float) -> np.ndarray:
    """Adam of Kingma and Ba on the rows that have a gradient."""
    weight = np.arange(10.0).reshape(5, 2) / 3
    mean, square = np.zeros_like(weight), np.zeros_like(weight)
    times = np.array([0, 1, 0, 2, 0])[:, None]
    for step in range(1, steps + 1):
        grad = 2 * weight * times
        mean[TOUCHED] = (betas[0] * mean + (1 - betas[0]) * grad)[TOUCHED]
        square[TOUCHED] = (betas[1] * square + (1 - betas[1]) * grad**2)[TOUCHED]
        rate = lr * np.sqrt(1 - betas[1] ** step) / (1 - betas[0] ** step)
        weight[TOUCHED] -= (rate * mean / (np.sqrt(square) + eps))[TOUCHED]
    return weight


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.8)])
def test_the_formula(betas: tuple[float, float]) -> None:
    found, optimizer = trained("SparseAdam", 20, lr=0.05, betas=betas, eps=1e-6)
    np.testing.assert_allclose(found, by_formula(20, 0.05, betas, 1e-6), rtol=1e-10)
    state = optimizer.state_dict()["state"][0]
    assert list(state) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["step"] == 20
    assert state["exp_avg"][0].tolist() == [0, 0]


def test_steps_the_other_way() -> None:
    down, _ = trained("SparseAdam", 1, lr=0.05)
    up, _ = trained("SparseAdam", 1, lr=0.05, maximize=True)
    start = np.arange(10.0).reshape(5, 2) / 3
    np.testing.assert_allclose(up - start, start - down)


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_sparse_steps_are_dense_steps_of_those_rows(name: str) -> None:
    sparse, _ = trained(name, 5, lr=0.1)
    weight = torch.nn.Parameter(torch.arange(10.0, dtype=torch.float64).view(5, 2) / 3)
    optimizer = getattr(torch.optim, name)([weight], lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        (look_up(weight).pow(2)).sum().backward()
        weight.grad = weight.grad.to_dense()
        optimizer.step()
    np.testing.assert_allclose(sparse, weight.detach().numpy(), rtol=1e-10)


REFUSALS = {
    "Adam": "Adam does not support sparse gradients, please consider SparseAdam instead",
    "AdamW": "Adam does not support sparse gradients, please consider SparseAdam instead",
    "RMSprop": "RMSprop does not support sparse gradients",
    "Muon": "Muon does not support sparse gradients",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_the_others_refuse_before_they_change_anything(name: str) -> None:
    dense = torch.nn.Parameter(torch.ones(2, 2))
    table = torch.nn.Parameter(torch.ones(5, 2))
    optimizer = getattr(torch.optim, name)([dense, table])
    (look_up(table).sum() + dense.sum()).backward()
    with pytest.raises(RuntimeError, match=REFUSALS[name]):
        optimizer.step()
    assert dense.tolist() == [[1, 1], [1, 1]]


def test_what_sparse_adam_refuses() -> None:
    weight = torch.nn.Parameter(torch.ones(5, 2))
    optimizer = torch.optim.SparseAdam([weight])
    weight.sum().backward()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()
    for options, text in (({"lr": 0.0}, "learning rate"), ({"eps": 0.0}, "epsilon value"),
                          ({"betas": (1.0, 0.5)}, "beta parameter at index 0")):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            torch.optim.SparseAdam([weight], **options)
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        torch.optim.SparseAdam([torch.eye(2).to_sparse()])
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 1\]\]"):
        torch.optim.SparseAdam([weight, torch.ones(2, dtype=torch.complex64)])


def test_a_gradient_without_entries_only_counts() -> None:
    weight = torch.nn.Parameter(torch.ones(5, 2))
    optimizer = torch.optim.SparseAdam([weight])
    weight.grad = torch.zeros(5, 2, layout=torch.sparse_coo)
    optimizer.step()
    assert optimizer.state[weight]["step"] == 1
    assert weight.tolist() == [[1, 1]] * 5
