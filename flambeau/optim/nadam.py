"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise, count, new_step, zeros_like
from flambeau.optim.formulas import add, addcdiv, addcmul, formula, lerp, sqrt
from flambeau.optim.optimizer import scalar_state
from flambeau.optim.options import (
    Group,
    State,
    check_betas,
    check_not_negative,
    check_rate,
    decays,
    option,
)


@formula
def nadam(p: Any, g: Any, mean: Any, square: Any, grad_size: Any, mean_size: Any, fresh1: Any,
          beta2: Any, fresh2: Any, unbias: Any, eps: Any, decay: Any,
          shrink: Any) -> Any:  # fmt: skip
    """With fresh = 1 - β and unbias = 1 - β2ᵗ; the sizes are what stands before g and m."""
    if shrink is not None:
        p = p * shrink
    if decay is not None:
        g = add(g, p, decay)
    mean = lerp(mean, g, fresh1)
    square = addcmul(square * beta2, g, g, fresh2)
    deviation = sqrt(square / unbias) + eps
    p = addcdiv(p, g, deviation, -grad_size)
    return addcdiv(p, mean, deviation, -mean_size), mean, square


class NAdam(Elementwise):
    """m ← β1·m + (1 - β1)·g;  v ← β2·v + (1 - β2)·g²;  μₜ = β1·(1 - 0.96^(t·ψ)/2);
    p ← p - lr·((1 - μₜ)/(1 - Πμ₁…ₜ)·g + μₜ₊₁/(1 - Πμ₁…ₜ₊₁)·m) / (√(v/(1 - β2ᵗ)) + eps)
    with ψ = `momentum_decay`   (Dozat, 2016).

    `weight_decay` adds weight_decay·p to g, or with `decoupled_weight_decay` shrinks p by
    lr·weight_decay first.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.NAdam([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8944], requires_grad=True)
    """

    formula = nadam
    kept = ("exp_avg", "exp_avg_sq")
    counts = False
    others = ("step", "mu_product")
    counters = ("params, mu_products and state_steps", "params, mu_products, and state_steps")

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
        check_not_negative(lr=lr, eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def writes(self, group: Group) -> int:
        """As torch, which adds the gradient's part and the moment's one after the other."""
        return 1 + super().writes(group)

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step(group, parameter)
        state["mu_product"] = scalar_state(1.0)
        state["exp_avg"] = zeros_like(parameter)
        state["exp_avg_sq"] = zeros_like(parameter)

    def advance(self, state: State, group: Group) -> Any:
        step = count(state)
        if self.defaults["differentiable"]:  # gradients reach the product, too
            return step, state["mu_product"].mul_(momentum_at(step, group))
        product = state["mu_product"]._data
        product *= momentum_at(step, group)
        return step, float(product)

    def numbers(self, now: tuple[float, float], group: Group) -> Group:
        step, product = now
        beta1, beta2 = group["betas"]
        lr = option(group, "lr")
        momentum, following = momentum_at(step, group), momentum_at(step + 1, group)
        return {
            "grad_size": lr * (1 - momentum) / (1 - product),
            "mean_size": lr * following / (1 - product * following),
            "fresh1": 1 - beta1, "beta2": beta2, "fresh2": 1 - beta2, "unbias": 1 - beta2**step,
            "eps": group["eps"], **decays(group, lr),
        }  # fmt: skip


def momentum_at(step: float, group: Group) -> float:
    """μₜ grows from β1/2 towards β1."""
    fading = 0.96 ** (step * group["momentum_decay"])
    return float(group["betas"][0] * (1 - 0.5 * fading))
