"""Where operators work while devices are emulated: what `modes.watch.places` is.

An operator works where its tensors lie, a factory where `device=` says, and all memory taken
meanwhile lies there too (`_runtime.device_memory`). A node of backward works where the gradient
that it gets lies. Functions of users, such as `backward` of a custom function, are left alone.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._core.device import check_available, device, get_default_device
from flambeau._ops.table.op import Op
from flambeau._runtime import device_memory
from flambeau._runtime.device_memory import On
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor
from flambeau.autograd import anomaly
from flambeau.autograd.function import CustomNode
from flambeau.autograd.graph import tools
from flambeau.cuda.emulation import generators, transfer
from flambeau.cuda.emulation.mismatch import check

CPU = "cpu"


class Working(threading.local):
    """Where an operator of this thread works now."""

    place: str | None = None  # None: none does
    checked: bool = True  # whether operators that it calls are checked for mixed devices


working = Working()


class At:
    """`with At(place, checked):` operators without tensors, and new memory, are in a place."""

    __slots__ = ("before", "checked", "memory", "place")

    def __init__(self, place: str | None, checked: bool = True) -> None:
        self.place = place
        self.checked = checked
        self.memory = On(place or CPU)

    def __enter__(self) -> None:
        self.before = (working.place, working.checked)
        working.place, working.checked = self.place, self.checked
        self.memory.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.memory.__exit__()
        working.place, working.checked = self.before


def place_of(tensor: Tensor) -> str:
    """The name of the device that a tensor lies on: "cpu", "cuda:0"."""
    data = (tensor._entries if isinstance(tensor, SparseTensor) else tensor)._data
    place = device_memory.place_of(data)
    return CPU if place == transfer.PINNED else place


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors among arguments, those in lists included."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def common_place(values: Any) -> str | None:
    """The device that an operator on these arguments works on; None where there is no tensor."""
    found = None
    for tensor in tensors_in(values):
        found = place_of(tensor)
        if found != CPU:
            return found
    return found


class Places:
    """The emulation, as dispatch and the engine of backward see it."""

    accelerator: dict[str, Callable[..., Any]]  # the functions of `torch.accelerator`
    to = staticmethod(transfer.to)
    storage = staticmethod(transfer.storage_to)
    pinned = staticmethod(transfer.pinned)

    def outside(self) -> At:
        """A context for a user's function that an operator or a node of backward calls."""
        return At(None)

    def streams(self) -> list[Any]:
        """The random streams of the emulated devices."""
        return list(generators.default_generators)

    def run(self, op: Op, plain: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """An operator's result, in the memory of the device that its tensors lie on."""
        if working.checked:
            check(op, values, place_of)
        place = common_place(values) or working.place
        with At(place, checked=op.kind == "composite"):
            return plain(*values)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that makes tensors, or is made of operators, working where it should."""
        position = _device_position(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            asked = kwargs.get("device")
            if asked is None and position is not None and len(args) > position:
                asked = args[position]
            place = asked_place(asked) or common_place((*args, *kwargs.values())) or working.place
            if place is None and position is not None and function.__name__ not in ELSEWHERE:
                place = str(check_available(get_default_device()))
            with At(place, working.checked):
                result = function(*args, **kwargs)
            if kwargs.get("pin_memory") and isinstance(result, Tensor):
                result = transfer.pinned(result)
            if asked is None or not isinstance(result, Tensor) or kwargs.get("out") is not None:
                return result
            return transfer.moved(result, check_available(asked))

        return call

    def apply(self, node: Any, grad: Any) -> tuple[Any, ...]:
        """A node's gradients, in the memory of the device that the incoming one lies on."""
        grads = grad if isinstance(grad, list) else [grad]
        if isinstance(node, CustomNode):
            if node.context._materialize and any(g is None for g in grads):
                with At(common_place(grads)):
                    grad = [tools.zeros(*meta) if g is None and meta is not None else g
                            for g, meta in zip(grads, node.results, strict=True)]  # fmt: skip
            with At(None):
                return anomaly.applied(node, grad)
        with At(common_place(grads), checked=False):
            return anomaly.applied(node, grad)


def asked_place(asked: Any) -> str | None:
    """The place that `device=` names, None where it names none that is emulated."""
    if asked is None:
        return None
    wanted = asked if isinstance(asked, device) else device(asked)
    return str(check_available(wanted)) if wanted.type in (CPU, "cuda") else None


ELSEWHERE = ("of_default_type", "normal", "range")
"""Functions that make tensors on the CPU, whatever the default device is."""


def _device_position(function: Callable[..., Any]) -> int | None:
    """Where a function takes `device`; a large number if by name alone, None if it does not."""
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.name == "device":
            return position if parameter.kind is parameter.POSITIONAL_OR_KEYWORD else 1 << 30
    return None
