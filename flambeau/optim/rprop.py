"""Rprop."""

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
    zeros_like,
)
from flambeau.optim.optimizer import Optimizer


class Rprop(Optimizer):
    """η ← clip(η·1.2, 1e-6, 50) where g keeps its sign, clip(η·0.5, 1e-6, 50) where it turns;
    p ← p - η·sign(g), except where it turned   (Riedmiller and Braun, 1993).

    The factors are `etas`, the limits `step_sizes`. The first η is `lr`. Only signs of gradients
    count: for whole batches, not for samples.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        lr = number(group["lr"])
        state["step"] = new_step()
        state["prev"] = zeros_like(parameter)
        state["step_size"] = zeros_like(grad)
        state["step_size"].fill_(complex(lr, lr) if parameter.is_complex() else lr)

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        from flambeau._ops.namespace import ops

        count(state)
        shrink, grow = group["etas"]
        previous, size = state["prev"], state["step_size"]
        agreement = grad * previous.clone()
        turned, kept = agreement < 0, agreement > 0
        new_size = ops.where(turned, size * shrink, ops.where(kept, size * grow, size))
        size.copy_(new_size.clamp(*group["step_sizes"]))
        grad = grad.masked_fill(turned, 0)
        parameter.sub_(grad.sign() * size)
        previous.copy_(grad)
