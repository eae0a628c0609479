"""Methods of Tensor that are no rows, as classes and modes with `__torch_dispatch__` see them.

Those that are marked with `shown` where they are defined: `copy_`, `detach`, random numbers in
place, what makes a Python number of a tensor, and functions that make tensors of data.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import CPU, default_device, device
from flambeau._ops.table import gates, pointwise
from flambeau._ops.table.op import REGISTRY
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.ranks import Rank
from flambeau._ops.transforms import dispatched_factories, dispatching
from flambeau._ops.views.strided import INPLACE_VIEWS, stand_in, with_history
from flambeau._tensor.examples import Example
from flambeau._tensor.tensor import SHOWN, Tensor, constructors, on_shown, wrap
from flambeau._tensor.wrappers import Wrapped
from flambeau.autograd.history import bump, check_inplace
from flambeau.autograd.versions import version_of

NO_ARRAY = {"numpy": ".numpy() is not supported for tensor subclasses.",
            "tolist": ".tolist() is not supported for tensor subclasses, got {}"}  # fmt: skip
"""What tensors without numbers refuse, in torch's words."""
LIFT = "lift_fresh"
"""What a tensor made of data goes through in ATen."""


def ask_all() -> None:
    """From the first class or mode on, methods ask whether somebody wants to see them."""
    for name, function in SHOWN:
        _ask(name, function)
    if _ask not in on_shown:
        on_shown.append(_ask)
    for name, text in NO_ARRAY.items():
        gates.add(getattr(Tensor, name), Rank.NUMBERS, partial(_refused, text))


def _ask(name: str, function: Any) -> None:
    if name in INPLACE_VIEWS:
        asked = partial(_view_in_place, name)
    else:
        asked = OTHERWISE.get(name) or partial(_through, name)
    gates.add(function, Rank.METHODS, asked, with_twins=True)


def _through(name: str, before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method's call: as a class or mode would have it, or as ever."""
    values = (*args, *kwargs.values())
    if not (modes.stacks.dispatch_modes or dispatching.classes_in(values)):
        return before(*args, **kwargs)
    if modes.stacks.levels and any(isinstance(t._data, Example) for t in tensors_in(values)):
        return before(*args, **kwargs)  # what it does with the batches behind them is shown
    packet = constructors["operator_of_aten"](name)
    given = {word: value for word, value in kwargs.items() if value is not None}
    call = None if packet is None else dispatched_factories.call_of(packet, args, given)
    if call is None:
        return before(*args, **kwargs)
    if name.endswith("_"):
        return _in_place(call, values, before)
    with dispatching.below():
        _, result = dispatching.ask(call.overload, values, call.args, call.kwargs)
    if isinstance(result, Tensor):
        return result
    return before(wrap(np.asarray(result)))  # a number: as that of a plain tensor


def _lifted(before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor made of data: a mode is shown that it is new, and may give another."""
    stack = modes.stacks.dispatch_modes
    if not stack or any(isinstance(value, Tensor) for value in args[-1:]):
        return before(*args, **kwargs)
    place = kwargs.pop("device", None)
    if place is None and takes_device(before):
        place = default_device()
    modes.stacks.dispatch_modes = []
    try:
        with CPU:
            made = before(*args, **kwargs)
    finally:
        modes.stacks.dispatch_modes = stack
    overload = constructors["operator_of_aten"](LIFT).default
    with dispatching.below():
        _, result = dispatching.ask(overload, (made,), (made,), {})
    if place is not None and device(place) != made.device:
        result = result.to(place)
    return result if result is made else result.requires_grad_(made.requires_grad)


def takes_device(before: Any) -> bool:
    """Whether a function has an argument `device`, whoever else sees its calls before it."""
    while isinstance(before, partial):
        before = before.args[-1]
    return "device" in before.__code__.co_varnames


def _moved(before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`to` of a tensor without numbers: to any device that has a name."""
    from flambeau._ops.copying.to_arguments import parse_to

    tensor = args[0]
    if not isinstance(getattr(tensor, "_data", None), Wrapped):
        return before(*args, **kwargs)
    dtype, place, copy, memory_format = parse_to(args[1:], kwargs, device)
    if place is None or place == tensor.device:
        return before(tensor, dtype or tensor.dtype, copy=copy, memory_format=memory_format)
    words = {"dtype": dtype, "device": place, "memory_format": memory_format}
    given = {name: value for name, value in words.items() if value is not None}
    op = REGISTRY["_to_copy"]
    overload = constructors["operator_of_aten"](op.name).default
    with dispatching.below():
        _, result = dispatching.ask(overload, (tensor,), (tensor,), given)
    return dispatching.recorded(op, (tensor, dtype, memory_format), result)


def _moved_to_gpu(before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cuda` of a tensor without numbers."""
    if not isinstance(getattr(args[0], "_data", None), Wrapped):
        return before(*args, **kwargs)
    tensor, *given = args
    number = kwargs.get("device", given[0] if given else None)
    return tensor.to(device("cuda" if number is None else number))


def _given_memory(name: str, before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Another size, other memory: modes see it; tensors of classes have none to be given."""
    if dispatching.classes_in((*args, *kwargs.values())):
        return before(*args, **kwargs)
    return _through(name, before, args, kwargs)


OTHERWISE: dict[str, Any] = {
    LIFT: _lifted,
    "to": _moved,
    "cuda": _moved_to_gpu,
    **{name: partial(_given_memory, name) for name in ("resize_", "resize_as_", "set_")},
}
"""What is not shown as the operator of its name."""


def _in_place(call: dispatching.Call, values: tuple[Any, ...], before: Any) -> Any:
    """A write. Its history is recorded by the method itself, where there is one."""
    target = values[0]
    recorded = pointwise.wants_grad(values)
    if recorded and not dispatching.classes_in(values):
        return before(*call.args, **call.kwargs)
    check_inplace(target, recorded)
    version = version_of(target)
    with dispatching.below():
        dispatching.ask(call.overload, values, call.args, call.kwargs)
    if version_of(target) == version and "resize" not in str(call.overload):
        bump(target)  # a size that stays is no write
    return target


IN_ATEN = {"swapaxes_": "transpose_", "swapdims_": "transpose_"}


def _view_in_place(name: str, before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor's geometry changes: modes see how, and its history is that of the view."""
    stack = modes.stacks.dispatch_modes
    if not stack or dispatching.classes_in(args):
        return before(*args, **kwargs)
    packet = constructors["operator_of_aten"](IN_ATEN.get(name, name))
    call = dispatched_factories.fitting(packet, args, kwargs)
    if call is None:
        return before(*args, **kwargs)
    target, *rest = args
    recorded = pointwise.wants_grad((target,))
    check_inplace(target, recorded)
    earlier = stand_in(target)
    with dispatching.below():
        dispatching.ask(call.overload, args, call.args, call.kwargs)
    if not recorded:
        return target
    modes.stacks.dispatch_modes = []
    try:
        return with_history(target, INPLACE_VIEWS[name](earlier, *rest, **kwargs))
    finally:
        modes.stacks.dispatch_modes = stack


def _refused(text: str, before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if dispatching.classes_in(args):
        raise RuntimeError(text.format(type(args[0]).__name__))
    return before(*args, **kwargs)
