"""States of optimizers by the names of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor

STATE, GROUPS, MEMBERS = "state", "param_groups", "params"


def with_state(optimizer: Any) -> None:
    """Let an optimizer without state make a step that changes nothing, so that it has one.

    Where a parameter has a gradient already, nothing happens: the step would use it up.
    """
    if optimizer.state:
        return
    parameters = [each for group in optimizer.param_groups for each in group[MEMBERS]]
    trained = [each for each in parameters if each.requires_grad]
    if any(each.grad is not None for each in parameters):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    for each in trained:
        each.grad = ops.zeros_like(each)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = ops.zeros_like(rate) if isinstance(rate, Tensor) else 0.0
    try:
        optimizer.step(closure=None)
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if rate is not None:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)


def names_of(parameters: Mapping[str, Any]) -> dict[int, str]:
    """The first name of each parameter, by its identity."""
    names: dict[int, str] = {}
    for name, parameter in parameters.items():
        names.setdefault(id(parameter), name)
    return names


def _numbers(optimizer: Any, names: dict[int, str]) -> dict[int, str]:
    """The names behind the numbers in the optimizer's own state dict."""
    members = [each for group in optimizer.param_groups for each in group[MEMBERS]]
    return {number: names[id(each)] for number, each in enumerate(members)}


def by_names(optimizer: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """An optimizer's state dict, with names instead of numbers."""
    own = optimizer.state_dict()
    names = _numbers(optimizer, names_of(parameters))
    groups = [
        {**group, MEMBERS: [names[number] for number in group[MEMBERS]]} for group in own[GROUPS]
    ]
    return {STATE: {names[number]: state for number, state in own[STATE].items()}, GROUPS: groups}


def into_optimizer(optimizer: Any, given: dict[str, Any], parameters: Mapping[str, Any]) -> None:
    """Let an optimizer take its part of a state dict with names.

    Raises:
        ValueError: there is no group for one of its groups.
    """
    names = _numbers(optimizer, names_of(parameters))
    numbers = {name: number for number, name in names.items()}
    state = {numbers[name]: each for name, each in given[STATE].items() if name in numbers}
    groups = []
    for own in optimizer.state_dict()[GROUPS]:
        wanted = {names[number] for number in own[MEMBERS]}
        found = next((group for group in given[GROUPS] if wanted & set(group[MEMBERS])), None)
        if found is None:
            raise ValueError("loaded state dict has a different number of parameter groups")
        groups.append({**own, **found, MEMBERS: own[MEMBERS]})
    optimizer.load_state_dict({STATE: state, GROUPS: groups})


def flat(nested: dict[str, Any]) -> dict[str, Any]:
    """One dict with names such as "state.NAME.exp_avg" and "param_groups.NAME.lr"."""
    made = {
        f"{STATE}.{name}.{key}": value
        for name, state in nested[STATE].items()
        for key, value in state.items()
    }
    for group in nested[GROUPS]:
        for name in group[MEMBERS]:
            settings = {key: value for key, value in group.items() if key != MEMBERS}
            made.update({f"{GROUPS}.{name}.{key}": value for key, value in settings.items()})
    return made


def unflat(given: Mapping[str, Any], optimizer: Any,
           parameters: Mapping[str, Any]) -> dict[str, Any]:  # fmt: skip
    """The part of a flat dict that belongs to an optimizer, with "state" and "param_groups"."""
    names = names_of(parameters)
    state: dict[str, Any] = {}
    groups = []
    for group in optimizer.param_groups:
        members = [names[id(each)] for each in group[MEMBERS]]
        for name in members:
            found = _below(given, f"{STATE}.{name}.")
            if found:
                state[name] = found
        groups.append({**_below(given, f"{GROUPS}.{members[0]}."), MEMBERS: members})
    return {STATE: state, GROUPS: groups}


def _below(given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value
        for name, value in given.items()
        if name.startswith(prefix) and "." not in name.removeprefix(prefix)
    }
