"""Adafactor."""

from __future__ import annotations

from math import sqrt
from typing import Any

from flambeau._core.dtype import finfo
from flambeau.optim.elementwise import count, new_step, zeros_like
from flambeau.optim.optimizer import Optimizer, count_in_tensors
from flambeau.optim.options import Group, State, check_range, check_rate, number


class Adafactor(Optimizer):
    """Of a matrix of squared gradients only the means of rows, r, and of columns, c, are kept:
    r ← β·r + (1 - β)·mean(g², rows);  c ← β·c + (1 - β)·mean(g², columns);  v = r·c/mean(r);
    u = g/√v;  p ← p - α·u/max(1, rms(u)/d)  with 1 - β = t^beta2_decay and
    α = max(eps2, rms(p))·min(lr, 1/√t)   (Shazeer and Stern, 2018).

    Vectors keep v itself. As in torch, eps1 bounds mean(r) and √v from below (None: the type's
    epsilon), and `weight_decay` shrinks p by lr·weight_decay first.
    """

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
        check_range(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        check_range(beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check_range(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        check_range(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        check_range(d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        check_range(weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
        })  # fmt: skip

    def __setstate__(self, state: Group) -> None:
        super().__setstate__(state)
        count_in_tensors(self.state)

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state["step"] = new_step(group)
        if grad.dim() > 1:
            *rest, rows, columns = grad.shape
            state["row_var"] = grad.new_zeros((*rest, rows, 1))
            state["col_var"] = grad.new_zeros((*rest, 1, columns))
        else:
            state["variance"] = zeros_like(grad)

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        step = count(state)
        lr = number(group["lr"])
        least, least_scale = group["eps"]
        if least is None:
            least = finfo(parameter.dtype).eps
        newest = step ** group["beta2_decay"]
        scale = max(least_scale, root_mean_square(parameter)) * min(lr, 1 / sqrt(step))
        if group["weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
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
