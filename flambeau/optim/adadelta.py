"""Adadelta."""

from __future__ import annotations

from typing import Any

from flambeau.optim.formulas import (
    Group,
    State,
    check_range,
    check_rate,
    count,
    new_step,
    operands,
    rate,
    sign,
    zeros_like,
)
from flambeau.optim.fused import Formula
from flambeau.optim.optimizer import Optimizer


class Adadelta(Optimizer):
    """v ← ρ·v + (1 - ρ)·g²;  Δ = g·√(u + eps)/√(v + eps);
    u ← ρ·u + (1 - ρ)·Δ²;  p ← p - lr·Δ   (Zeiler, 2012).

    The steps have the size of the steps so far: `lr` is 1 unless told otherwise.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        check_range(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["square_avg"] = zeros_like(parameter)
        state["acc_delta"] = zeros_like(parameter)

    def compiled(self, state: State, group: Group) -> Formula:
        count(state)
        rho, decay = group["rho"], group["weight_decay"]
        return Formula(
            "adadelta", (bool(decay),), (state["square_avg"], state["acc_delta"]),
            (sign(group), rate(group), rho, 1 - rho, group["eps"], decay),
        )  # fmt: skip

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        count(state)
        rho, eps = group["rho"], group["eps"]
        if group["weight_decay"]:
            grad = grad + parameter * group["weight_decay"]
        parameter, grad, square, travelled = operands(
            group, parameter, grad, state["square_avg"], state["acc_delta"]
        )
        square *= rho
        square += grad * grad * (1 - rho)
        delta = (travelled + eps) ** 0.5 / (square + eps) ** 0.5 * grad
        travelled *= rho
        travelled += delta * delta * (1 - rho)
        parameter -= delta * rate(group)
