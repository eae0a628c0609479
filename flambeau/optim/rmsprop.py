"""RMSprop."""

from __future__ import annotations

from typing import Any

from flambeau.optim.formulas import (
    Group,
    State,
    check_range,
    check_rate,
    count,
    new_step,
    rate,
    sign,
    zeros_like,
)
from flambeau.optim.fused import Formula
from flambeau.optim.optimizer import Optimizer


class RMSprop(Optimizer):
    """v ← α·v + (1 - α)·g²;  p ← p - lr·g/(√v + eps)   (Hinton, lecture 6e, 2012).

    `centered` subtracts the squared mean of g from v (Graves, 2013); `momentum` averages the steps.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_range(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check_range(alpha >= 0.0, f"Invalid alpha value: {alpha}")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["square_avg"] = zeros_like(parameter)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = zeros_like(parameter)

    def compiled(self, state: State, group: Group) -> Formula:
        count(state)
        alpha, decay, momentum = group["alpha"], group["weight_decay"], group["momentum"]
        square: Any = state["square_avg"]
        return Formula(
            "rmsprop", (bool(decay), bool(group["centered"]), momentum > 0),
            (square, state.get("grad_avg", square), state.get("momentum_buffer", square)),
            (sign(group), rate(group), alpha, 1 - alpha, group["eps"], decay, momentum),
        )  # fmt: skip

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        count(state)
        alpha = group["alpha"]
        if group["weight_decay"]:
            grad = grad + parameter * group["weight_decay"]
        square = state["square_avg"]
        square.mul_(alpha).add_(grad * grad * (1 - alpha))
        if group["centered"]:
            mean = state["grad_avg"]
            mean.add_((grad - mean) * (1 - alpha))
            square = square - mean * mean
        step = grad / (square.sqrt() + group["eps"])
        if group["momentum"] > 0:
            step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
        parameter.add_(step * -rate(group))
