"""What operators do not show: methods and functions that are wrapped while advice is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._tensor.tensor import Tensor
from flambeau.debug.places import line

if TYPE_CHECKING:
    from flambeau.debug.advise import Looker

NUMBERS = ("item", "tolist", "numpy", "__float__", "__int__")
"""Methods of Tensor that leave the world of tensors."""

Around = Callable[["Looker", Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""What is called instead of a function, with the looker, the function and its arguments."""


class Taps:
    """Wraps the functions of `table()` in the thread that it was made in, until `remove`."""

    def __init__(self, looker: Looker) -> None:
        self.looker = looker
        self.thread = threading.get_ident()
        self.undo: list[tuple[Any, str, Any]] = []
        for owner, name, around in table():
            original = vars(owner)[name]
            self.undo.append((owner, name, original))
            setattr(owner, name, self.wrapped(original, around))

    def wrapped(self, function: Callable[..., Any], around: Around) -> Callable[..., Any]:
        """The function, with `around` around its calls in that thread."""

        def call(*values: Any, **named: Any) -> Any:
            if threading.get_ident() != self.thread:
                return function(*values, **named)
            return around(self.looker, function, values, named)

        call.__name__, call.__doc__ = function.__name__, function.__doc__
        call.__wrapped__ = function  # type: ignore[attr-defined]
        return call

    def remove(self) -> None:
        """Put back what was there."""
        for owner, name, original in reversed(self.undo):
            setattr(owner, name, original)
        self.undo.clear()


def table() -> list[tuple[Any, str, Around]]:
    """What is wrapped: owner, name, and what looks on."""
    from flambeau._ops.random import dropout
    from flambeau.amp.grad_scaler import GradScaler
    from flambeau.autograd import engine
    from flambeau.nn.utils import clip_grad
    from flambeau.utils.data.duplicates import Watch

    return [
        *((Tensor, name, number) for name in NUMBERS),
        (dropout, "_drop", drop), (engine, "backward", backward),
        (GradScaler, "scale", scale), (GradScaler, "unscale_", unscale),
        (GradScaler, "update", update), (clip_grad, "_grads", clip), (Watch, "end", duplicates),
    ]  # fmt: skip


def number(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """`tensor.item()` and the like."""
    start = time.perf_counter()
    result = function(*values, **named)
    seconds = time.perf_counter() - start
    where = line()
    if where is not None and where.direct:
        for topic in looker.topics:
            topic.number(values[0], function.__name__, where, seconds)
    return result


def drop(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """Dropout, of a layer or a function: input, p, train, ..."""
    where = line()
    _, p, train, *_ = values
    if train and p > 0 and where is not None:
        for topic in looker.topics:
            topic.dropout(values[0], where, tuple(looker.modules))
    return function(*values, **named)


def backward(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """The engine; only `backward`, not `autograd.grad`, adds to gradients."""
    where = line()
    if named.get("inputs") is None and where is not None:
        for topic in looker.topics:
            topic.backward(list(values[0]), where)
    return function(*values, **named)


def scale(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """`scaler.scale(loss)`."""
    result = function(*values, **named)
    if isinstance(result, Tensor) and values[0].is_enabled():
        for topic in looker.topics:
            topic.scaled(result, values[0])
    return result


def unscale(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """`scaler.unscale_(optimizer)`, also as a part of `scaler.step`."""
    for topic in looker.topics:
        topic.unscaled(values[1] if len(values) > 1 else named["optimizer"])
    return function(*values, **named)


def update(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """`scaler.update()`."""
    for topic in looker.topics:
        topic.updated(values[0])
    return function(*values, **named)


def clip(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """Both ways of clipping begin by asking for the gradients of parameters."""
    parameters = [values[0]] if isinstance(values[0], Tensor) else list(values[0])
    where = line()
    if where is not None:
        for topic in looker.topics:
            topic.clip(parameters, where)
    return function(parameters)


def duplicates(looker: Looker, function: Any, values: Any, named: Any) -> Any:
    """The end of a pass over an iterable dataset with several workers, or enough of it."""
    watch = values[0]
    where = line()
    count, workers = watch.found()
    if count and where is not None:
        for topic in looker.topics:
            topic.duplicates(count, workers, where)
    return function(*values, **named)
