"""What the formulas of optimizers share: checks of options, counters, and the memory to work on."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.dtype import Defaults
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import bump

Group = dict[str, Any]
State = dict[str, Any]

# ---- options


def check_range(valid: bool, text: str) -> None:
    """Raise torch's ValueError for an option out of range."""
    if not valid:
        raise ValueError(text)


def check_rate(lr: Any, foreach: bool | None = None, capturable: bool = False) -> None:
    """A learning rate may be a tensor of one element, but not where steps run over lists."""
    if not isinstance(lr, Tensor):
        return
    if foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if lr.numel() != 1:  # type: ignore[attr-defined]
        raise ValueError("Tensor lr must be 1-element")


def check_two_betas(betas: Any) -> None:
    """Both betas of an optimizer of Adam's family are in [0, 1)."""
    check_range(0.0 <= betas[0] < 1.0, f"Invalid beta parameter at index 0: {betas[0]}")
    check_range(0.0 <= betas[1] < 1.0, f"Invalid beta parameter at index 1: {betas[1]}")


def check_kind(options: Group) -> None:
    """The kinds of steps exclude one another; here they all run the same formula."""
    if not options.get("fused"):
        return
    if options.get("differentiable"):
        raise RuntimeError("`fused` does not support `differentiable`")
    if options.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_step(group: Group, counters: str) -> None:
    """What torch refuses when it steps: a CUDA graph's step on the CPU, gradients of lists."""
    if group.get("capturable"):
        raise AssertionError(f"If capturable=True, {counters} must be on supported devices: "
                             "['cuda', 'xpu', 'hpu', 'privateuseone', 'xla'].")  # fmt: skip
    if group.get("foreach") and group.get("differentiable"):
        raise AssertionError("_foreach ops don't support autograd")


# ---- numbers and counters


def number(value: Any) -> float:
    """An option that may be a number or a one-element tensor."""
    return float(value._data.item()) if isinstance(value, Tensor) else value


def rate(group: Group) -> Any:
    """The learning rate: a number, or a 0-dim tensor where gradients reach it."""
    lr = group["lr"]
    if group.get("differentiable") and isinstance(lr, Tensor):
        return lr.reshape(())  # type: ignore[attr-defined]
    return number(lr)


def sign(group: Group) -> float:
    """What gradients are multiplied by: -1 where the objective shall grow."""
    return -1.0 if group.get("maximize") else 1.0


def scalar_state(value: float) -> Tensor:
    """A number as torch keeps it in `state`: float32, or float64 where that is the default."""
    exact = Defaults.numpy_dtype.itemsize == 8
    return wrap(np.array(value, np.float64 if exact else np.float32))


def new_step() -> Tensor:
    """The step counter that torch keeps in `state`."""
    return scalar_state(0.0)


def count(state: State) -> float:
    """Advance `state["step"]` by one; returns it as a number."""
    step = state["step"]
    if isinstance(step, Tensor):
        step._data += 1
        return float(step._data)
    state["step"] = step + 1
    return float(state["step"])


# ---- what formulas work on


def zeros_like(parameter: Any) -> Any:
    """Zeros for a moment of a parameter."""
    from flambeau._ops.namespace import ops

    return ops.zeros_like(parameter)


def is_plain(parameter: Tensor) -> bool:
    """Whether formulas may work on the memory: float32 and float64, where NumPy rounds as torch."""
    return parameter._data.dtype.kind == "f" and parameter._data.itemsize >= 4


def operands(group: Group, *values: Any) -> Any:
    """A parameter, its gradient and its moments for a formula: arrays where that is the same.

    A step on arrays takes a third of the time (benchmarks/tiny_training.py, "curve fit").
    """
    if group.get("differentiable") or not is_plain(values[0]):
        return values
    bump(values[0])
    return tuple([value._data for value in values])


def as_real(value: Any) -> Any:
    """A complex tensor as pairs of real numbers, in the same memory; all else unchanged."""
    if isinstance(value, Tensor) and value._data.dtype.kind == "c":
        from flambeau._ops.namespace import ops

        return ops.view_as_real(value)
    return value


def real_state(state: State) -> State:
    """The state of a complex parameter as formulas see it; they write through to the memory."""
    if "step" in state and not isinstance(state["step"], Tensor):
        state["step"] = scalar_state(state["step"])
    return {name: as_real(value) for name, value in state.items()}
