"""Adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from typing import Any

from flambeau.optim.formulas import (
    Group,
    State,
    check_range,
    check_rate,
    check_two_betas,
    count,
    new_step,
    operands,
    rate,
    zeros_like,
)
from flambeau.optim.optimizer import Optimizer


class Adamax(Optimizer):
    """m ← β1·m + (1 - β1)·g;  u ← max(β2·u, |g| + eps);
    p ← p - lr/(1 - β1ᵗ) · m/u   (Kingma and Ba, 2015, section 7.1).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_two_betas(betas)
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["exp_avg"] = zeros_like(parameter)
        state["exp_inf"] = zeros_like(parameter)

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        beta1, beta2 = group["betas"]
        step = count(state)
        if group["weight_decay"]:
            grad = grad + parameter * group["weight_decay"]
        parameter, grad, mean, largest = operands(
            group, parameter, grad, state["exp_avg"], state["exp_inf"]
        )
        mean += (grad - mean) * (1 - beta1)
        largest[...] = (largest * beta2).clip(abs(grad) + group["eps"])
        parameter -= mean / largest * (rate(group) / (1 - beta1**step))
