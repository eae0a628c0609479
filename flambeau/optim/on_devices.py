"""Steps of parameters on GPUs: those of one kind in one launch."""

from __future__ import annotations

from typing import Any

from flambeau._runtime.cuda.memory import there
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import bump
from flambeau.optim.options import Group, State


def step(
    optimizer: Any, params: list[Any], states: list[State], group: Group
) -> tuple[list[Any], list[State]]:
    """Step those parameters that lie on a GPU and that one kernel can step; returns the others and
    their states."""
    from flambeau._ops.cuda import optimizers as kernels

    needed = optimizer.needed(group)
    kinds: dict[Any, list[tuple[Any, State, list[Any]]]] = {}
    left: list[int] = []
    for place, (parameter, state) in enumerate(zip(params, states, strict=True)):
        kept = [state[name] for name in needed if state.get(name) is not None]
        arrays = [t._data for t in (parameter, parameter._grad, *kept) if isinstance(t, Tensor)]
        if len(arrays) != 2 + len(kept) or not kernels.suits(*arrays):
            left.append(place)
            continue
        present = tuple(name in needed and state.get(name) is not None for name in optimizer.kept)
        key = (parameter._data.__class__, parameter._data.dtype.num, present)
        kinds.setdefault(key, []).append((parameter, state, arrays))
    for (_, _, present), members in kinds.items():
        _step_alike(optimizer, kernels, present, members, group)
    return [params[place] for place in left], [states[place] for place in left]


def _step_alike(optimizer: Any, kernels: Any, present: tuple[bool, ...], members: Any,
                group: Group) -> None:  # fmt: skip
    """Those of one type that keep the same; parameters that have made another number of steps get
    a launch of their own."""
    moments: dict[Any, list[tuple[Any, list[Any]]]] = {}
    for parameter, state, arrays in members:
        moments.setdefault(optimizer.advance(state, group), []).append((parameter, arrays))
    formula = optimizer.formula
    for moment, alike in moments.items():
        named = optimizer.numbers(moment, group)
        numbers = [named[name] for name in formula.names[2 + len(optimizer.kept) :]]
        for _ in range(optimizer.writes(group)):
            for parameter, _ in alike:
                bump(parameter)
        groups = list(zip(*[arrays for _, arrays in alike], strict=True))
        with there(alike[0][0]._data.place.index):
            kernels.step(formula, present, numbers, bool(group.get("maximize")), groups)


def are_there(params: list[Any], group: Group) -> bool:
    """Whether parameters lie on a GPU, and the options of a group are plain numbers."""
    if (
        not params
        or group.get("capturable")
        or any(isinstance(value, Tensor) for value in group.values())
    ):
        return False
    return any(isinstance(parameter._data, DeviceArray) for parameter in params)
