"""RAdam: Adam whose step waits until the variance of its denominator is known."""

from __future__ import annotations

from math import sqrt
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


class RAdam(Optimizer):
    """m ← β1·m + (1 - β1)·g;  v ← β2·v + (1 - β2)·g²;  m̂ = m/(1 - β1ᵗ);
    ρ∞ = 2/(1 - β2) - 1;  ρₜ = ρ∞ - 2·t·β2ᵗ/(1 - β2ᵗ);
    p ← p - lr·m̂·r·√(1 - β2ᵗ)/(√v + eps) where ρₜ > 5, else p ← p - lr·m̂,
    with r² = (ρₜ - 4)(ρₜ - 2)ρ∞ / ((ρ∞ - 4)(ρ∞ - 2)ρₜ)   (Liu et al., 2020).

    `weight_decay` adds weight_decay·p to g, or with `decoupled_weight_decay` shrinks p by
    lr·weight_decay first.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_two_betas(betas)
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["exp_avg"] = zeros_like(parameter)
        state["exp_avg_sq"] = zeros_like(parameter)

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        beta1, beta2 = group["betas"]
        lr = rate(group)
        step = count(state)
        if group["weight_decay"]:
            if group["decoupled_weight_decay"]:
                parameter.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad + parameter * group["weight_decay"]
        parameter, grad, mean, square = operands(
            group, parameter, grad, state["exp_avg"], state["exp_avg_sq"]
        )
        mean += (grad - mean) * (1 - beta1)
        square *= beta2
        square += grad * grad * (1 - beta2)
        unbiased = mean / (1 - beta1**step)
        rectified = rectification(step, beta2)
        if rectified:
            scale = rectified * sqrt(1 - beta2**step)
            unbiased = unbiased / ((square + 0) ** 0.5 + group["eps"]) * scale
        parameter -= unbiased * lr


def rectification(step: float, beta2: float) -> float:
    """r, or 0 where too few gradients were seen for a variance."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5:
        return 0.0
    above, limit = (length - 4) * (length - 2), (longest - 4) * (longest - 2)
    return sqrt(above * longest / (limit * length))
