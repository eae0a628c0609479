"""ASGD: stochastic gradient descent and the average of its path."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise, count, new_step, zeros_like
from flambeau.optim.formulas import add, formula
from flambeau.optim.optimizer import scalar_state
from flambeau.optim.options import (
    Group,
    State,
    check_not_negative,
    check_rate,
    decay_of,
    number,
)


@formula
def asgd(p: Any, g: Any, average: Any, eta: Any, shrink: Any, mu: Any, decay: Any) -> Any:
    """With shrink = 1 - λ·η, and mu = None before the average begins."""
    if decay is not None:
        g = add(g, p, decay)
    p = add(p * shrink, g, -eta)
    return p, p if mu is None else average + (p - average) * mu


class ASGD(Elementwise):
    """p ← (1 - λ·η)·p - η·g;  a ← a + μ·(p - a);
    η ← lr/(1 + λ·lr·t)^α;  μ ← 1/max(1, t - t0)   (Polyak and Juditsky, 1992; Bottou, 2010).

    λ is `lambd`. The average a is `state[p]["ax"]`; before step `t0` it follows p.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.ASGD([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.7000], requires_grad=True)
    """

    formula = asgd
    kept = ("ax",)
    counts = False
    others = ("step", "eta", "mu")
    counters = ("params, mus, etas, and state_steps",) * 2

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(lr=lr, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        })  # fmt: skip

    def writes(self, group: Group) -> int:
        """As torch, which decays parameters before it steps them, but not with `foreach`."""
        return 1 if group["foreach"] else 2

    def decays_first(self, numbers: Group) -> bool:
        return True

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step(group, parameter)
        state["eta"] = scalar_state(number(group["lr"]))
        state["mu"] = scalar_state(1.0)
        state["ax"] = zeros_like(parameter)

    def advance(self, state: State, group: Group) -> Any:
        """η and μ of this step; those of the next one go into `state`."""
        lr = number(group["lr"])
        step = count(state)
        eta, mu = state["eta"]._data, state["mu"]._data
        now = (float(eta), float(mu))
        # rounded to the default type, which may be narrower than that of loaded state
        eta[...] = scalar_state(lr / (1 + group["lambd"] * lr * step) ** group["alpha"])._data
        mu[...] = scalar_state(1 / max(1.0, step - group["t0"]))._data
        return now

    def numbers(self, now: tuple[float, float], group: Group) -> Group:
        eta, mu = now
        return {"eta": eta, "shrink": 1 - group["lambd"] * eta, "mu": None if mu == 1 else mu,
                "decay": decay_of(group)}  # fmt: skip
