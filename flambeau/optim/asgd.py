"""ASGD: stochastic gradient descent and the average of its path."""

from __future__ import annotations

from typing import Any

from flambeau.optim.formulas import (
    Group,
    State,
    check_range,
    check_rate,
    count,
    new_step,
    number,
    operands,
    scalar_state,
    zeros_like,
)
from flambeau.optim.optimizer import Optimizer


class ASGD(Optimizer):
    """p ← (1 - λ·η)·p - η·g;  a ← a + μ·(p - a);
    η ← lr/(1 + λ·lr·t)^α;  μ ← 1/max(1, t - t0)   (Polyak and Juditsky, 1992; Bottou, 2010).

    λ is `lambd`. The average a is `state[p]["ax"]`; before step `t0` it follows p.
    """

    counters = "params, mus, etas, and state_steps"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["eta"] = scalar_state(number(group["lr"]))
        state["mu"] = scalar_state(1.0)
        state["ax"] = zeros_like(parameter)

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        lr, decay = number(group["lr"]), group["lambd"]
        eta, mu = number(state["eta"]), number(state["mu"])
        step = count(state)
        if group["weight_decay"]:
            grad = grad + parameter * group["weight_decay"]
        parameter, grad, average = operands(group, parameter, grad, state["ax"])
        parameter *= 1 - decay * eta
        parameter -= grad * eta
        average += (parameter - average) * mu
        state["eta"].fill_(lr / (1 + decay * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1.0, step - group["t0"]))
