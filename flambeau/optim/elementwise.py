"""Optimizers that change every element by itself, each by one formula."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import bump
from flambeau.optim import fused
from flambeau.optim.formulas import Formula
from flambeau.optim.optimizer import Optimizer, count_in_tensors, scalar_state
from flambeau.optim.options import Group, State, check_fused, check_step


class Planned(Optimizer):
    """An optimizer that steps all parameters of a group in one kernel where it can (`fused`).

    A subclass names what it keeps and the kind of job that steps it; the rest is stepped as by
    any optimizer.
    """

    kept: ClassVar[tuple[str, ...]] = ()
    """Names in `state` of what is kept of a parameter; it need not have all of them."""
    counts: ClassVar[bool] = True
    """Whether the numbers of a step depend on it alone, which `state["step"]` counts."""
    job: ClassVar[type[fused.Job]] = fused.Job

    def __init__(self, params: Any, defaults: Group) -> None:
        self.plans: dict[int, Any] = {}
        super().__init__(params, defaults)

    def __setstate__(self, state: Group) -> None:
        super().__setstate__(state)
        count_in_tensors(self.state)
        self.plans = {}

    def writes(self, group: Group) -> int:
        """How many writes to a parameter a step counts as: torch shrinks it before, where weight
        decay is decoupled."""
        return 1 + bool(group.get("decoupled_weight_decay") and group["weight_decay"])

    def prepared(self, parameter: Any, group: Group) -> State:
        """The state of a parameter, filled."""
        state = self.state[parameter]
        if not state:
            self.start(parameter, parameter._grad, state, group)
        return state

    def advance(self, state: State, group: Group) -> Any:
        """Count the step in `state`; returns what its numbers depend on besides options."""
        return count(state)

    def step_group(self, params: list[Any], group: Group) -> None:
        """Step the parameters that have gradients."""
        super().step_group(fused.step(self, params, group), group)


class Elementwise(Planned):
    """An optimizer of one formula (see `formulas`).

    A subclass names what it keeps of each element (what the formula takes and returns after the
    parameter), fills it (`start`), and says which numbers the formula gets (`numbers`). Those
    depend on the options and on what `advance` returns: the number of the step, unless told
    otherwise.
    """

    formula: ClassVar[Formula]
    counters = "params and state_steps"
    """What an error about `capturable` speaks of."""

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        """Fill the empty state of a parameter before its first step."""
        state["step"] = new_step(group)
        for name in self.kept:
            state[name] = zeros_like(parameter)

    def numbers(self, moment: Any, group: Group) -> Group:
        """What the formula takes by name in this step."""
        raise NotImplementedError

    # ---- stepping

    def step_group(self, params: list[Any], group: Group) -> None:
        """Step the parameters that have gradients."""
        check_step(group, self.counters)
        if group.get("fused"):
            for parameter in params:
                check_fused(parameter)
        if not group.get("differentiable"):
            params = fused.step(self, params, group)
        known: dict[Any, Group] = {}
        for parameter in params:
            self._step_parameter(parameter, group, known)

    def _step_parameter(self, parameter: Any, group: Group, known: dict[Any, Group]) -> None:
        state = self.prepared(parameter, group)
        moment = self.advance(state, group)
        numbers = known.get(moment)
        if numbers is None:
            numbers = known[moment] = self.numbers(moment, group)
        kept = [state.get(name) for name in self.kept]
        values = [as_real(value) for value in (parameter, parameter._grad, *kept)]
        if group.get("maximize"):
            values[1] = -values[1]
        if group.get("differentiable"):
            self._step_tensors([copied(value) for value in values], values, numbers)
        elif is_plain(values[0]):
            for _ in range(self.writes(group)):
                bump(parameter)
            arrays = [None if value is None else value._data for value in values]
            self._step_arrays(arrays, numbers)
        else:
            self._step_tensors(values, values, numbers)

    def _step_arrays(self, arrays: list[Any], numbers: Group) -> None:
        new = self.formula(*arrays, **numbers)
        for value, old in zip(new, written(arrays), strict=True):
            old[...] = value

    def _step_tensors(self, values: list[Any], places: list[Any], numbers: Group) -> None:
        new = self.formula(*values, **numbers)
        for value, old in zip(new, written(places), strict=True):
            old.copy_(value)


def written(values: list[Any]) -> list[Any]:
    """What a step writes to: all but the gradient and what is not kept."""
    return [values[0], *(value for value in values[2:] if value is not None)]


def copied(value: Any) -> Any:
    """A copy through which gradients flow: the step writes to the original."""
    return None if value is None else value.clone()


# ---- counters


def new_step(group: Group) -> Tensor:
    """The step counter that torch keeps in `state`."""
    return scalar_state(0.0, False if group.get("fused") else None)


def count(state: State) -> float:
    """Advance `state["step"]` by one; returns it as a number."""
    data = state["step"]._data
    data += 1
    return float(data)


# ---- what formulas work on


def zeros_like(parameter: Any) -> Any:
    """Zeros for a moment of a parameter."""
    from flambeau._ops.namespace import ops

    return ops.zeros_like(parameter)


def is_plain(parameter: Tensor) -> bool:
    """Whether formulas may work on the memory: float32 and float64, where NumPy rounds as torch."""
    return parameter._data.dtype.kind == "f" and parameter._data.itemsize >= 4


def as_real(value: Any) -> Any:
    """A complex tensor as pairs of real numbers, in the same memory; all else unchanged."""
    if isinstance(value, Tensor) and value._data.dtype.kind == "c":
        from flambeau._ops.namespace import ops

        return ops.view_as_real(value)
    return value
