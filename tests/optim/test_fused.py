"""Steps of all parameters in one kernel, against the formulas on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._runtime import choice

pytest.importorskip("llvmlite")

CASES: list[tuple[str, dict[str, Any]]] = [
    ("Adam", {}),
    ("Adam", {"weight_decay": 0.1, "maximize": True}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {"lr": 0.02, "betas": (0.8, 0.9)}),
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.8, 0.7)}),
    ("ASGD", {"t0": 1, "weight_decay": 0.1}),
    ("Rprop", {"maximize": True}),
]


def trained(name: str, options: dict[str, Any], dtype: Any) -> tuple[Any, Any]:
    """Parameters and state after eight steps.

    One parameter has gaps, one gets gradients later than the others, one none. Half way the state
    is loaded by a new optimizer, and a parameter gets other memory.
    """
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((7,), (5, 1, 3), (), (4099,), (0, 3))]
    params = [torch.nn.Parameter(torch.from_numpy(np.asarray(a, dtype))) for a in arrays]
    params.append(torch.nn.Parameter(torch.from_numpy(rng.random((6, 4)).astype(dtype)).t()))
    params.append(torch.nn.Parameter(torch.ones(3)))
    optimizer = getattr(torch.optim, name)(params, **options)
    for step in range(8):
        if step == 4:
            saved = optimizer.state_dict()
            optimizer = getattr(torch.optim, name)(params, **options)
            optimizer.load_state_dict(saved)
        if step == 6:
            params[3].data = params[3].data.clone()
        for parameter in params[step < 2 : -1]:
            grad = rng.standard_normal(tuple(parameter.shape)).astype(dtype)
            parameter.grad = torch.from_numpy(np.asarray(grad))
        optimizer.step()
    return params, optimizer.state_dict()["state"]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_formula(name: str, options: dict[str, Any], dtype: Any,
                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setitem(choice.LIMITS, "optimizer", 0)
    compiled, state = trained(name, options, dtype)
    monkeypatch.setitem(choice.LIMITS, "optimizer", choice.NEVER)
    plain, wanted = trained(name, options, dtype)
    tolerance = 2e-5 if dtype is np.float32 else 1e-12
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(
            one.detach().numpy(), other.detach().numpy(), tolerance, tolerance)  # fmt: skip
        assert (one._version > 0) == (other._version > 0)
    assert state.keys() == wanted.keys()
    for key, values in wanted.items():
        assert state[key].keys() == values.keys()
        for entry, value in values.items():
            if value is not None:
                np.testing.assert_allclose(
                    state[key][entry].numpy(), value.numpy(), tolerance, tolerance)  # fmt: skip


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_what_moved_is_found_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps go to the arrays that are there now, not to those of the step before."""
    monkeypatch.setitem(choice.LIMITS, "optimizer", 0)
    parameter = torch.nn.Parameter(torch.zeros(5))
    optimizer = getattr(torch.optim, name)([parameter], lr=0.1)
    parameter.grad = torch.ones(5)
    optimizer.step()
    old = parameter.data
    before = old.clone()
    parameter.data = torch.zeros(5)
    for state in optimizer.state.values():
        state.update({key: value.clone() for key, value in state.items()})
    optimizer.step()
    parameter.grad = torch.ones(5, dtype=torch.float32).expand(5).clone()[::1]
    optimizer.step()
    assert torch.equal(old, before)
    assert torch.allclose(parameter.detach(), torch.full((5,), -0.2))


def test_one_formula_three_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel, NumPy and tensors give the same steps; the last is how gradients flow."""
    results = []
    for limit, options in ((0, {}), (choice.NEVER, {}), (0, {"differentiable": True})):
        monkeypatch.setitem(choice.LIMITS, "optimizer", limit)
        start = torch.arange(6.0, dtype=torch.float64).requires_grad_()
        parameter = start.clone() if options else torch.nn.Parameter(start.detach().clone())
        optimizer = torch.optim.Adam([parameter], lr=0.1, amsgrad=True, **options)
        for k in range(3):
            parameter.grad = torch.arange(6.0, dtype=torch.float64) - k
            optimizer.step()
        results.append(parameter.detach().numpy())
    np.testing.assert_allclose(results[0], results[1], 1e-13)
    np.testing.assert_allclose(results[2], results[1], 1e-13)
