"""Optimizers over 30 steps with many options: the numbers and states of torch."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

STEPS = 30
OPTIONS: dict[str, dict[str, list[Any]]] = {
    "SGD": {"lr": [0.1], "momentum": [0, 0.9], "dampening": [0, 0.2], "nesterov": [False, True],
            "weight_decay": [0, 0.1], "maximize": [False, True]},
    "Adam": {"lr": [0.05], "betas": [(0.9, 0.999), (0.5, 0.8)], "eps": [1e-8, 1e-3],
             "weight_decay": [0, 0.1], "amsgrad": [False, True], "maximize": [False, True]},
    "AdamW": {"lr": [0.05], "weight_decay": [1e-2, 0.3], "amsgrad": [False, True],
              "maximize": [False, True]},
    "RMSprop": {"lr": [0.02], "alpha": [0.99, 0.5], "momentum": [0, 0.9], "centered": [False, True],
                "weight_decay": [0, 0.1], "maximize": [False, True]},
    "Adagrad": {"lr": [0.1], "lr_decay": [0, 0.1], "initial_accumulator_value": [0, 0.5],
                "weight_decay": [0, 0.1], "maximize": [False, True]},
    "Adadelta": {"lr": [1.0, 0.3], "rho": [0.9, 0.5], "eps": [1e-6, 1e-2],
                 "weight_decay": [0, 0.1], "maximize": [False, True]},
    "Adamax": {"lr": [0.05], "betas": [(0.9, 0.999), (0.5, 0.8)], "eps": [1e-8, 1e-2],
               "weight_decay": [0, 0.1], "maximize": [False, True]},
    "NAdam": {"lr": [0.05], "betas": [(0.9, 0.999), (0.5, 0.8)], "weight_decay": [0, 0.1],
              "momentum_decay": [4e-3, 0.1], "decoupled_weight_decay": [False, True],
              "maximize": [False, True]},
    "RAdam": {"lr": [0.05], "betas": [(0.9, 0.999), (0.5, 0.8)], "eps": [1e-8, 1e-3],
              "weight_decay": [0, 0.1], "decoupled_weight_decay": [False, True],
              "maximize": [False, True]},
    "ASGD": {"lr": [0.05], "lambd": [1e-4, 0.1], "alpha": [0.75, 0.5], "t0": [1e6, 5],
             "weight_decay": [0, 0.1], "maximize": [False, True]},
    "Rprop": {"lr": [0.01], "etas": [(0.5, 1.2), (0.3, 1.5)],
              "step_sizes": [(1e-6, 50), (0.005, 0.02)], "maximize": [False, True]},
    "Adafactor": {"lr": [0.05, 0.5], "beta2_decay": [-0.8, -0.3],
                  "eps": [(None, 1e-3), (1e-2, 0.1)], "d": [1.0, 2.0], "weight_decay": [0, 0.1],
                  "maximize": [False, True]},
}  # fmt: skip


def combinations(name: str) -> list[dict[str, Any]]:
    """All options of an optimizer that go together."""
    names, values = zip(*OPTIONS[name].items(), strict=True)
    made = [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values)]
    return [
        options
        for options in made
        if not (options.get("nesterov") and (not options["momentum"] or options["dampening"]))
    ]


CASES = [(name, options) for name in OPTIONS for options in combinations(name)]


def parameters(library: Any, dtype: str) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = ((3, 2), (4,), ())
    made = [library.tensor(rng.normal(size=shape)).to(getattr(library, dtype)) for shape in shapes]
    return [p.requires_grad_() for p in made]


def loss_of(params: list[Any], step: int) -> Any:
    """Uneven curvature, and one parameter that has no gradient in every third step."""
    total = ((params[0] - 1) ** 2).sum() + (params[2] * 3 - 1) ** 2
    return total if step % 3 == 0 else total + (params[1] ** 4).sum() * 0.1


def run(library: Any, name: str, options: dict[str, Any], dtype: str, closure: bool) -> Any:
    params = parameters(library, dtype)
    groups = [{"params": params[:1], "lr": options["lr"] / 2}, {"params": params[1:]}]
    optimizer = getattr(library.optim, name)(groups, **options)
    losses = []
    for step in range(STEPS):

        def evaluate(step: int = step) -> Any:
            optimizer.zero_grad()
            loss = loss_of(params, step)
            loss.backward()
            return loss

        if closure:
            losses.append(float(optimizer.step(evaluate).detach()))
        else:
            losses.append(float(evaluate().detach()))
            optimizer.step()
    return losses, [array(p) for p in params], described(optimizer.state_dict())


def array(tensor: Any) -> np.ndarray:
    return tensor.detach().double().numpy()


def described(value: Any) -> Any:
    """A state dict with arrays in place of tensors."""
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    return array(value) if hasattr(value, "detach") else value


def assert_close(ours: Any, theirs: Any, where: str = "") -> None:
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            assert_close(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for position, item in enumerate(theirs):
            assert_close(ours[position], item, f"{where}[{position}]")
    elif isinstance(theirs, (np.ndarray, float)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6, err_msg=where)
    else:
        assert ours == theirs, where


def case_id(value: Any) -> str:
    """A test's name without addresses, so that all workers collect the same."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))[:60]


@pytest.mark.parametrize(("name", "options"), CASES, ids=case_id)
def test_thirty_steps(name: str, options: dict[str, Any]) -> None:
    assert_close(*[run(lib, name, options, "float64", False) for lib in (flambeau, reference)])


@pytest.mark.parametrize("name", OPTIONS)
def test_single_precision_with_a_closure(name: str) -> None:
    options = combinations(name)[-1]
    ours, theirs = (run(lib, name, options, "float32", True) for lib in (flambeau, reference))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4)
    assert ours[2]["param_groups"] == theirs[2]["param_groups"]


WRONG = [
    ("SGD", {"lr": -1.0}), ("SGD", {"lr": 0.1, "momentum": -1.0}),
    ("SGD", {"lr": 0.1, "nesterov": True}), ("SGD", {"lr": 0.1, "weight_decay": -1.0}),
    ("Adam", {"lr": -1.0}), ("Adam", {"betas": (1.0, 0.9)}), ("Adam", {"betas": (0.9, 1.5)}),
    ("Adam", {"eps": -1.0}), ("Adam", {"weight_decay": -1.0}), ("AdamW", {"lr": -1.0}),
    ("RMSprop", {"alpha": -1.0}), ("RMSprop", {"momentum": -1.0}), ("RMSprop", {"eps": -1.0}),
    ("Adagrad", {"lr_decay": -1.0}), ("Adagrad", {"initial_accumulator_value": -1.0}),
    ("Adagrad", {"eps": -1.0}), ("Adam", {"unknown": 1}),
    ("Adadelta", {"lr": -1.0}), ("Adadelta", {"rho": 1.5}), ("Adadelta", {"eps": -1.0}),
    ("Adamax", {"betas": (0.9, 1.0)}), ("NAdam", {"momentum_decay": -1.0}),
    ("RAdam", {"weight_decay": -1.0}), ("ASGD", {"lr": -1.0}), ("ASGD", {"weight_decay": -1.0}),
    ("Rprop", {"lr": -1.0}), ("Rprop", {"etas": (1.0, 0.5)}), ("Adafactor", {"lr": -1.0}),
    ("Adafactor", {"beta2_decay": 1.0}), ("Adafactor", {"eps": (-1.0, 1.0)}),
    ("Adafactor", {"eps": (None, -1.0)}), ("Adafactor", {"d": 0.5}),
    ("Adafactor", {"weight_decay": -1.0}), ("LBFGS", {"lr": -1.0}), ("Muon", {}),
    ("Muon", {"momentum": -1.0}), ("Muon", {"adjust_lr_fn": "none"}),
    ("Adam", {"fused": True, "foreach": True}), ("SGD", {"fused": True, "differentiable": True}),
]  # fmt: skip


def error_of(action: Any, library: Any) -> Any:
    try:
        action(library)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    return None


@pytest.mark.parametrize(("name", "options"), WRONG, ids=str)
def test_wrong_options(name: str, options: dict[str, Any]) -> None:
    def build(library: Any) -> Any:
        return getattr(library.optim, name)(parameters(library, "float64"), **options)

    assert error_of(build, flambeau) == error_of(build, reference)


MISUSES = {
    "no parameters": lambda t: t.optim.SGD([], lr=0.1),
    "a tensor": lambda t: t.optim.SGD(t.ones(2), lr=0.1),
    "not tensors": lambda t: t.optim.SGD([1, 2], lr=0.1),
    "not a leaf": lambda t: t.optim.SGD([t.ones(2, requires_grad=True) * 2], lr=0.1),
    "the same twice": lambda t: t.optim.SGD(
        [{"params": [p := t.ones(2, requires_grad=True)]}, {"params": [p]}], lr=0.1
    ),
    "a set": lambda t: t.optim.SGD({t.ones(2, requires_grad=True)}, lr=0.1),
    "group without params": lambda t: t.optim.SGD([{"lr": 0.1}], lr=0.1),
    "other group count": lambda t: t.optim.SGD([t.ones(1)], lr=0.1).load_state_dict(
        {"state": {}, "param_groups": []}
    ),
    "other parameter count": lambda t: t.optim.SGD([t.ones(1)], lr=0.1).load_state_dict(
        {"state": {}, "param_groups": [{"params": [0, 1]}]}
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(name: str) -> None:
    assert error_of(MISUSES[name], flambeau) == error_of(MISUSES[name], reference)


@pytest.mark.parametrize("name", OPTIONS)
def test_state_can_be_carried_over(name: str) -> None:
    """A state dict of torch after 5 steps can be loaded here; the next steps are torch's."""
    options = combinations(name)[0]
    params = parameters(reference, "float64")
    optimizer = getattr(reference.optim, name)(params, **options)
    for step in range(5):
        loss_of(params, step).backward()
        optimizer.step()
    ours = [flambeau.tensor(array(p)).requires_grad_() for p in params]
    taken = getattr(flambeau.optim, name)(ours, **options)
    taken.load_state_dict(converted(optimizer.state_dict()))
    for step in range(5):
        for library_params, stepper in ((params, optimizer), (ours, taken)):
            stepper.zero_grad()
            loss_of(library_params, step).backward()
            stepper.step()
    assert_close([array(p) for p in ours], [array(p) for p in params])


def converted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: converted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [converted(item) for item in value]
    return flambeau.tensor(value.numpy()) if isinstance(value, reference.Tensor) else value
