"""Adagrad."""

from __future__ import annotations

from typing import Any

from flambeau.optim.elementwise import Elementwise, count, has_sparse, new_step
from flambeau.optim.formulas import add, addcdiv, addcmul, formula, sqrt
from flambeau.optim.options import (
    Group,
    State,
    check_all_fused,
    check_fused,
    check_kinds,
    check_listed,
    check_not_negative,
    check_rate,
    decay_of,
    option,
)
from flambeau.optim.scaled import scale_for
from flambeau.optim.sparse_adam import at_places


@formula
def adagrad(p: Any, g: Any, total: Any, lr: Any, eps: Any, decay: Any) -> Any:
    """With lr as it has decayed until this step."""
    if decay is not None:
        g = add(g, p, decay)
    total = addcmul(total, g, g, 1.0)
    return addcdiv(p, g, sqrt(total) + eps, -lr), total


class Adagrad(Elementwise):
    """s ← s + g²;  p ← p - lr/(1 + (t - 1)·lr_decay) · g/(√s + eps)   (Duchi et al., 2011).

    >>> import flambeau as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    formula = adagrad
    kept = ("sum",)
    takes_sparse = True
    takes_scale = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative(
            lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, eps=eps,
        )  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        check_kinds(self)
        for group in self.param_groups:  # state is there before the first step, as in torch
            for parameter in group["params"]:
                self.start(parameter, None, self.state[parameter], group)

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        from flambeau._ops.table.namespace import ops

        value = self.defaults["initial_accumulator_value"]
        state["step"] = new_step(group, parameter)
        fill = complex(value, value) if parameter.is_complex() else value
        state["sum"] = ops.full_like(parameter, fill)

    def share_memory(self) -> None:
        """Move the sums to shared memory."""
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"].share_memory_()

    def check_kind(self, params: list[Any], group: Group) -> None:
        scale_for(self, group)  # refused, though there be nothing to step
        if group["fused"]:
            self._check_fused(params)
            if params and group["differentiable"]:
                raise RuntimeError("adagrad with fused=True does not support differentiable=True")
            return
        check_listed(group)
        super().check_kind(params, group)

    @staticmethod
    def _check_fused(params: list[Any]) -> None:
        if params and params[0].is_complex():
            check_fused(params[0])
        if has_sparse(params) or any(parameter.is_complex() for parameter in params):
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        check_all_fused(params, "adagrad")

    def step_sparse(self, parameter: Any, state: State, group: Group) -> None:
        """The same for the rows that have a gradient."""
        numbers = self.numbers(count(state), group)
        if decay_of(group) is not None:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        grad = parameter._grad.coalesce()  # the step is not linear in g
        grad = -grad if group["maximize"] else grad
        values = grad._values()
        state["sum"].add_(at_places(grad, values * values))
        root = state["sum"].sparse_mask(grad)._values().sqrt() + numbers["eps"]
        parameter.add_(at_places(grad, values / root), alpha=-numbers["lr"])

    def numbers(self, step: float, group: Group) -> Group:
        lr = option(group, "lr") / (1 + (step - 1) * group["lr_decay"])
        return {"lr": lr, "eps": group["eps"], "decay": decay_of(group)}
