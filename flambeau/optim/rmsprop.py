"""RMSprop."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise, new_step, zeros_like
from flambeau.optim.formulas import add, addcdiv, addcmul, formula, lerp, sqrt
from flambeau.optim.options import (
    GRAPHS_OR_XLA,
    Group,
    State,
    check_not_negative,
    check_rate,
    decay_of,
    option,
)


@formula
def rmsprop(p: Any, g: Any, square: Any, mean: Any, buffer: Any, lr: Any, alpha: Any, fresh: Any,
            eps: Any, momentum: Any, decay: Any) -> Any:  # fmt: skip
    """With fresh = 1 - α; the mean is kept if `centered`, the buffer with momentum."""
    if decay is not None:
        g = add(g, p, decay)
    square = addcmul(square * alpha, g, g, fresh)
    if mean is not None:
        mean = lerp(mean, g, fresh)
    kept = (square,) if mean is None else (square, mean)
    variance = square if mean is None else addcmul(square, mean, mean, -1.0)
    deviation = sqrt(variance) + eps
    if buffer is None:
        return (addcdiv(p, g, deviation, -lr),) + kept
    buffer = addcdiv(buffer * momentum, g, deviation, 1.0)
    return (add(p, buffer, -lr),) + kept + (buffer,)


class RMSprop(Elementwise):
    """v ← α·v + (1 - α)·g²;  p ← p - lr·g/(√v + eps)   (Hinton, lecture 6e, 2012).

    `centered` subtracts the squared mean of g from v (Graves, 2013); `momentum` averages the steps.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.RMSprop([w], lr=0.01)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    formula = rmsprop
    kept = ("square_avg", "grad_avg", "momentum_buffer")
    devices = (GRAPHS_OR_XLA, GRAPHS_OR_XLA)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(
            lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step(group, parameter)
        state["square_avg"] = zeros_like(parameter)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = zeros_like(parameter)

    def needed(self, group: Group) -> tuple[str, ...]:
        mean = ("grad_avg",) if group["centered"] else ()
        return ("square_avg", *mean, *(("momentum_buffer",) if group["momentum"] > 0 else ()))

    def numbers(self, step: float, group: Group) -> Group:
        alpha = group["alpha"]
        return {
            "lr": option(group, "lr"), "alpha": alpha, "fresh": 1 - alpha, "eps": group["eps"],
            "momentum": group["momentum"], "decay": decay_of(group),
        }  # fmt: skip
