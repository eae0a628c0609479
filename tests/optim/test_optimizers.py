"""Optimizers: one step by hand, a closure, groups, states, schedules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import optim
from flambeau.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR

NAMES = [
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD",
    "Rprop", "Adafactor",
]  # fmt: skip


def parameter() -> torch.Tensor:
    return torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)


def stepped(name: str, steps: int = 2, **options: Any) -> list[float]:
    """A parameter after steps along the gradient of sum(x**2)."""
    x = parameter()
    optimizer = getattr(optim, name)([x], **options)
    for _ in range(steps):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()
    return x.tolist()


def by_hand(update: Any, steps: int = 2) -> list[float]:
    x, state = np.array([1.0, -2.0]), {}
    for step in range(1, steps + 1):
        x = update(x, 2 * x, state, step)
    return x.tolist()


def momentum(x: Any, grad: Any, state: Any, step: int) -> Any:
    state["v"] = 0.9 * state.get("v", 0) + grad
    return x - 0.1 * state["v"]


def adam(x: Any, grad: Any, state: Any, step: int) -> Any:
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * grad
    state["s"] = 0.999 * state.get("s", 0) + 0.001 * grad**2
    mean, square = state["m"] / (1 - 0.9**step), state["s"] / (1 - 0.999**step)
    return x - 0.1 * mean / (np.sqrt(square) + 1e-8)


def adamw(x: Any, grad: Any, state: Any, step: int) -> Any:
    return adam(x, grad, state, step) - 0.1 * 0.2 * x


def rmsprop(x: Any, grad: Any, state: Any, step: int) -> Any:
    state["s"] = 0.99 * state.get("s", 0) + 0.01 * grad**2
    return x - 0.1 * grad / (np.sqrt(state["s"]) + 1e-8)


def adagrad(x: Any, grad: Any, state: Any, step: int) -> Any:
    state["s"] = state.get("s", 0) + grad**2
    return x - 0.1 * grad / (np.sqrt(state["s"]) + 1e-10)


def adadelta(x: Any, grad: Any, state: Any, step: int) -> Any:
    state["v"] = 0.9 * state.get("v", 0) + 0.1 * grad**2
    delta = grad * np.sqrt(state.get("u", 0) + 1e-6) / np.sqrt(state["v"] + 1e-6)
    state["u"] = 0.9 * state.get("u", 0) + 0.1 * delta**2
    return x - 0.1 * delta


def adamax(x: Any, grad: Any, state: Any, step: int) -> Any:
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * grad
    state["u"] = np.maximum(0.999 * state.get("u", 0), abs(grad) + 1e-8)
    return x - 0.1 / (1 - 0.9**step) * state["m"] / state["u"]


def nadam(x: Any, grad: Any, state: Any, step: int) -> Any:
    """With momentum_decay 0, so that all momenta are 0.45."""
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * grad
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * grad**2
    ahead = 0.55 / (1 - 0.45**step) * grad + 0.45 / (1 - 0.45 ** (step + 1)) * state["m"]
    return x - 0.1 * ahead / (np.sqrt(state["v"] / (1 - 0.999**step)) + 1e-8)


def radam(x: Any, grad: Any, state: Any, step: int) -> Any:
    """The first five steps of RAdam are those of plain momentum."""
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * grad
    return x - 0.1 * state["m"] / (1 - 0.9**step)


def asgd(x: Any, grad: Any, state: Any, step: int) -> Any:
    eta = 0.1 / (1 + 1e-4 * 0.1 * (step - 1)) ** 0.75
    return x * (1 - 1e-4 * eta) - eta * grad


def rprop(x: Any, grad: Any, state: Any, step: int) -> Any:
    """While the gradient keeps its sign."""
    return x - 0.1 * 1.2 ** (step - 1) * np.sign(grad)


def adafactor(x: Any, grad: Any, state: Any, step: int) -> Any:
    newest = step**-0.8
    state["v"] = (1 - newest) * state.get("v", 0) + newest * grad**2
    update = grad / np.sqrt(state["v"])
    update /= max(1, np.sqrt(np.mean(update**2)))
    return x - np.sqrt(np.mean(x**2)) * min(0.1, step**-0.5) * update


@pytest.mark.parametrize(
    ("name", "options", "update"),
    [
        ("SGD", {}, lambda x, g, s, n: x - 0.1 * g),
        ("SGD", {"momentum": 0.9}, momentum),
        ("SGD", {"weight_decay": 0.5}, lambda x, g, s, n: x - 0.1 * (g + 0.5 * x)),
        ("SGD", {"maximize": True}, lambda x, g, s, n: x + 0.1 * g),
        ("Adam", {}, adam), ("AdamW", {"weight_decay": 0.2}, adamw), ("RMSprop", {}, rmsprop),
        ("Adagrad", {}, adagrad), ("Adadelta", {}, adadelta), ("Adamax", {}, adamax),
        ("NAdam", {"momentum_decay": 0}, nadam), ("RAdam", {}, radam), ("Rprop", {}, rprop),
        ("Adafactor", {}, adafactor),
    ],
)  # fmt: skip
def test_two_steps(name: str, options: dict[str, Any], update: Any) -> None:
    assert np.allclose(stepped(name, lr=0.1, **options), by_hand(update), 1e-12)


def test_two_steps_of_asgd() -> None:
    # eta is kept in float32, as in torch
    assert np.allclose(stepped("ASGD", lr=0.1), by_hand(asgd), 1e-6)


def test_asgd_averages_after_t0() -> None:
    x = parameter()
    optimizer = optim.ASGD([x], lr=0.1, t0=2)
    # the step after t0 + 1 is the first that counts
    path = []
    for _ in range(6):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()
        path.append(x.tolist())
    average = optimizer.state_dict()["state"][0]["ax"]
    assert np.allclose(average.tolist(), np.mean(path[3:], 0))


def test_rectified_steps_begin_with_the_sixth() -> None:
    plain = by_hand(radam, 5)
    assert np.allclose(stepped("RAdam", 5, lr=0.1), plain, 1e-12)
    assert not np.allclose(stepped("RAdam", 6, lr=0.1), by_hand(radam, 6), 1e-3)


@pytest.mark.parametrize("name", ["Adam", "Adagrad", "Adamax", "NAdam", "RMSprop", "Rprop"])
def test_a_complex_parameter_is_two_real_ones(name: str) -> None:
    z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True)
    pair = torch.view_as_real(z.detach().clone()).requires_grad_()
    for x, loss in ((z, lambda: (z.abs() ** 4).sum()),
                    (pair, lambda: ((pair**2).sum(-1) ** 2).sum())):  # fmt: skip
        optimizer = getattr(optim, name)([x], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    assert np.allclose(torch.view_as_real(z).tolist(), pair.tolist(), 1e-12)


def test_a_graph_of_the_gpu_is_refused_on_the_cpu() -> None:
    with pytest.raises(AssertionError, match="must be on supported devices"):
        stepped("NAdam", capturable=True)


def test_groups_have_their_own_rates_and_missing_gradients_are_passed_over() -> None:
    x, y, z = parameter(), parameter(), parameter()
    optimizer = optim.SGD([{"params": [x], "lr": 1.0}, {"params": [y, z]}], lr=0.5)
    (x + y).sum().backward()
    optimizer.step()
    assert [x.tolist(), y.tolist(), z.tolist()] == [[0.0, -3.0], [0.5, -2.5], [1.0, -2.0]]
    assert not optimizer.state_dict()["state"]


def test_a_closure_is_called_with_gradients_on() -> None:
    x = parameter()
    optimizer = optim.Adam([x], lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 5.0


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_goes_on_as_if_nothing_had_happened(name: str) -> None:
    options = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
    x = parameter()
    optimizer = getattr(optim, name)([x], **options)
    for step in range(4):
        if step == 2:
            saved, x = optimizer.state_dict(), x.detach().clone().requires_grad_()
            optimizer = getattr(optim, name)([x], lr=5.0)
            optimizer.load_state_dict(saved)
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()
    # what is loaded takes the parameter's type: the float32 counters of NAdam and ASGD go on wider
    assert np.allclose(x.tolist(), stepped(name, 4, **options), 1e-7)


@pytest.mark.parametrize(
    ("build", "rate"),
    [
        (lambda o: StepLR(o, 3, gamma=0.5), lambda n: 0.5 ** (n // 3)),
        (lambda o: LambdaLR(o, lambda n: 1 / (n + 1)), lambda n: 1 / (n + 1)),
        (lambda o: CosineAnnealingLR(o, 10), lambda n: (1 + math.cos(math.pi * n / 10)) / 2),
    ],
)
def test_schedules(build: Any, rate: Any) -> None:
    x = parameter()
    optimizer = optim.SGD([x], lr=1.0)
    schedule = build(optimizer)
    for step in range(10):
        assert math.isclose(optimizer.param_groups[0]["lr"], rate(step), abs_tol=1e-12)
        optimizer.step()
        schedule.step()
