"""Complex parameters, differentiable steps and refusals of optimizers; LBFGS and Muon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from conformance.test_optim import (
    OPTIONS,
    array,
    assert_close,
    case_id,
    described,
    error_of,
    loss_of,
    parameters,
)

REFUSED_STEPS = [
    ("Adadelta", {"capturable": True}), ("NAdam", {"capturable": True}),
    ("ASGD", {"capturable": True}), ("Adam", {"foreach": True, "differentiable": True}),
    ("Rprop", {"foreach": True, "differentiable": True}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), REFUSED_STEPS, ids=str)
def test_steps_that_the_cpu_refuses(name: str, options: dict[str, Any]) -> None:
    def step(library: Any) -> Any:
        params = parameters(library, "float64")
        optimizer = getattr(library.optim, name)(params, **options)
        loss_of(params, 1).backward()
        optimizer.step()

    ours, theirs = error_of(step, flambeau), error_of(step, reference)
    assert (ours[0], ours[1].partition("[")[0]) == (theirs[0], theirs[1].partition("[")[0])


def complex_run(library: Any, name: str) -> Any:
    values = np.array([[1 + 2j, -0.5j], [0.3 - 1j, 2.0]])
    parameter = library.tensor(values).requires_grad_()
    optimizer = getattr(library.optim, name)([parameter], lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        ((parameter - (0.5 + 1j)).abs() ** 4).sum().backward()
        optimizer.step()
    state = optimizer.state_dict()["state"]
    kept = (
        {k: v.detach().numpy() for k, v in state[0].items() if hasattr(v, "detach")}
        if state
        else {}
    )
    return parameter.detach().numpy(), kept


COMPLEX = sorted(set(OPTIONS) - {"Adafactor"})


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_parameters(name: str) -> None:
    ours, theirs = complex_run(flambeau, name), complex_run(reference, name)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
    assert list(ours[1]) == list(theirs[1])
    for key, value in theirs[1].items():
        assert ours[1][key].dtype == value.dtype
        np.testing.assert_allclose(ours[1][key], value, rtol=1e-6, err_msg=key)


def differentiated(library: Any, name: str, tensor_lr: bool) -> list[np.ndarray]:
    """The gradient of a parameter after one step with respect to what it was and its gradient."""
    start = library.tensor([1.0, -2.0], dtype=library.float64, requires_grad=True)
    grad = library.tensor([0.5, 3.0], dtype=library.float64, requires_grad=True)
    lr = library.tensor(0.1, dtype=library.float64, requires_grad=True) if tensor_lr else 0.1
    parameter = start.clone()
    parameter.grad = grad.clone()
    optimizer = getattr(library.optim, name)([parameter], lr=lr, differentiable=True)
    optimizer.step()
    wanted = [start, grad, *([lr] if tensor_lr else [])]
    found = library.autograd.grad((parameter**3).sum(), wanted, allow_unused=True)
    return [np.zeros(()) if g is None else array(g) for g in found]


@pytest.mark.parametrize("name", COMPLEX)
def test_differentiable_steps(name: str) -> None:
    for tensor_lr in (
        (False, True) if name in ("SGD", "Adam", "AdamW", "NAdam", "RAdam") else (False,)
    ):
        pairs = zip(differentiated(flambeau, name, tensor_lr),
                    differentiated(reference, name, tensor_lr), strict=True)  # fmt: skip
        for ours, theirs in pairs:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-9)


MATRIX_OPTIONS = [
    {}, {"nesterov": False, "momentum": 0.5}, {"adjust_lr_fn": "match_rms_adamw"},
    {"weight_decay": 0.5, "lr": 0.05}, {"ns_steps": 3, "ns_coefficients": (1.5, -0.5, 0.0)},
]  # fmt: skip


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("options", MATRIX_OPTIONS, ids=case_id)
def test_muon(options: dict[str, Any], shape: tuple[int, int]) -> None:
    results = []
    for library in (flambeau, reference):
        rng = np.random.default_rng(3)
        parameter = library.tensor(rng.normal(size=shape)).requires_grad_()
        target = library.tensor(rng.normal(size=shape))
        optimizer = library.optim.Muon([parameter], **options)
        for _ in range(10):
            optimizer.zero_grad()
            ((parameter - target) ** 2).sum().backward()
            optimizer.step()
        results.append((array(parameter), described(optimizer.state_dict())))
    # steps are bfloat16: one that rounds the other way is 2**-8 of a step off
    np.testing.assert_allclose(*(result[0] for result in results), atol=1e-3)
    assert results[0][1]["param_groups"] == results[1][1]["param_groups"]
    assert list(results[0][1]["state"][0]) == list(results[1][1]["state"][0])


def ordered(value: Any) -> Any:
    """Dicts with sorted keys."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(item) for item in value] if isinstance(value, list) else value


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


SEARCHES = [
    {}, {"lr": 0.1}, {"line_search_fn": "strong_wolfe"}, {"max_iter": 4, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "max_eval": 5}, {"tolerance_change": 1e-2},
    {"line_search_fn": "strong_wolfe", "lr": 10.0, "history_size": 3}, {"tolerance_grad": 10.0},
    {"line_search_fn": "strong_wolfe", "lr": 1e-2}, {"max_eval": 3},
]  # fmt: skip


@pytest.mark.parametrize("options", SEARCHES, ids=case_id)
def test_lbfgs(options: dict[str, Any]) -> None:
    results = []
    for library in (flambeau, reference):
        first = library.tensor([-1.2, 1.0, 0.5], dtype=library.float64).requires_grad_()
        second = library.tensor([[0.3, -0.7]], dtype=library.float64).requires_grad_()
        optimizer = library.optim.LBFGS([first, second], **options)
        calls = []

        def closure(library: Any = library, first: Any = first, second: Any = second,
                    optimizer: Any = optimizer, calls: Any = calls) -> Any:  # fmt: skip
            optimizer.zero_grad()
            loss = rosenbrock(library.cat([first, second.flatten()]))
            loss.backward()
            calls.append(float(loss.detach()))
            return loss

        for step in range(3):
            optimizer.step(closure)
            if step == 1:
                saved, optimizer = optimizer.state_dict(), library.optim.LBFGS([first, second])
                optimizer.load_state_dict(saved)
        results.append(
            (calls, array(first), array(second), ordered(described(optimizer.state_dict())))
        )
    assert_close(*results)
