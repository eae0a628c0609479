"""Adafactor."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np

from flambeau._core.dtype import finfo
from flambeau.optim import fused
from flambeau.optim.elementwise import Planned, new_step, zeros_like
from flambeau.optim.options import (
    Group,
    State,
    at_most,
    check_at_least,
    check_range,
    check_rate,
    number,
)


class Steps(fused.ShapedJob):
    """The steps of parameters in one kernel (`_ops/optimizers/kernels/adafactor.py`)."""

    @staticmethod
    def suits(parameter: Any, kept: dict[str, Any]) -> bool:
        dtype, shape = parameter._data.dtype, parameter._data.shape
        shapes = {"variance": shape, "row_var": (*shape[:-1], 1),
                  "col_var": (*shape[:-2], 1, *shape[-1:])}  # fmt: skip
        return fused.is_for_kernel(parameter) and all(
            fused.fits(other._data, dtype, shapes[name]) for name, other in kept.items()
        )

    def lay_out(self) -> None:
        super().lay_out()
        self.factored = "row_var" in self.names
        if self.factored:  # room for the sums of columns
            self.room = max(parameter._data.shape[-1] for parameter in self.params)

    def shape(self, parameter: Any) -> tuple[int, ...]:
        shape = parameter._data.shape
        if "variance" in self.names:
            return 1, 1, prod(shape)
        return (prod(shape[:-2]), *shape[-2:])

    def run(self, group: Group) -> None:
        from flambeau._ops.optimizers.kernels.adafactor import NUMBERS, step

        table, moments = self.take_grads(group), self.moments(group)
        places = {moment: place for place, moment in enumerate(dict.fromkeys(moments))}
        table[:-1, 2] = [places[moment] for moment in moments]
        epsilon = float(np.finfo(self.dtype).eps)
        named = [self.optimizer.numbers(moment, group, epsilon) for moment in places]
        numbers = np.array([[one[name] for name in NUMBERS] for one in named])
        self.launch(fused.typed_kernel(step, self.dtype, FACTORED=self.factored), numbers)


class Adafactor(Planned):
    """Of a matrix of squared gradients only the means of rows, r, and of columns, c, are kept:
    r ← β·r + (1 - β)·mean(g², rows);  c ← β·c + (1 - β)·mean(g², columns);  v = r·c/mean(r);
    u = g/√v;  p ← p - α·u/max(1, rms(u)/d)  with 1 - β = t^beta2_decay and
    α = max(eps2, rms(p))·min(lr, 1/√t)   (Shazeer and Stern, 2018).

    Vectors keep v itself. As in torch, eps1 bounds mean(r) and √v from below (None: the type's
    epsilon), and `weight_decay` shrinks p by lr·weight_decay first.

    >>> import flambeau as torch
    >>> weight = torch.nn.Parameter(torch.ones(2, 3))
    >>> optimizer = torch.optim.Adafactor([weight])
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> {name: tuple(t.shape) for name, t in optimizer.state[weight].items()}
    {'step': (), 'row_var': (2, 1), 'col_var': (1, 3)}
    """

    kept = ("row_var", "col_var", "variance")
    job = Steps
    later: ClassVar[Group] = {"foreach": None}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        check_at_least(0, ("Learning rate", lr))
        check_range(at_most(beta2_decay, 0.0), f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_at_least(0, ("epsilon1", eps[0]))
        check_at_least(0, ("epsilon2", eps[1]))
        check_at_least(1, ("Clipping threshold d", d))
        check_at_least(0, ("weight_decay", weight_decay))
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
        })  # fmt: skip

    def check_state(self, states: list[State], group: Group) -> None:
        """What is kept depends on the dims of gradients, not on options."""

    def prepared(self, parameter: Any, group: Group) -> State:
        """The state of a parameter, filled; complex numbers are refused."""
        if parameter._data.dtype.kind in "cW":
            raise RuntimeError("Adafactor does not support complex parameters")
        return super().prepared(parameter, group)

    def step_group(self, params: list[Any], states: list[State], group: Group) -> None:
        """Step the parameters that have gradients, which nobody scales here."""
        given = self.__dict__
        if given.get("grad_scale") is not None or given.get("found_inf") is not None:
            raise AssertionError("Grad scaling should occur outside of optimizer.step()")
        super().step_group(params, states, group)

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step(group, parameter)
        if grad.dim() > 1:
            *rest, rows, columns = grad.shape
            state["row_var"] = grad.new_zeros((*rest, rows, 1))
            state["col_var"] = grad.new_zeros((*rest, 1, columns))
        else:
            state["variance"] = zeros_like(grad)

    def numbers(self, step: float, group: Group, epsilon: float) -> Group:
        """The numbers of a step, for a type whose epsilon this is."""
        lr = number(group["lr"])
        least, least_scale = group["eps"]
        rate = min(lr, 1 / sqrt(step))
        return {
            "newest": step ** group["beta2_decay"], "rate": -rate if group["maximize"] else rate,
            "least": epsilon if least is None else least, "least_scale": least_scale,
            "threshold": group["d"], "shrink": 1 - lr * group["weight_decay"],
        }  # fmt: skip

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        moment = self.advance(state, group)
        numbers = self.numbers(moment, group, finfo(parameter.dtype).eps)
        newest, least = numbers["newest"], numbers["least"]
        scale = max(numbers["least_scale"], root_mean_square(parameter)) * abs(numbers["rate"])
        if group["weight_decay"]:
            parameter.mul_(numbers["shrink"])
        if grad.dim() > 1:
            variance = self._factored(grad, state, newest, least)
        else:
            variance = state["variance"].lerp_(grad * grad, newest)
        update = grad * variance.clamp(min=least * least).rsqrt()
        clipping = max(1.0, root_mean_square(update) / group["d"])
        parameter.sub_(update * (scale / clipping))

    @staticmethod
    def _factored(grad: Any, state: State, newest: float, least: float) -> Any:
        """r·c/mean(r), with g² in neither."""
        rows, columns = state["row_var"], state["col_var"]
        rows.lerp_(grad.norm(dim=-1, keepdim=True).square() / grad.shape[-1], newest)
        columns.lerp_(grad.norm(dim=-2, keepdim=True).square() / grad.shape[-2], newest)
        return rows @ columns / rows.mean(dim=-2, keepdim=True).clamp(min=least)


def root_mean_square(values: Any) -> float:
    """√mean(x²)."""
    return float(values.norm().item() / sqrt(values.numel()))
