"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.optim.elementwise import Elementwise, new_step, zeros_like
from flambeau.optim.formulas import add, addcdiv, addcmul, formula, lerp, maximum, sqrt
from flambeau.optim.options import (
    Group,
    State,
    as_seen,
    check_betas,
    check_fused,
    check_kinds,
    check_not_negative,
    check_rate,
    check_tensor_betas,
    decays,
    option,
    refuse_capturable,
    scalar,
)
from flambeau.optim.scaled import scale_for


@formula
def adam(p: Any, g: Any, mean: Any, square: Any, largest: Any, step_size: Any, fresh1: Any,
         beta2: Any, fresh2: Any, root: Any, eps: Any, decay: Any, shrink: Any) -> Any:  # fmt: skip
    """With fresh = 1 - β, root = √(1 - β2ᵗ) and step_size = lr/(1 - β1ᵗ)."""
    if shrink is not None:
        p = p * shrink
    if decay is not None:
        g = add(g, p, decay)
    mean = lerp(mean, g, fresh1)
    square = addcmul(square * beta2, g, g, fresh2)
    if largest is None:
        return addcdiv(p, mean, sqrt(square) / root + eps, -step_size), mean, square
    largest = maximum(largest, square)
    return addcdiv(p, mean, sqrt(largest) / root + eps, -step_size), mean, square, largest


class Adam(Elementwise):
    """m ← β1·m + (1 - β1)·g;  v ← β2·v + (1 - β2)·g²;
    p ← p - lr/(1 - β1ᵗ) · m / (√v/√(1 - β2ᵗ) + eps)   (Kingma and Ba, 2015).

    params: tensors, or dicts of tensors with options of their own:
        [{"params": a, "lr": 1e-4}, {"params": b}].
    lr: the step width, a number or a tensor.
    betas: (β1, β2), how slowly the means of g and of g² forget.
    eps: what is added to the root.
    weight_decay: adds weight_decay·p to g, or with `decoupled_weight_decay` shrinks p by
        lr·weight_decay first, as `AdamW` does.
    amsgrad: use the largest v so far (Reddi et al., 2018).
    maximize: go uphill.

    `foreach` and `fused` choose how all parameters are stepped at once, `capturable` is for graphs
    of a GPU, `differentiable` records the step.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    formula = adam
    kept = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    takes_scale = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
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
        check_not_negative(lr=lr, eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        check_tensor_betas(betas, foreach, capturable)
        super().__init__(params, {
            "lr": lr, "betas": tuple(map(scalar, betas)), "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })  # fmt: skip
        check_kinds(self)

    def needed(self, group: Group) -> tuple[str, ...]:
        return self.kept if group["amsgrad"] else self.kept[:2]

    def check_layout(self, grad: Any) -> None:
        if grad.is_sparse:
            raise RuntimeError(
                "Adam does not support sparse gradients, please consider SparseAdam instead"
            )

    def check_kind(self, params: list[Any], group: Group) -> None:
        if group["fused"]:
            if params and group["differentiable"]:
                raise RuntimeError("Adam with fused=True does not support differentiable=True")
            return
        by_default = group["foreach"] is None and group["fused"] is None
        if not (group["foreach"] or (by_default and not isinstance(group["lr"], Tensor))):
            scale_for(self, group)  # refused, though there be nothing to step
        on_gpu = all(p.is_cuda for p in params)
        if group["capturable"] and group["foreach"] and not on_gpu:
            refuse_capturable(self.counters[1], self.devices[1])
        super().check_kind(params, group)

    def prepared(self, parameter: Any, group: Group) -> State:
        """The state of a parameter, filled; a rate for lists of parameters is a number."""
        state = super().prepared(parameter, group)
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        return state

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        if group["fused"]:
            check_fused(parameter)
        state["step"] = new_step(group, parameter)
        state["exp_avg"] = zeros_like(parameter)
        state["exp_avg_sq"] = zeros_like(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(parameter)

    def numbers(self, step: float, group: Group) -> Group:
        beta1, beta2 = (as_seen(beta, group) for beta in group["betas"])
        lr = option(group, "lr")
        return {
            "step_size": lr / (1 - beta1**step), "fresh1": 1 - beta1,
            "beta2": beta2, "fresh2": 1 - beta2, "root": (1 - beta2**step) ** 0.5,
            "eps": group["eps"], **decays(group, lr),
        }  # fmt: skip


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019).

    p ← p - lr · weight_decay · p, then Adam's step with the gradient as it is. `params` are
    tensors, or dicts of them with options of their own ({"params": [...], "lr": 1e-4}); the other
    arguments are those of `Adam`.

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.AdamW([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8990], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
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

    def __setstate__(self, state: Group) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
