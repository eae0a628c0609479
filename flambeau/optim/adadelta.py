"""Adadelta."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise
from flambeau.optim.formulas import add, addcmul, formula, sqrt
from flambeau.optim.options import (
    GRAPHS,
    Group,
    check_listed,
    check_not_negative,
    check_range,
    check_rate,
    decay_of,
    option,
)


@formula
def adadelta(p: Any, g: Any, square: Any, travelled: Any, lr: Any, rho: Any, fresh: Any, eps: Any,
             decay: Any) -> Any:  # fmt: skip
    """With fresh = 1 - ρ."""
    if decay is not None:
        g = add(g, p, decay)
    square = addcmul(square * rho, g, g, fresh)
    delta = sqrt(travelled + eps) / sqrt(square + eps) * g
    travelled = addcmul(travelled * rho, delta, delta, fresh)
    return add(p, delta, -lr), square, travelled


class Adadelta(Elementwise):
    """v ← ρ·v + (1 - ρ)·g²;  Δ = g·√(u + eps)/√(v + eps);
    u ← ρ·u + (1 - ρ)·Δ²;  p ← p - lr·Δ   (Zeiler, 2012).

    The steps have the size of the steps so far: `lr` is 1 unless told otherwise.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.Adadelta([w], lr=1.0)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9968], requires_grad=True)
    """

    formula = adadelta
    reads_first = True
    kept = ("square_avg", "acc_delta")
    devices = (GRAPHS, GRAPHS)

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
        check_not_negative(lr=lr)
        check_range(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        check_not_negative(eps=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def check_kind(self, params: list[Any], group: Group) -> None:
        check_listed(group)
        super().check_kind(params, group)

    def numbers(self, step: float, group: Group) -> Group:
        rho = group["rho"]
        return {"lr": option(group, "lr"), "rho": rho, "fresh": 1 - rho, "eps": group["eps"],
                "decay": decay_of(group)}  # fmt: skip
