"""Adagrad."""

from __future__ import annotations

from typing import Any

from flambeau.optim.formulas import (
    Group,
    State,
    check_kind,
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


class Adagrad(Optimizer):
    """s ← s + g²;  p ← p - lr/(1 + (t - 1)·lr_decay) · g/(√s + eps)   (Duchi et al., 2011)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(lr_decay >= 0.0, f"Invalid lr_decay value: {lr_decay}")
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        start = initial_accumulator_value
        check_range(start >= 0.0, f"Invalid initial_accumulator_value value: {start}")
        check_range(eps >= 0.0, f"Invalid epsilon value: {eps}")
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        check_kind(self.defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                state["step"] = new_step()
                state["sum"] = zeros_like(parameter)
                state["sum"].fill_(complex(start, start) if parameter.is_complex() else start)

    def compiled(self, state: State, group: Group) -> Formula:
        lr = rate(group) / (1 + (count(state) - 1) * group["lr_decay"])
        decay = group["weight_decay"]
        return Formula(
            "adagrad", (bool(decay),), (state["sum"],), (sign(group), lr, group["eps"], decay)
        )

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        step = count(state)
        if group["weight_decay"]:
            grad = grad + parameter * group["weight_decay"]
        lr = rate(group) / (1 + (step - 1) * group["lr_decay"])
        total = state["sum"]
        total.add_(grad * grad)
        parameter.add_(grad / (total.sqrt() + group["eps"]) * -lr)
