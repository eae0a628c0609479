"""Muon: momentum whose steps are orthogonal matrices."""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar

import numpy as np

from flambeau.optim import fused
from flambeau.optim.elementwise import Planned, zeros_like
from flambeau.optim.options import Group, State, check_at_least, check_range, check_rate, number


class Steps(fused.ShapedJob):
    """The steps of small matrices in one kernel (`_ops/optimizers/kernels/muon.py`)."""

    computed = np.float32

    @staticmethod
    def suits(parameter: Any, kept: dict[str, Any]) -> bool:
        from flambeau._ops.optimizers.kernels.muon import MOST

        small = min(parameter._data.shape) <= MOST
        return small and fused.Job.suits(parameter, kept)

    def lay_out(self) -> None:
        from flambeau._ops.optimizers.kernels.muon import room_for
        from flambeau._runtime.features import vector_bits

        super().lay_out()
        width = vector_bits() // (8 * self.dtype.itemsize)
        self.room = max(room_for(parameter._data.shape, width) for parameter in self.params)
        self.scales: dict[Any, np.ndarray] = {}

    def shape(self, parameter: Any) -> tuple[int, ...]:
        rows, columns = parameter._data.shape
        return rows, columns

    def run(self, group: Group) -> None:
        from flambeau._ops.optimizers.kernels.muon import step

        a, b, c = checked(group["ns_coefficients"], group["ns_steps"])
        lr, momentum, adjust = number(group["lr"]), group["momentum"], group["adjust_lr_fn"]
        if adjust not in self.scales:
            self.scales[adjust] = np.array([
                ADJUSTMENTS[adjust](*self.shape(parameter)) for parameter in self.params
            ])  # fmt: skip
        self.take_grads(group)
        found = fused.typed_kernel(step, self.dtype, NESTEROV=bool(group["nesterov"]))
        self.launch(found, lr, 1 - momentum, momentum, 1 - lr * group["weight_decay"],
                    group["eps"], a, b, c, group["ns_steps"], self.scales[adjust])  # fmt: skip


class Muon(Planned):
    """b ← μ·b + (1 - μ)·g;  o = orthogonal(g + μ·(b - g)), or orthogonal(b) without `nesterov`;
    p ← (1 - lr·weight_decay)·p - lr·s·o   (Jordan et al., 2024).

    s is √max(1, rows/columns), or with `adjust_lr_fn="match_rms_adamw"` 0.2·√max(rows, columns)
    (Liu et al., 2025). Only for matrices: give vectors to another optimizer.

    >>> import flambeau as torch
    >>> weight = torch.nn.Parameter(torch.zeros(2, 2))
    >>> optimizer = torch.optim.Muon([weight], lr=0.1)
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> optimizer.state[weight]["momentum_buffer"].shape
    torch.Size([2, 2])
    """

    kept = ("momentum_buffer",)
    counts = False
    later: ClassVar[Group] = {}
    reads_first = True
    others = ()
    job = Steps

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        check_at_least(0, ("Learning rate", lr), ("momentum", momentum))
        check_at_least(0, ("weight decay", weight_decay))
        check_range(adjust_lr_fn in tuple(ADJUSTMENTS),
                    f"Adjust learning rate function {adjust_lr_fn} is not supported")  # fmt: skip
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip
        for group in self.param_groups:
            for parameter in group["params"]:
                check_range(parameter.ndim == 2,
                            "Muon only supports 2D parameters whereas we found a parameter with "
                            f"size: {parameter.shape}")  # fmt: skip

    def prepared(self, parameter: Any, group: Group) -> State:
        """The state of a parameter, filled; complex numbers are refused."""
        if parameter._data.dtype.kind in "cW":
            raise RuntimeError("Muon does not support complex parameters")
        return super().prepared(parameter, group)

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["momentum_buffer"] = zeros_like(grad)

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        lr, momentum = number(group["lr"]), group["momentum"]
        direction = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        if group["nesterov"]:
            direction = grad.lerp(direction, momentum)
        step = orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        adjusted = lr * ADJUSTMENTS[group["adjust_lr_fn"]](*parameter.shape)
        parameter.mul_(1 - lr * group["weight_decay"])
        parameter.add_(step, alpha=-adjusted)


def orthogonal(
    matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Any:
    """The matrix with its singular values pushed towards 1, in bfloat16.

    Each step of Newton and Schulz maps a singular value x to a·x + b·x³ + c·x⁵; the coefficients
    grow small values fast and leave large ones in about [0.5, 1.5].
    """
    from flambeau._ops.table.namespace import ops

    a, b, c = checked(coefficients, steps)
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).bfloat16()
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = ops.addmm(x, ops.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def checked(coefficients: tuple[float, float, float], steps: int) -> tuple[float, float, float]:
    """The coefficients; an error if there are not three of them, or if the steps are many."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    return coefficients


def _fan_ratio(rows: int, columns: int) -> float:
    return sqrt(max(1, rows / columns))


def _root_mean_square(rows: int, columns: int) -> float:
    """Steps as large as AdamW's."""
    return 0.2 * sqrt(max(rows, columns))


ADJUSTMENTS = {None: _fan_ratio, "original": _fan_ratio, "match_rms_adamw": _root_mean_square}
