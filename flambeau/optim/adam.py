"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.optim.formulas import (
    Group,
    State,
    check_kind,
    check_range,
    check_rate,
    check_two_betas,
    count,
    new_step,
    number,
    operands,
    rate,
    sign,
    zeros_like,
)
from flambeau.optim.fused import Formula
from flambeau.optim.optimizer import Optimizer


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
        check_two_betas(betas)
        check_range(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check_betas(betas, foreach, capturable)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })  # fmt: skip
        check_kind(self.defaults)

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = new_step()
        state["exp_avg"] = zeros_like(parameter)
        state["exp_avg_sq"] = zeros_like(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(parameter)

    def compiled(self, state: State, group: Group) -> Formula:
        beta1, beta2 = map(number, group["betas"])
        step = count(state)
        lr, decay = rate(group), group["weight_decay"]
        decoupled = bool(decay and group["decoupled_weight_decay"])
        moments = [state["exp_avg"], state["exp_avg_sq"]]
        if group["amsgrad"]:
            moments.append(state["max_exp_avg_sq"])
        return Formula(
            "adam", (bool(decay) and not decoupled, decoupled, bool(group["amsgrad"])),
            tuple(moments),
            (sign(group), 1 - beta1, beta2, 1 - beta2, (1 - beta2**step) ** 0.5, group["eps"],
             lr / (1 - beta1**step), 1 - lr * decay if decoupled else decay),
        )  # fmt: skip

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        beta1, beta2 = map(number, group["betas"])
        lr = rate(group)
        step = count(state)
        if group["weight_decay"]:
            if group["decoupled_weight_decay"]:
                parameter.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad + parameter * group["weight_decay"]
        moments = [state["exp_avg"], state["exp_avg_sq"]]
        if group["amsgrad"]:
            moments.append(state["max_exp_avg_sq"])
        parameter, grad, mean, square, *largest = operands(group, parameter, grad, *moments)
        mean += (grad - mean) * (1 - beta1)
        square *= beta2
        square += grad * grad * (1 - beta2)
        if largest:
            largest[0][...] = largest[0].clip(square)
            square = largest[0]
        deviation = (square / (1 - beta2**step)) ** 0.5
        parameter -= mean / (deviation + group["eps"]) * (lr / (1 - beta1**step))


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
