"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from flambeau.optim.formulas import (
    Group,
    State,
    check_kind,
    check_range,
    check_rate,
    number,
    operands,
    rate,
    sign,
)
from flambeau.optim.fused import Formula
from flambeau.optim.optimizer import Optimizer


class SGD(Optimizer):
    """p ← p - lr·v with v ← momentum·v + (1 - dampening)·(g + weight_decay·p).

    The first v is the gradient itself; without momentum v is the gradient. With `nesterov` the
    step is g + momentum·v (Sutskever et al., 2013).
    """

    paired = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        check_kind(self.defaults)

    def state_of(self, parameter: Any, group: Group) -> State:
        return self.state[parameter] if group["momentum"] else {}

    def compiled(self, state: State, group: Group) -> Formula | None:
        momentum = group["momentum"]
        velocity: Any = state.get("momentum_buffer")
        if momentum and velocity is None:
            return None  # the first velocity is the gradient itself
        decay = number(group["weight_decay"])
        return Formula(
            "sgd", (bool(decay), bool(momentum), bool(group["nesterov"])),
            (velocity,) if momentum else (),
            (sign(group), rate(group), momentum, 1 - group["dampening"], decay),
        )  # fmt: skip

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        momentum = group["momentum"]
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * parameter
        if momentum:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.detach().clone()
            else:
                velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad + momentum * velocity if group["nesterov"] else velocity
        parameter, grad = operands(group, parameter, grad)
        parameter -= grad * rate(group)
