"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise
from flambeau.optim.formulas import add, detached, formula
from flambeau.optim.options import (
    Group,
    State,
    check_kinds,
    check_not_negative,
    check_rate,
    decay_of,
    option,
)


@formula
def sgd(p: Any, g: Any, velocity: Any, lr: Any, momentum: Any, fresh: Any, first: Any,
        nesterov: Any, decay: Any) -> Any:  # fmt: skip
    """With fresh = 1 - dampening; the `first` velocity is the gradient."""
    if decay is not None:
        g = add(g, p, decay)
    if velocity is None:
        return (add(p, g, -lr),)
    velocity = detached(g) if first else add(velocity * momentum, g, fresh)
    if nesterov:
        return add(p, add(g, velocity, momentum), -lr), velocity
    return add(p, velocity, -lr), velocity


class SGD(Elementwise):
    """p ← p - lr·v with v ← momentum·v + (1 - dampening)·(g + weight_decay·p).

    The first v is the gradient itself; without momentum v is the gradient. With `nesterov` the
    step is g + momentum·v (Sutskever et al., 2013).
    """

    formula = sgd
    kept = ("momentum_buffer",)
    counts = False

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
        check_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        check_kinds(self.defaults)

    def prepared(self, parameter: Any, group: Group) -> State:
        """Nothing is kept without momentum; at first there is "first" beside the buffer."""
        if not group["momentum"]:
            return {}
        state = self.state[parameter]
        if state.get("momentum_buffer") is None:
            state["momentum_buffer"] = parameter._grad.detach().clone()
            state["first"] = True
        return state

    def advance(self, state: State, group: Group) -> bool:
        return bool(state.pop("first", False))

    def step_sparse(self, parameter: Any, grad: Any, group: Group) -> None:
        """The same for the rows that have a gradient; the velocity is sparse, too."""
        if group["fused"]:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        decay, momentum = decay_of(group), group["momentum"]
        if decay is not None:
            grad = grad.add(parameter, alpha=decay)
        if momentum:
            state = self.state[parameter]
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.detach().clone()
            else:
                velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
        parameter.add_(grad, alpha=-option(group, "lr"))

    def numbers(self, first: bool, group: Group) -> Group:
        return {
            "lr": option(group, "lr"), "momentum": group["momentum"],
            "fresh": 1 - group["dampening"], "first": first, "nesterov": group["nesterov"],
            "decay": decay_of(group),
        }  # fmt: skip
