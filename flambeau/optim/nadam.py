"""NAdam: Adam with Nesterov's momentum."""

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
    number,
    operands,
    rate,
    scalar_state,
    zeros_like,
)
from flambeau.optim.optimizer import Optimizer


class NAdam(Optimizer):
    """m ← β1·m + (1 - β1)·g;  v ← β2·v + (1 - β2)·g²;  μₜ = β1·(1 - 0.96^(t·ψ)/2);
    p ← p - lr·((1 - μₜ)/(1 - Πμ₁…ₜ)·g + μₜ₊₁/(1 - Πμ₁…ₜ₊₁)·m) / (√(v/(1 - β2ᵗ)) + eps)
    with ψ = `momentum_decay`   (Dozat, 2016).

    `weight_decay` adds weight_decay·p to g, or with `decoupled_weight_decay` shrinks p by
    lr·weight_decay first.
    """

    counters = "params, mu_products and state_steps"

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_range(momentum_decay >= 0.0, f"Invalid momentum_decay value: {momentum_decay}")
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["mu_product"] = scalar_state(1.0)
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
        momentum = momentum_at(step, group)
        next_momentum = momentum_at(step + 1, group)
        state["mu_product"].mul_(momentum)
        product = number(state["mu_product"])
        parameter, grad, mean, square = operands(
            group, parameter, grad, state["exp_avg"], state["exp_avg_sq"]
        )
        mean += (grad - mean) * (1 - beta1)
        square *= beta2
        square += grad * grad * (1 - beta2)
        deviation = (square / (1 - beta2**step)) ** 0.5 + group["eps"]
        parameter -= grad / deviation * (lr * (1 - momentum) / (1 - product))
        parameter -= mean / deviation * (lr * next_momentum / (1 - product * next_momentum))


def momentum_at(step: float, group: Group) -> float:
    """μₜ grows from β1/2 towards β1."""
    fading = 0.96 ** (step * group["momentum_decay"])
    return float(group["betas"][0] * (1 - 0.5 * fading))
