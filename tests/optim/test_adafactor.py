"""Adafactor: the state of a matrix is two vectors, and their product its squared gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import flambeau as torch
from flambeau import optim
from flambeau._runtime import choice


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


OPTIONS: list[dict[str, Any]] = [
    {}, {"maximize": True, "weight_decay": 0.1}, {"eps": (1e-2, 0.1), "beta2_decay": -0.3},
    {"lr": 0.5, "d": 2.0},
]  # fmt: skip
SHAPES = ((7,), (5, 3), (), (9000,), (2, 3, 19), (1, 5000), (40, 1))


def stepped(options: dict[str, Any], dtype: Any) -> tuple[list[Any], Any]:
    """Parameters and state after eight steps; one gets gradients later, one has gaps."""
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(shape), dtype) for shape in SHAPES]
    params = [torch.nn.Parameter(torch.from_numpy(array)) for array in arrays]
    params.append(torch.nn.Parameter(torch.from_numpy(rng.random((6, 4)).astype(dtype)).t()))
    optimizer = optim.Adafactor(params, **options)
    for step in range(8):
        for parameter in params[step < 2 :]:
            grad = rng.standard_normal(tuple(parameter.shape)).astype(dtype)
            parameter.grad = torch.from_numpy(np.asarray(grad))
        optimizer.step()
    return params, optimizer.state_dict()["state"]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_and_operators_agree(options: dict[str, Any], dtype: Any,
                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    pytest.importorskip("llvmlite")
    results = []
    for limit in (0, choice.NEVER):
        monkeypatch.setitem(choice.LIMITS, "optimizer of matrices", limit)
        results.append(stepped(options, dtype))
    (compiled, state), (plain, wanted) = results
    tolerance = 2e-5 if dtype is np.float32 else 1e-12
    for one, other in zip(compiled, plain, strict=True):
        assert_allclose(one.detach().numpy(), other.detach().numpy(), tolerance, tolerance)
        assert one._version > 0
    for key, values in wanted.items():
        assert state[key].keys() == values.keys()
        for name, value in values.items():
            assert_allclose(state[key][name].numpy(), value.numpy(), tolerance, tolerance)


def test_nan_and_infinity_reach_what_they_reach_in_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("llvmlite")
    results = []
    for limit in (0, choice.NEVER):
        monkeypatch.setitem(choice.LIMITS, "optimizer of matrices", limit)
        params = [torch.nn.Parameter(torch.ones(shape)) for shape in ((3, 20), (20,), (3, 20))]
        for parameter, odd in zip(params, (float("nan"), float("inf"), 1e-30), strict=True):
            parameter.grad = torch.ones(parameter.shape)
            parameter.grad[..., 1] = odd
        optim.Adafactor(params).step()
        results.append([parameter.detach().numpy() for parameter in params])
    for one, other in zip(*results, strict=True):
        assert_allclose(one, other, 1e-5)
