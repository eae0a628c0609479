"""Options of optimizers: what is allowed, and as what formulas see them."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor

Group = dict[str, Any]
State = dict[str, Any]

GRAPHS = ("cuda", "xpu", "hpu", "privateuseone")
GRAPHS_OR_XLA = (*GRAPHS, "xla")
"""Devices whose work can be captured."""

TITLES = {
    "lr": "learning rate", "eps": "epsilon value", "weight_decay": "weight_decay value",
    "momentum": "momentum value", "momentum_decay": "momentum_decay value",
    "alpha": "alpha value", "lr_decay": "lr_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}  # fmt: skip


def check_range(valid: bool, text: str) -> None:
    """Raise torch's ValueError for an option out of range."""
    if not valid:
        raise ValueError(text)


def check_rate(lr: Any, foreach: bool | None = None, capturable: bool = True) -> None:
    """A learning rate may be a tensor of one element, but not where steps run over lists."""
    if not isinstance(lr, Tensor):
        return
    if foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if lr.numel() != 1:  # type: ignore[attr-defined]
        raise ValueError("Tensor lr must be 1-element")


def check_not_negative(**options: Any) -> None:
    """Options that must be 0 or more, checked in the order given."""
    for name, value in options.items():
        check_range(value >= 0.0, f"Invalid {TITLES[name]}: {value}")


def check_betas(betas: Any) -> None:
    """Both betas of an optimizer of Adam's family are in [0, 1)."""
    for index in (0, 1):
        beta = betas[index]
        check_range(0.0 <= beta < 1.0, f"Invalid beta parameter at index {index}: {beta}")


def check_tensor_betas(betas: Any, foreach: bool | None, capturable: bool) -> None:
    """Both betas are floats, or both tensors of one element."""
    if not any(all(isinstance(beta, kind) for beta in betas) for kind in (float, Tensor)):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if not isinstance(beta, Tensor):
            continue
        if foreach and not capturable:
            raise ValueError(f"betas[{index}] as a Tensor is not supported for capturable=False "
                             "and foreach=True")  # fmt: skip
        if beta.numel() != 1:  # type: ignore[attr-defined]
            raise ValueError(f"Tensor betas[{index}] must be 1-element")


def check_kinds(optimizer: Any) -> None:
    """The kinds of steps exclude one another; here they all run the same formula."""
    options = optimizer.defaults
    if not options.get("fused"):
        return
    if options.get("differentiable"):
        raise RuntimeError("`fused` does not support `differentiable`")
    if options.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    optimizer._step_supports_amp_scaling = True


def check_listed(group: Group) -> None:
    """Gradients do not flow through steps over lists."""
    if group["foreach"] and group["differentiable"]:
        raise AssertionError("_foreach ops don't support autograd")


def refuse_capturable(counters: str, devices: tuple[str, ...]) -> None:
    """A step that may become part of a CUDA graph is not for the CPU."""
    raise AssertionError(
        f"If capturable=True, {counters} must be on supported devices: {list(devices)}."
    )


def check_fused(parameter: Any) -> None:
    """A fused step is for real floating-point numbers."""
    if not parameter.is_floating_point():
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of "
                           "supported devices: ['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', "
                           f"'privateuseone'] but {parameter.dtype} and cpu")  # fmt: skip


def check_all_fused(params: list[Any], kernel: str) -> None:
    """The same for all parameters; torch looks at the first one and leaves the rest to a kernel."""
    for parameter in params:
        if parameter._data.dtype.kind not in "ciub":
            continue
        if parameter is params[0]:
            check_fused(parameter)
        raise NotImplementedError(
            f"\"fused_{kernel}_kernel\" not implemented for '{parameter.dtype.scalar_name}'"
        )


def number(value: Any) -> float:
    """An option that may be a number or a one-element tensor."""
    return float(value._data.item()) if isinstance(value, Tensor) else value


def scalar(value: Any) -> Any:
    """A one-element tensor without its dims; all else unchanged."""
    return value.reshape(()) if isinstance(value, Tensor) and value.ndim else value  # type: ignore[attr-defined]


def option(group: Group, name: str) -> Any:
    """An option as formulas see it: a number, or a 0-dim tensor where gradients reach it."""
    return as_seen(group[name], group)


def as_seen(value: Any, group: Group) -> Any:
    """A value as formulas see it: a number, or a 0-dim tensor where gradients reach it."""
    if not isinstance(value, Tensor):
        return value
    return scalar(value) if group.get("differentiable") else number(value)


def decay_of(group: Group) -> Any:
    """What of the parameter is added to its gradient; None where there is no weight decay."""
    amount = option(group, "weight_decay")
    return None if isinstance(amount, (int, float)) and amount == 0 else amount


def decays(group: Group, lr: Any) -> Group:
    """The numbers of both kinds of weight decay: `decay` is for the gradient; with
    `decoupled_weight_decay` the parameter is multiplied by `shrink` instead."""
    amount = decay_of(group)
    if amount is not None and group["decoupled_weight_decay"]:
        return {"decay": None, "shrink": 1 - lr * amount}
    return {"decay": amount, "shrink": None}
