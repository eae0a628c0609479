"""Methods of Tensor that are no rows, as classes and modes with `__torch_dispatch__` see them.

Those that are marked with `shown` where they are defined: `copy_`, `detach`, random numbers in
place, and what makes a Python number of a tensor.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.table import gates, pointwise
from flambeau._ops.table.ranks import Rank
from flambeau._ops.transforms import dispatched_factories, dispatching
from flambeau._tensor.tensor import SHOWN, Tensor, constructors, on_shown, wrap
from flambeau.autograd.history import bump, check_inplace

NO_ARRAY = {"numpy": ".numpy() is not supported for tensor subclasses.",
            "tolist": ".tolist() is not supported for tensor subclasses, got {}"}  # fmt: skip
"""What tensors without numbers refuse, in torch's words."""


def ask_all() -> None:
    """From the first class or mode on, methods ask whether somebody wants to see them."""
    for name, function in SHOWN:
        _ask(name, function)
    on_shown.append(_ask)
    for name, text in NO_ARRAY.items():
        gates.add(getattr(Tensor, name), Rank.NUMBERS, partial(_refused, text))


def _ask(name: str, function: Any) -> None:
    gates.add(function, Rank.METHODS, partial(_through, name), with_twins=True)


def _through(name: str, before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method's call: as a class or mode would have it, or as ever."""
    values = (*args, *kwargs.values())
    if not (modes.stacks.dispatch_modes or dispatching.classes_in(values)):
        return before(*args, **kwargs)
    packet = constructors["operator_of_aten"](name)
    call = None if packet is None else dispatched_factories.fitting(packet, args, kwargs)
    if call is None:
        return before(*args, **kwargs)
    if name.endswith("_"):
        return _in_place(call, values, before)
    with dispatching.below():
        _, result = dispatching.ask(call.overload, values, call.args, call.kwargs)
    if isinstance(result, Tensor):
        return result
    return before(wrap(np.asarray(result)))  # a number: as that of a plain tensor


def _in_place(call: dispatching.Call, values: tuple[Any, ...], before: Any) -> Any:
    """A write. Its history is recorded by the method itself, where there is one."""
    target = values[0]
    recorded = pointwise.wants_grad(values)
    check_inplace(target, recorded)
    if recorded and not dispatching.classes_in(values):
        return before(*call.args, **call.kwargs)
    version = target._version_count
    with dispatching.below():
        dispatching.ask(call.overload, values, call.args, call.kwargs)
    if target._version_count == version:
        bump(target)
    return target


def _refused(text: str, before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if dispatching.classes_in(args):
        raise RuntimeError(text.format(type(args[0]).__name__))
    return before(*args, **kwargs)
