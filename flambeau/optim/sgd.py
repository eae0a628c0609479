"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.optim.elementwise import Elementwise, has_sparse
from flambeau.optim.formulas import add, detached, formula
from flambeau.optim.options import (
    TITLES,
    Group,
    State,
    check_all_fused,
    check_kinds,
    check_range,
    check_rate,
    decay_of,
    option,
)
from flambeau.optim.scaled import scale_for


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

    params: tensors, or dicts of tensors with options of their own:
        [{"params": a, "lr": 1e-4}, {"params": b}].
    lr: the step width, a number or a tensor.
    momentum: how much of the step before goes on; 0.9 is usual.
    dampening: how much less of the gradient then counts.
    weight_decay: what is added to g of each parameter.
    maximize: go uphill.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.7000], requires_grad=True)
    """

    formula = sgd
    kept = ("momentum_buffer",)
    counts = False
    later: ClassVar[Group] = {
        "nesterov": False, "maximize": False, "foreach": None, "differentiable": False,
        "fused": False,
    }  # fmt: skip
    others = ()
    takes_sparse = True
    takes_scale = True

    fresh: dict[int, State]
    """States whose buffer this step fills for the first time, by identity."""

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
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            check_range(not value < 0.0, f"Invalid {TITLES[name]}: {value}")  # nan passes
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        self.fresh = {}
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        check_kinds(self)

    def __setstate__(self, state: Group) -> None:
        super().__setstate__(state)
        self.fresh = {}

    def needed(self, group: Group) -> tuple[str, ...]:
        return self.kept if group["momentum"] else ()

    def prepared(self, parameter: Any, group: Group) -> State:
        """Nothing is kept without momentum; the first buffer is memory that the step fills."""
        if not group["momentum"]:
            return {}
        state = self.state[parameter]
        if state.get("momentum_buffer") is None:
            state["momentum_buffer"] = parameter._grad.detach().clone()
            self.fresh[id(state)] = state
        return state

    def advance(self, state: State, group: Group) -> bool:
        """Whether the buffer is as yet the gradient."""
        return id(state) in self.fresh

    def check_kind(self, params: list[Any], group: Group) -> None:
        if not group["fused"]:
            scale_for(self, group)  # refused, though there be nothing to step
            return
        if has_sparse(params):
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        check_all_fused(params, "sgd")

    def step_group(self, params: list[Any], states: list[State], group: Group) -> None:
        """Step the parameters that have gradients; new buffers stay if all of them were stepped."""
        try:
            super().step_group(params, states, group)
        except Exception:
            self.left_out()
            raise
        self.fresh.clear()

    def left_out(self) -> None:
        for state in self.fresh.values():
            state.pop("momentum_buffer", None)
        self.fresh.clear()

    def step_sparse(self, parameter: Any, state: State, group: Group) -> None:
        """The same for the rows that have a gradient; the velocity is sparse, too."""
        grad = -parameter._grad if group["maximize"] else parameter._grad
        decay, momentum = decay_of(group), group["momentum"]
        if decay is not None:
            grad = grad.add(parameter, alpha=decay)
        if momentum:
            if self.advance(state, group):
                state["momentum_buffer"] = grad.detach().clone()
            else:
                state["momentum_buffer"].mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            velocity = state["momentum_buffer"]
            grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
        parameter.add_(grad, alpha=-option(group, "lr"))

    def numbers(self, first: bool, group: Group) -> Group:
        return {
            "lr": option(group, "lr"), "momentum": group["momentum"],
            "fresh": 1 - group["dampening"], "first": first, "nesterov": group["nesterov"],
            "decay": decay_of(group),
        }  # fmt: skip
