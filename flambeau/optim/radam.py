"""RAdam: Adam whose step waits until the variance of its denominator is known."""

from __future__ import annotations

from math import sqrt as root_of
from typing import Any

from flambeau.optim.elementwise import Elementwise
from flambeau.optim.formulas import add, addcmul, formula, lerp, sqrt
from flambeau.optim.options import (
    Group,
    check_betas,
    check_not_negative,
    check_rate,
    decays,
    option,
)


@formula
def radam(p: Any, g: Any, mean: Any, square: Any, lr: Any, fresh1: Any, unbias1: Any, beta2: Any,
          fresh2: Any, root: Any, eps: Any, rectified: Any, decay: Any,
          shrink: Any) -> Any:  # fmt: skip
    """With fresh = 1 - β, unbias = 1 - βᵗ, root = √(1 - β2ᵗ); rectified = None before ρ > 5."""
    if shrink is not None:
        p = p * shrink
    if decay is not None:
        g = add(g, p, decay)
    mean = lerp(mean, g, fresh1)
    square = addcmul(square * beta2, g, g, fresh2)
    step = mean / unbias1 * lr
    if rectified is not None:
        step = step * (root / (sqrt(square) + eps)) * rectified
    return p - step, mean, square


class RAdam(Elementwise):
    """m ← β1·m + (1 - β1)·g;  v ← β2·v + (1 - β2)·g²;  m̂ = m/(1 - β1ᵗ);
    ρ∞ = 2/(1 - β2) - 1;  ρₜ = ρ∞ - 2·t·β2ᵗ/(1 - β2ᵗ);
    p ← p - lr·m̂·r·√(1 - β2ᵗ)/(√v + eps) where ρₜ > 5, else p ← p - lr·m̂,
    with r² = (ρₜ - 4)(ρₜ - 2)ρ∞ / ((ρ∞ - 4)(ρ∞ - 2)ρₜ)   (Liu et al., 2020).

    `weight_decay` adds weight_decay·p to g, or with `decoupled_weight_decay` shrinks p by
    lr·weight_decay first.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.RAdam([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.7000], requires_grad=True)
    """

    formula = radam
    kept = ("exp_avg", "exp_avg_sq")

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
        check_not_negative(lr=lr, eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        })  # fmt: skip

    def numbers(self, step: float, group: Group) -> Group:
        beta1, beta2 = group["betas"]
        lr = option(group, "lr")
        return {
            "lr": lr, "fresh1": 1 - beta1, "unbias1": 1 - beta1**step, "beta2": beta2,
            "fresh2": 1 - beta2, "root": (1 - beta2**step) ** 0.5, "eps": group["eps"],
            "rectified": rectification(step, beta2), **decays(group, lr),
        }  # fmt: skip


def rectification(step: float, beta2: float) -> float | None:
    """r, or None where too few gradients were seen for a variance."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5:  # noqa: PLR2004
        return None
    above, limit = (length - 4) * (length - 2), (longest - 4) * (longest - 2)
    return root_of(above * longest / (limit * length))
