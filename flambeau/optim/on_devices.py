"""Steps of parameters on GPUs: those of one kind in one launch."""

from __future__ import annotations

from operator import is_
from typing import Any

from flambeau._runtime.cuda.memory import there
from flambeau._tensor.device_array import DeviceArray, layout_of
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import bump
from flambeau.optim.options import Group, State


def step(
    optimizer: Any, params: list[Any], states: list[State], group: Group
) -> tuple[list[Any], list[State]]:
    """Step those parameters that lie on a GPU and that one kernel can step; returns the others and
    their states."""
    needed = optimizer.needed(group)
    key = "on devices", id(group)
    known = optimizer.plans.get(key)
    if known is not None and known.holds(params, states, needed):
        moments = [optimizer.advance(state, group) for state in states]
        if known.again(optimizer, moments, group):
            return [], []
    else:
        optimizer.check_state(states, group)
        moments = [None] * len(states)
    left, launches = _stepped(optimizer, params, states, group, moments)
    optimizer.plans.pop(key, None)
    if not left and len(launches) == 1:
        optimizer.plans[key] = Known(params, states, needed, launches[0])
    return [params[place] for place in left], [states[place] for place in left]


class Known:
    """Parameters that one launch has stepped. As long as all but their gradients lies where it
    lay, the next step is that launch again."""

    def __init__(
        self, params: list[Any], states: list[State], needed: tuple[str, ...], launch: Any
    ) -> None:
        self.needed, self.launch = needed, launch
        self.arrays, self.kept, self.layouts = self._seen(params, states)
        self.params = params

    def _seen(self, params: list[Any], states: list[State]) -> tuple[Any, Any, Any]:
        """The arrays of parameters and of what is kept, what is kept, and how gradients lie."""
        kept = [state.get(name) for state in states for name in self.needed]
        arrays = [parameter._data for parameter in params]
        arrays += [tensor._data for tensor in kept if tensor is not None]
        grads = [parameter._grad._data for parameter in params]
        return arrays, kept, [grad.layout or layout_of(grad) for grad in grads]

    def holds(self, params: list[Any], states: list[State], needed: tuple[str, ...]) -> bool:
        """Whether this is about these parameters, and nothing has moved."""
        if needed != self.needed:
            return False
        try:
            arrays, kept, layouts = self._seen(params, states)
        except AttributeError:  # of gradients on the host, or what is kept as numbers
            return False
        return (
            layouts == self.layouts and len(arrays) == len(self.arrays)
            and all(map(is_, kept, self.kept)) and all(map(is_, arrays, self.arrays))
        )  # fmt: skip

    def again(self, optimizer: Any, moments: list[Any], group: Group) -> bool:
        """Step them, if all are to make the same step."""
        if any(moment != moments[0] for moment in moments):
            return False
        numbers = _numbers(optimizer, moments[0], group)
        grads = [parameter._grad._data for parameter in self.params]
        with there(grads[0].place.index):
            done = self.launch.again(numbers, bool(group.get("maximize")), grads)
        if done:
            _count_writes(optimizer, self.params, group)
        return bool(done)


def _count_writes(optimizer: Any, params: list[Any], group: Group) -> None:
    """Let parameters know that they are written to."""
    for _ in range(optimizer.writes(group)):
        for parameter in params:
            bump(parameter)


def _numbers(optimizer: Any, moment: Any, group: Group) -> list[Any]:
    """What the formula takes besides arrays, in its order."""
    named = optimizer.numbers(moment, group)
    return [named[name] for name in optimizer.formula.names[2 + len(optimizer.kept) :]]


def _stepped(optimizer: Any, params: list[Any], states: list[State], group: Group,
             moments: list[Any]) -> tuple[list[int], list[Any]]:  # fmt: skip
    """Step parameters; the places of those that no kernel steps, and the launches. `moments`: what
    `advance` has returned, None where it was not asked yet."""
    from flambeau._ops.cuda import optimizers as kernels

    needed = optimizer.needed(group)
    kinds: dict[Any, list[tuple[Any, list[Any]]]] = {}
    left: list[int] = []
    for place, (parameter, state) in enumerate(zip(params, states, strict=True)):
        kept = [state[name] for name in needed if state.get(name) is not None]
        arrays = [t._data for t in (parameter, parameter._grad, *kept) if isinstance(t, Tensor)]
        if len(arrays) != 2 + len(kept) or not kernels.suits(*arrays):
            left.append(place)
            continue
        present = tuple(name in needed and state.get(name) is not None for name in optimizer.kept)
        moment = moments[place]
        if moment is None:
            moment = optimizer.advance(state, group)
        key = parameter._data.__class__, parameter._data.dtype.num, present, moment
        kinds.setdefault(key, []).append((parameter, arrays))
    launches = []
    for (_, _, present, moment), alike in kinds.items():
        numbers = _numbers(optimizer, moment, group)
        _count_writes(optimizer, [parameter for parameter, _ in alike], group)
        groups = list(zip(*[arrays for _, arrays in alike], strict=True))
        with there(groups[0][0].place.index):
            launches.append(kernels.step(optimizer.formula, present, numbers,
                                         bool(group.get("maximize")), groups))  # fmt: skip
    return left, launches


def are_there(params: list[Any], group: Group) -> bool:
    """Whether parameters lie on a GPU, and the options of a group are plain numbers."""
    if (
        not params
        or group.get("capturable")
        or any(isinstance(value, Tensor) for value in group.values())
    ):
        return False
    return any(isinstance(parameter._data, DeviceArray) for parameter in params)
