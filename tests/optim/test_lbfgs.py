"""L-BFGS: it finds minima, in as many evaluations as it says; its searches satisfy Wolfe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import optim
from flambeau.optim.line_search import CURVATURE, SUFFICIENT_DECREASE, LineSearch, Point


def minimised(loss_of: Any, start: list[float], steps: int = 1, **options: Any) -> Any:
    x = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = optim.LBFGS([x], **options)
    calls = 0

    def closure() -> Any:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = loss_of(x)
        loss.backward()
        return loss

    first = [optimizer.step(closure) for _ in range(steps)][0]
    return x, calls, first, optimizer.state_dict()["state"][0]


def rosenbrock(x: Any) -> Any:
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def test_the_minimum_of_a_banana() -> None:
    x, calls, first, state = minimised(
        rosenbrock, [-1.2, 1.0], max_iter=100, line_search_fn="strong_wolfe"
    )
    assert np.allclose(x.tolist(), [1, 1], atol=1e-4)
    assert state["func_evals"] == calls < 80
    assert np.isclose(first.item(), 24.2)


def test_a_quadratic_in_two_dims_takes_few_moves() -> None:
    x, calls, _, state = minimised(lambda x: (x[0] - 3) ** 2 + 10 * (x[1] + 1) ** 2, [0.0, 0.0])
    assert np.allclose(x.tolist(), [3, -1], atol=1e-4)
    assert state["n_iter"] <= 20 and calls <= 25


def test_nothing_happens_at_a_minimum() -> None:
    x, calls, _, state = minimised(lambda x: (x * x).sum(), [0.0, 0.0])
    assert x.tolist() == [0, 0] and calls == 1 and state["n_iter"] == 0


def test_the_history_is_limited() -> None:
    state = minimised(rosenbrock, [-1.2, 1.0], history_size=3, lr=0.1)[3]
    assert len(state["old_dirs"]) == len(state["old_stps"]) == len(state["ro"]) == 3


def test_complex_and_unused_parameters() -> None:
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    unused = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    optimizer = optim.LBFGS([z, unused], line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((z - (0.5 - 1j)).abs() ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert np.allclose(z.tolist(), [0.5 - 1j]) and unused.tolist() == [1, 1]


def test_steps_need_a_closure_and_one_group() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'closure'"):
        optim.LBFGS([x]).step()
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optim.LBFGS([{"params": [x]}, {"params": [torch.ones(1, requires_grad=True)]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        minimised(rosenbrock, [0.0, 0.0], line_search_fn="weak")


CURVES = {
    "quadratic": lambda t: ((t - 3) ** 2, 2 * (t - 3)),
    "cosine": lambda t: (np.cos(t), -np.sin(t)),
    "steep then flat": lambda t: (1 / (1 + t) ** 2 + 0.01 * t, -2 / (1 + t) ** 3 + 0.01),
    "wavy": lambda t: (np.sin(5 * t) + t**2 / 9 - 2 * t, 5 * np.cos(5 * t) + 2 * t / 9 - 2),
}


@pytest.mark.parametrize("first", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("name", CURVES)
def test_the_wolfe_conditions(name: str, first: float) -> None:
    curve = CURVES[name]
    start = 0.5

    def evaluate(step: float) -> Point:
        loss, slope = curve(start + step)
        return Point(step, float(loss), None, float(slope))

    begin = evaluate(0.0)
    assert begin.slope < 0 or name == "wavy"
    if begin.slope >= 0:
        return
    found = LineSearch(evaluate, begin, limit=25, tolerance=1e-12).run(first)
    assert found.loss <= begin.loss + SUFFICIENT_DECREASE * found.step * begin.slope
    assert abs(found.slope) <= -CURVATURE * begin.slope
