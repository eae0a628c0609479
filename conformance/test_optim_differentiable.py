"""Gradients through steps of optimizers: of the loss after some steps, by what began them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.3, 0.4)}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
]


def through_steps(library: Any, name: str, options: dict[str, Any], steps: int = 7) -> Any:
    """Parameters after steps on a quartic, and gradients by the start and by its curvature."""
    rng = np.random.default_rng(0)
    start, curve = (library.tensor(rng.normal(size=(3, 2)) + 2).requires_grad_() for _ in "ab")
    parameter = start.clone()
    optimizer = getattr(library.optim, name)([parameter], differentiable=True, **options)
    for _ in range(steps):
        now = parameter.clone()  # the step writes to the parameter
        parameter.grad = curve * now**3 + now
        optimizer.step()
    wanted = [start, curve]
    wanted += [
        value
        for value in (options.get("lr"), *options.get("betas", ()), options.get("weight_decay"))
        if hasattr(value, "grad_fn")
    ]
    grads = library.autograd.grad((parameter * curve).sum(), wanted, allow_unused=True)
    return [None if t is None else t.detach().numpy() for t in (parameter, *grads)]


def assert_alike(results: list[Any]) -> None:
    for ours, theirs in zip(*results, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


ONE_STEP = ("amsgrad", "centered", "Adamax", "Rprop")
"""Where torch's own second step writes to what the first one needs for its gradients."""


def is_for_one_step(name: str, options: dict[str, Any]) -> bool:
    return any(word in (name, *options) for word in ONE_STEP)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_gradients_reach_the_start(name: str, options: dict[str, Any]) -> None:
    steps = 1 if is_for_one_step(name, options) else 7
    results = [through_steps(library, name, options, steps) for library in (flambeau, reference)]
    assert_alike(results)
    assert any(np.abs(grad).max() > 0 for grad in results[0][1:])


@pytest.mark.parametrize(
    ("name", "options"), [case for case in CASES if is_for_one_step(*case)], ids=str
)
def test_gradients_of_many_steps_are_differences(name: str, options: dict[str, Any]) -> None:
    def loss(start: Any, curve: Any) -> Any:
        parameter = start.clone()
        optimizer = getattr(flambeau.optim, name)([parameter], differentiable=True, **options)
        for _ in range(4):
            now = parameter.clone()
            parameter.grad = curve * now**3 + now
            optimizer.step()
        return (parameter * curve).sum()

    rng = np.random.default_rng(1)
    inputs = tuple(flambeau.tensor(rng.normal(size=(3, 2)) + 2).requires_grad_() for _ in "ab")
    assert flambeau.autograd.gradcheck(loss, inputs, eps=1e-6, atol=1e-4)


HYPER: list[tuple[str, tuple[str, ...]]] = [
    ("SGD", ("lr", "weight_decay")), ("Adam", ("lr", "weight_decay", "betas")),
    ("AdamW", ("lr", "betas")), ("Adam", ("lr",)), ("Adam", ("betas",)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "learned"), HYPER, ids=str)
def test_gradients_reach_options(name: str, learned: tuple[str, ...]) -> None:
    """Learning rates, betas and weight decay may be tensors that are learned themselves."""

    def build(library: Any, key: str, value: float) -> Any:
        tensor = library.tensor(value, dtype=library.float64)
        return tensor.requires_grad_() if key in learned else value

    results = []
    for library in (flambeau, reference):
        options: dict[str, Any] = {"lr": build(library, "lr", 0.1)}
        if "weight_decay" in learned:
            options["weight_decay"] = build(library, "weight_decay", 0.2)
        if "betas" in learned:
            options["betas"] = tuple(build(library, "betas", beta) for beta in (0.6, 0.7))
        results.append(through_steps(library, name, options))
    assert_alike(results)
    assert all(grad is not None for grad in results[0])


def test_a_leaf_that_requires_grad_is_refused() -> None:
    def step(library: Any) -> Any:
        leaf = library.ones(2, requires_grad=True)
        optimizer = library.optim.SGD([leaf], lr=0.1, differentiable=True)
        leaf.grad = library.ones(2)
        with pytest.raises(RuntimeError) as caught:
            optimizer.step()
        return str(caught.value)

    assert step(flambeau) == step(reference)
