"""Rprop."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise, new_step, zeros_like
from flambeau.optim.formulas import addcmul, clamped, formula, select, sign
from flambeau.optim.options import (
    GRAPHS_OR_XLA,
    Group,
    State,
    check_not_negative,
    check_range,
    check_rate,
    number,
)


@formula
def rprop(p: Any, g: Any, previous: Any, size: Any, shrink: Any, grow: Any, least: Any,
          most: Any) -> Any:  # fmt: skip
    """Where the gradient turned, it counts as 0, in the next step too."""
    agreement = g * previous
    size = select(agreement > 0, size * grow, select(agreement < 0, size * shrink, size))
    size = clamped(size, least, most)
    g = select(agreement < 0, 0.0, g)
    return addcmul(p, sign(g), size, -1.0), g, size


class Rprop(Elementwise):
    """η ← clip(η·1.2, 1e-6, 50) where g keeps its sign, clip(η·0.5, 1e-6, 50) where it turns;
    p ← p - η·sign(g), except where it turned   (Riedmiller and Braun, 1993).

    The factors are `etas`, the limits `step_sizes`. The first η is `lr`. Only signs of gradients
    count: for whole batches, not for samples.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.Rprop([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    formula = rprop
    kept = ("prev", "step_size")
    devices = (GRAPHS_OR_XLA, GRAPHS_OR_XLA)

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
        check_not_negative(lr=lr)
        check_range(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        lr = number(group["lr"])
        state["step"] = new_step(group, parameter)
        state["prev"] = zeros_like(parameter)
        state["step_size"] = zeros_like(grad)
        state["step_size"].fill_(complex(lr, lr) if parameter.is_complex() else lr)

    def numbers(self, step: float, group: Group) -> Group:
        shrink, grow = group["etas"]
        least, most = group["step_sizes"]
        return {"shrink": shrink, "grow": grow, "least": least, "most": most}
