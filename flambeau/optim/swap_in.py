"""An optimizer on other parameters for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from flambeau._tensor.tensor import Tensor
from flambeau.optim.optimizer import Optimizer

Options: TypeAlias = dict[str, Any]
CALLER = "swap_in_optimizer_params_and_state requires"


@dataclass(frozen=True, slots=True)
class SwapIn:
    """What takes the place of one group: its options, its parameters, and their numbers."""

    options: Options
    params: list[Tensor]
    numbers: list[int]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let an optimizer work on other parameters and another state inside a `with` block.

    Afterwards the optimizer is as before. Tensors of the state are used themselves, so steps show
    in `swapin_optim_state`; entries that a step adds or replaces do not.

    Args:
        optimizer: has made a step, so that there is state to swap.
        swapin_parameters: by name, in the order of the optimizer's parameters.
        swapin_optim_state: like `optimizer.state_dict()`: numbers stand for parameters, and every
            group has the options of the optimizer's group.

    Raises:
        RuntimeError: the optimizer has no state, or what is given does not match its groups.

    >>> import flambeau as torch
    >>> x, other = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
    >>> optimizer = torch.optim.SGD([x], lr=0.5, momentum=0.9)
    >>> x.grad = other.grad = torch.ones(2)
    >>> optimizer.step()
    >>> state = optimizer.state_dict()
    >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"other": other}, state):
    ...     optimizer.step()
    >>> other.detach(), x.detach()
    (tensor([-0.9500, -0.9500]), tensor([0.5000, 0.5000]))
    """
    state, groups = _prepare(optimizer, list(swapin_parameters.values()), swapin_optim_state)
    own_state = optimizer.state
    own_groups = [dict(group) for group in optimizer.param_groups]
    try:
        optimizer.state = defaultdict(dict)
        for group, taken in zip(optimizer.param_groups, groups, strict=True):
            group.update({**taken.options, "params": taken.params})
            for parameter, number in zip(taken.params, taken.numbers, strict=True):
                optimizer.state[parameter] = dict(state.get(number, {}))
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = own_state


def _prepare(
    optimizer: Optimizer, parameters: list[Tensor], optim_state: Any
) -> tuple[dict[Any, Options], list[SwapIn]]:
    """The state by number, and what each group gets."""
    if not optimizer.state:
        raise RuntimeError(f"{CALLER} initialized optimizer state.")
    if not isinstance(optim_state, dict):
        raise RuntimeError(f"{CALLER} a DCP-style optimizer state_dict.")
    state = _checked_state(optim_state.get("state"))
    saved_groups = _checked_groups(optimizer, optim_state.get("param_groups"))
    taken: list[SwapIn] = []
    start = 0
    for position, (group, saved) in enumerate(
        zip(optimizer.param_groups, saved_groups, strict=True)
    ):
        numbers = _checked_numbers(position, group, saved)
        end = start + len(numbers)
        if end > len(parameters):
            raise RuntimeError(
                f"{CALLER} the explicit parameter state to match optimizer.param_groups ordering."
            )
        taken.append(SwapIn(saved, parameters[start:end], numbers))
        start = end
    known = {number for group in taken for number in group.numbers}
    extra = [key for key in state if key not in known]
    if extra:
        raise RuntimeError(
            f"{CALLER} swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        )
    return state, taken


def _checked_state(state: Any) -> dict[Any, Options]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{CALLER} swapin_optim_state['state'] to be a dict mapping packed parameter ids to "
            f"per-param state dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(
            f"{CALLER} optimizer.state_dict()-style state keyed by packed parameter ids."
        )
    if any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()):
        raise RuntimeError(f"{CALLER} per-parameter optimizer state entries to be dictionaries.")
    return state


def _checked_groups(optimizer: Optimizer, groups: Any) -> list[Any]:
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{CALLER} swapin_optim_state['param_groups'] to be a list of param-group dicts, got "
            f"{type(groups).__name__}."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    return groups


def _checked_numbers(position: int, group: Options, saved: Any) -> list[int]:
    """The numbers of a group's parameters; the group has the options of the optimizer's."""
    if not isinstance(saved, dict):
        raise RuntimeError(f"{CALLER} each optimizer param group to be a dictionary.")
    numbers = saved.get("params")
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise RuntimeError(
            f"{CALLER} optimizer.state_dict()-style param_groups[*]['params'] entries keyed by "
            "packed parameter ids."
        )
    if len(group["params"]) != len(numbers):
        raise RuntimeError(
            f"swapin_optim_state param group {position} has a different number of params than the "
            "live optimizer param group."
        )
    added = [key for key in saved if key not in group]
    lacking = [key for key in group if key not in saved]
    if added or lacking:
        raise RuntimeError(
            f"{CALLER} optimizer.state_dict()-style param group keys to exactly match the live "
            f"optimizer group keys for group {position}. Keys only in swap-in: {added}. Keys only "
            f"in live: {lacking}."
        )
    return numbers
