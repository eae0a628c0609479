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
]


def trained(name: str, options: dict[str, Any], dtype: Any) -> tuple[Any, Any]:
    """Parameters and state after four steps; one parameter has gaps, one has no gradient."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((7,), (5, 1, 3), (), (4099,), (0, 3))]
    params = [torch.nn.Parameter(torch.from_numpy(np.asarray(a, dtype))) for a in arrays]
    params.append(torch.nn.Parameter(torch.from_numpy(rng.random((6, 4)).astype(dtype)).t()))
    params.append(torch.nn.Parameter(torch.ones(3)))
    optimizer = getattr(torch.optim, name)(params, **options)
    for _ in range(4):
        for parameter in params[:-1]:
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
