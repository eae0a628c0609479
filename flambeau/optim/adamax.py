"""Adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise
from flambeau.optim.formulas import absolute, add, addcdiv, formula, lerp, maximum
from flambeau.optim.options import (
    Group,
    check_betas,
    check_listed,
    check_not_negative,
    check_rate,
    decay_of,
    option,
)


@formula
def adamax(p: Any, g: Any, mean: Any, largest: Any, step_size: Any, fresh1: Any, beta2: Any,
           eps: Any, decay: Any) -> Any:  # fmt: skip
    """With fresh = 1 - β and step_size = lr/(1 - β1ᵗ)."""
    if decay is not None:
        g = add(g, p, decay)
    mean = lerp(mean, g, fresh1)
    largest = maximum(largest * beta2, absolute(g) + eps)
    return addcdiv(p, mean, largest, -step_size), mean, largest


class Adamax(Elementwise):
    """m ← β1·m + (1 - β1)·g;  u ← max(β2·u, |g| + eps);
    p ← p - lr/(1 - β1ᵗ) · m/u   (Kingma and Ba, 2015, section 7.1).

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.Adamax([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    formula = adamax
    reads_first = True
    kept = ("exp_avg", "exp_inf")

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
        check_not_negative(lr=lr, eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        })  # fmt: skip

    def check_kind(self, params: list[Any], group: Group) -> None:
        check_listed(group)
        super().check_kind(params, group)

    def numbers(self, step: float, group: Group) -> Group:
        beta1, beta2 = group["betas"]
        return {
            "step_size": option(group, "lr") / (1 - beta1**step), "fresh1": 1 - beta1,
            "beta2": beta2, "eps": group["eps"], "decay": decay_of(group),
        }  # fmt: skip
