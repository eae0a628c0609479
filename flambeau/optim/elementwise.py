"""Optimizers that change every element by itself, each by one formula."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor, on_device_of
from flambeau.autograd.history import bump
from flambeau.optim import fused, on_devices
from flambeau.optim.formulas import Formula
from flambeau.optim.optimizer import Optimizer, count_in_tensors, scalar_state
from flambeau.optim.options import (
    GRAPHS,
    GRAPHS_OR_XLA,
    Group,
    State,
    check_listed,
    refuse_capturable,
)
from flambeau.optim.scaled import AS_IT_IS, Scale, divide, scale_for, widened


class Planned(Optimizer, generic=True):
    """An optimizer that steps all parameters of a group in one kernel where it can (`fused`).

    A subclass names what it keeps and the kind of job that steps it; the rest is stepped as by
    any optimizer.
    """

    kept: ClassVar[tuple[str, ...]] = ()
    """Names in `state` of what is kept of a parameter; it need not have all of them."""
    counts: ClassVar[bool] = True
    """Whether the numbers of a step depend on it alone, which `state["step"]` counts."""
    job: ClassVar[type[fused.Job]] = fused.Job
    others: ClassVar[tuple[str, ...]] = ("step",)
    """Names in `state` of what formulas do not see."""

    def __init__(self, params: Any, defaults: Group) -> None:
        self.plans: dict[Any, Any] = {}
        super().__init__(params, defaults)

    def __setstate__(self, state: Group) -> None:
        super().__setstate__(state)
        if "step" in self.others:
            count_in_tensors(self)
        self.plans = {}

    def needed(self, group: Group) -> tuple[str, ...]:
        """Those of the names in `kept` that the options ask for."""
        return self.kept

    def check_state(self, states: list[State], group: Group) -> None:
        """What was deleted from `state` is an error, as is what an option came to ask for."""
        names = (*self.others, *self.needed(group))
        for state in states:
            for name in names:
                state[name]

    def writes(self, group: Group) -> int:
        """How many writes to a parameter a step counts as: torch shrinks it before, where weight
        decay is decoupled."""
        return 1 + bool(group.get("decoupled_weight_decay") and group["weight_decay"])

    def advance(self, state: State, group: Group) -> Any:
        """Count the step in `state`; returns what its numbers depend on besides options."""
        return count(state, bool(group.get("capturable")))

    def step_group(self, params: list[Any], states: list[State], group: Group) -> None:
        """Step the parameters that have gradients."""
        super().step_group(*fused.step(self, params, states, group), group)


class Elementwise(Planned, generic=True):
    """An optimizer of one formula (see `formulas`).

    A subclass names what it keeps of each element (what the formula takes and returns after the
    parameter), fills it (`start`), and says which numbers the formula gets (`numbers`). Those
    depend on the options and on what `advance` returns: the number of the step, unless told
    otherwise.
    """

    formula: ClassVar[Formula]
    counters: ClassVar[tuple[str, str]] = ("params and state_steps",) * 2
    """What an error about `capturable` speaks of, without and with `foreach`."""
    devices: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = (GRAPHS_OR_XLA, GRAPHS)
    """The devices that it names, likewise."""
    takes_sparse: ClassVar[bool] = False
    takes_scale: ClassVar[bool] = False
    """Whether a fused step divides gradients by `grad_scale`, and is left out for `found_inf`."""

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        """Fill the empty state of a parameter before its first step."""
        state["step"] = new_step(group, parameter)
        for name in self.kept:
            state[name] = zeros_like(parameter)

    def numbers(self, moment: Any, group: Group) -> Group:
        """What the formula takes by name in this step."""
        raise NotImplementedError

    # ---- stepping

    def check_layout(self, grad: Any) -> None:
        if not self.takes_sparse:
            super().check_layout(grad)

    def check_kind(self, params: list[Any], group: Group) -> None:
        """Refuse kinds of steps that do not go together, or not on this device."""
        if params:
            check_listed(group)
        if group.get("capturable") and not all(p.is_cuda for p in params):
            listed = bool(group["foreach"])
            refuse_capturable(self.counters[listed], self.devices[listed])

    def step_group(self, params: list[Any], states: list[State], group: Group) -> None:
        """Step the parameters that have gradients."""
        self.check_kind(params, group)
        scale = scale_for(self, group) if params and self.takes_scale else AS_IT_IS
        if scale.left_out:
            self.left_out()
            return
        by_kernel = not self.defaults["differentiable"] and not has_sparse(params)
        if scale.divisor is not None or not by_kernel:
            self.check_state(states, group)
        if scale.divisor is not None:
            divide(params, scale.divisor)
        if by_kernel:
            if on_devices.are_there(params, group):
                params, states = on_devices.step(self, params, states, group)
            if params:
                params, states = fused.step(self, params, states, group)
        if not params:
            return
        known: dict[Any, Group] = {}
        needed = self.needed(group)
        for parameter, state in zip(params, states, strict=True):
            if parameter._grad.is_sparse:
                self.step_sparse(parameter, state, group)
            else:
                kept = [state[name] if name in needed else None for name in self.kept]
                self._step_parameter(parameter, state, kept, group, known, scale)

    def left_out(self) -> None:
        """What was prepared for a step is not needed."""

    def step_sparse(self, parameter: Any, state: State, group: Group) -> None:
        """One step of a parameter whose gradient is sparse."""
        raise NotImplementedError

    def _step_parameter(self, parameter: Any, state: State, kept: list[Any], group: Group,
                        known: dict[Any, Group], scale: Scale) -> None:  # fmt: skip
        moment = self.advance(state, group)
        numbers = known.get(moment)
        if numbers is None:
            numbers = known[moment] = self.numbers(moment, group)
        values = beside(parameter, [parameter, parameter._grad, *kept])
        if self.defaults["differentiable"]:
            self._step_tensors([copied(value) for value in values], values, group, numbers)
            return
        alike = are_alike(values)
        plain = alike and is_plain(values[0])
        if not plain and not (alike and group.get("fused")):
            check_places(values)
            self._step_tensors(values, values, group, numbers)
            return
        for _ in range(self.writes(group)):
            bump(parameter)
        arrays = [None if value is None else value._data for value in values]
        places = written(arrays)
        if not plain:
            arrays = [None if array is None else array.astype(np.float32) for array in arrays]
            arrays[1] = widened(values[1]._data, scale.divisor)
        self._step_arrays(arrays, places, group, numbers)

    def _step_arrays(self, arrays: list[Any], places: list[Any], group: Group,
                     numbers: Group) -> None:  # fmt: skip
        if group["maximize"]:
            arrays[1] = -arrays[1]
        new = self.formula(*arrays, **numbers)
        for value, old in zip(new, places, strict=True):
            old[...] = value

    def _step_tensors(self, values: list[Any], places: list[Any], group: Group,
                      numbers: Group) -> None:  # fmt: skip
        if group["maximize"]:
            values = [values[0], -values[1], *values[2:]]
        new = self.formula(*values, **numbers)
        pairs = list(zip(new, written(places), strict=True))
        if not self.decays_first(numbers):
            pairs.append(pairs.pop(0))  # the parameter last: where it is refused, the rest is kept
        for value, old in pairs:
            old.copy_(value)

    def decays_first(self, numbers: Group) -> bool:
        """Whether torch writes to the parameter before it does to what is kept."""
        return numbers.get("shrink") is not None


def written(values: list[Any]) -> list[Any]:
    """What a step writes to: all but the gradient and what is not kept."""
    return [values[0], *(value for value in values[2:] if value is not None)]


def copied(value: Any) -> Any:
    """A copy through which gradients flow: the step writes to the original."""
    return None if value is None else value.clone()


# ---- counters


def new_step(group: Group, parameter: Any = None) -> Tensor:
    """The step counter that torch keeps in `state`: on the device for steps that may go into a
    graph, and for fused ones."""
    made = scalar_state(0.0, False if group.get("fused") else None)
    if parameter is not None and (group.get("fused") or group.get("capturable")):
        return on_device_of(made, parameter)
    return made


def count(state: State, capturable: bool = False) -> Any:
    """Advance `state["step"]` by one; returns it as a number, or as it lies on a device for a step
    that may go into a graph."""
    step = state["step"]
    if step._data.__class__ is not np.ndarray:
        step.add_(1)
        return step.detach().clone() if capturable else step.item()
    step._data += 1
    return float(step._data)


# ---- what formulas work on


def zeros_like(parameter: Any) -> Any:
    """Zeros for a moment of a parameter."""
    from flambeau._ops.table.namespace import ops

    return ops.zeros_like(parameter)


def has_sparse(params: list[Any]) -> bool:
    """Whether a gradient is sparse."""
    return SparseTensor.exists and any(p._grad.is_sparse for p in params)


def are_alike(values: list[Any]) -> bool:
    """Whether all arrays have the parameter's class, type and shape. They need not: users give
    parameters other memory, and load what does not fit."""
    first = values[0]._data
    kind, dtype, shape = first.__class__, first.dtype, first.shape
    for value in values[1:]:
        if value is None:
            continue
        data = value._data
        if data.__class__ is not kind or data.dtype != dtype or data.shape != shape:
            return False
    return True


def check_places(values: list[Any]) -> None:
    """What is kept can be written to from the gradient's shape, as in-place operators demand."""
    grad = values[1]
    for kept in values[2:]:
        if kept is not None and kept.shape != grad.shape:
            kept.detach().clone().add_(grad)  # raises, if it does not fit


def is_plain(parameter: Tensor) -> bool:
    """Whether formulas may work on the memory: float32 and float64, where NumPy rounds as torch."""
    data = parameter._data
    return data.__class__ is np.ndarray and data.dtype.kind == "f" and data.itemsize >= 4


def beside(parameter: Any, values: list[Any]) -> list[Any]:
    """Values as real numbers where the parameter is complex; all of them must be complex then."""
    if parameter._data.dtype.kind not in "cW":
        return values
    from flambeau._ops.table.namespace import ops

    return [None if value is None else ops.view_as_real(value) for value in values]


def as_real(value: Any) -> Any:
    """A complex tensor as pairs of real numbers, in the same memory; all else unchanged."""
    if isinstance(value, Tensor) and value._data.dtype.kind in "cW":
        from flambeau._ops.table.namespace import ops

        return ops.view_as_real(value)
    return value
