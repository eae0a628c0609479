"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

from math import sqrt
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.optim.optimizer import (
    Group,
    Optimizer,
    State,
    check_range,
    check_rate,
    count,
    is_plain,
    memory_of,
    new_step,
    number,
    zeros_like,
)


def check_betas(betas: Any, foreach: bool | None, capturable: bool) -> None:
    """Both betas are numbers, or both tensors of one element."""
    tensors = [isinstance(beta, Tensor) for beta in betas]
    if tensors[0] != tensors[1]:
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if not tensors[index]:
            continue
        if foreach and not capturable:
            raise ValueError(f"betas[{index}] as a Tensor is not supported for capturable=False "
                             "and foreach=True")  # fmt: skip
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{index}] must be 1-element")


class Adam(Optimizer):
    """m ← β1·m + (1 - β1)·g;  v ← β2·v + (1 - β2)·g²;
    p ← p - lr/(1 - β1ᵗ) · m / (√v/√(1 - β2ᵗ) + eps)   (Kingma and Ba, 2015).

    `weight_decay` adds weight_decay·p to g, or with `decoupled_weight_decay` shrinks p by
    lr·weight_decay first. `amsgrad` uses the largest v so far (Reddi et al., 2018).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_rate(lr, foreach, capturable)
        check_range(lr >= 0.0, f"Invalid learning rate: {lr}")
        check_range(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_range(0.0 <= betas[0] < 1.0, f"Invalid beta parameter at index 0: {betas[0]}")
        check_range(0.0 <= betas[1] < 1.0, f"Invalid beta parameter at index 1: {betas[1]}")
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check_betas(betas, foreach, capturable)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })  # fmt: skip

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        if not state:
            self._start(parameter, state, group)
        beta1, beta2 = map(number, group["betas"])
        lr = number(group["lr"])
        step = count(state)
        if group["weight_decay"]:
            if group["decoupled_weight_decay"]:
                parameter.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad + parameter * group["weight_decay"]
        values = (parameter, grad, state["exp_avg"], state["exp_avg_sq"])
        rate, correction = lr / (1 - beta1**step), sqrt(1 - beta2**step)
        if not (group["amsgrad"] or group["differentiable"]) and is_plain(parameter):
            values = memory_of(values)
        parameter, grad, mean, square = values
        mean += (grad - mean) * (1 - beta1)
        square *= beta2
        square += grad * grad.conj() * (1 - beta2)
        if group["amsgrad"]:
            square = _largest(state, square)
        parameter -= mean / (square**0.5 / correction + group["eps"]) * rate

    @staticmethod
    def _start(parameter: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["exp_avg"] = zeros_like(parameter)
        state["exp_avg_sq"] = zeros_like(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(parameter)


def _largest(state: State, square: Any) -> Any:
    largest = state["max_exp_avg_sq"]
    largest.copy_(largest.maximum(square))
    return largest


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach,
                         maximize=maximize, capturable=capturable, differentiable=differentiable,
                         fused=fused, decoupled_weight_decay=True)  # fmt: skip
