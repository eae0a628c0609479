"""New tensors, as classes and modes with `__torch_dispatch__` see them: see `dispatching`."""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any

from flambeau._core import modes
from flambeau._ops.table import gates
from flambeau._ops.table.op import LISTENERS, REGISTRY, Op
from flambeau._ops.table.ranks import Rank
from flambeau._ops.transforms import batched_factories, dispatching
from flambeau._tensor.tensor import constructors


def ask_all() -> None:
    """From the first class or mode on, factories ask whether somebody wants to see them."""
    if _ask not in LISTENERS:
        LISTENERS.append(_ask)
    for op in list(REGISTRY.values()):
        _ask(op)


def _ask(op: Op) -> None:
    if op.kind != "composite" or not isinstance(op.body, FunctionType) or op.namespace:
        return
    has_tensors = any(argument.is_tensor for argument in op.schema.arguments)
    makes_one = op.schema.return_types == ("Tensor",)
    if (makes_one and not has_tensors) or op.batch in batched_factories.KINDS[1:]:
        gates.add(op.body, Rank.DISPATCH, partial(_through, op), with_twins=True)


def _through(op: Op, before: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A factory's call: as a class or mode would have it, or as ever."""
    values = (*args, *kwargs.values())
    if not (modes.stacks.dispatch_modes or dispatching.classes_in(values)):
        return before(*args, **kwargs)
    call = as_aten(op, args, kwargs)
    if call is None:
        return before(*args, **kwargs)
    with dispatching.below():
        _, result = dispatching.ask(call.overload, values, call.args, call.kwargs)
    return result.requires_grad_() if kwargs.get("requires_grad") else result


def as_aten(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dispatching.Call | None:
    """What a factory's call is in ATen, or None."""
    packet = constructors["operator_of_aten"](op.name)
    if packet is None or kwargs.get("out") is not None:
        return None
    named = {name: value for name, value in kwargs.items()
             if value is not None and name not in ("out", "requires_grad")
             and not (name == "pin_memory" and value is False)}  # fmt: skip
    return call_of(packet, args, named)


def call_of(packet: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dispatching.Call | None:
    """A call of the first overload that the arguments fit, with sizes as a list or loose."""
    sizes = len(args)
    while sizes and isinstance(args[sizes - 1], int):
        sizes -= 1
    loose = (*args[:sizes], list(args[sizes:]))
    return fitting(packet, args, kwargs) or fitting(packet, loose, kwargs)


def fitting(packet: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dispatching.Call | None:
    """A call of the first overload that the arguments fit, or None."""
    listed = tuple([list(value) if isinstance(value, tuple) else value for value in args])
    for name in packet.overloads():
        overload = getattr(packet, name)
        if not name.endswith("out") and overload.fits(listed, kwargs):
            given = dict(zip([p.name for p in overload._schema.arguments], listed, strict=False))
            placed = [(p, (given | kwargs).get(p.name, p.default))
                      for p in overload._schema.arguments]  # fmt: skip
            return dispatching.Call(overload, *dispatching.arranged(placed))
    return None
