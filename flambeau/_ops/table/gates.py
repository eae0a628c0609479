"""Gates: what stands at the entrance of functions that are written by hand, once somebody may want
to take their calls over.

Generated functions test `modes.watch` in their text. Composites, factories and methods of Tensor
that are no rows have no such line; they get one when a reason first comes up (a class that takes
part, a batch, a mode below autograd), and keep it: while nothing is on, it costs one test. Handlers
have ranks (`ranks.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from flambeau._core import modes
from flambeau._ops.table import redirection
from flambeau._ops.table.ranks import Rank
from flambeau._ops.table.redirection import Through
from flambeau._tensor.overriding import PLAIN


class Handler(NamedTuple):
    """Who may take calls over, and whether those of the function's twins, too."""

    rank: Rank
    through: Through
    with_twins: bool


class Gate:
    """The handlers of one function. `own` has the function's own code."""

    def __init__(self, function: FunctionType) -> None:
        with redirection.lock:
            holder = redirection.own_code(function)
            self.own = redirection.copied(holder)
            redirection.keep_signature(function, self.own, for_good=True)
        self.function = function
        self.handlers: list[Handler] = []

    def add(self, handler: Handler) -> None:
        """Let a handler see calls; one of each rank."""
        if any(known.rank == handler.rank for known in self.handlers):
            return
        handlers = sorted([*self.handlers, handler], key=lambda known: known.rank)
        steps: Callable[..., Any] = self.own
        for known in reversed(handlers[1:]):
            steps = partial(_step, known.through, steps)
        self.first, self.following = handlers[0].through, steps
        self._put_in_place(asks_classes=handlers[0].rank is Rank.CLASSES)
        self.handlers = handlers  # last: who is interrupted comes again

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that somebody may want to take over."""
        return self.first(self.following, args, kwargs)

    def _put_in_place(self, *, asks_classes: bool) -> None:
        text = WITH_CLASSES if asks_classes else WITHOUT_CLASSES
        values = {"enter": self.enter, "own": self.own, "watch": modes.watch,
                  "known": PLAIN.issuperset, "map": map, "type": type}  # fmt: skip
        with redirection.lock:
            holder = redirection.own_code(self.function)
            holder.__code__ = redirection.line(text, values, self.own)


def _step(through: Through, before: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return through(before, args, kwargs)


_gates: dict[FunctionType, Gate] = {}
_twins: dict[FunctionType, list[FunctionType]] = {}


def add(function: Any, rank: Rank, through: Through, *, with_twins: bool = False) -> None:
    """Let a handler see a function's calls; what is no Python function is left alone."""
    if not isinstance(function, FunctionType):
        return
    gate = _gates.get(function)
    if gate is None:
        gate = _gates[function] = Gate(function)
    gate.add(Handler(rank, through, with_twins))
    for other in _twins.get(function, ()) if with_twins else ():
        add(other, rank, through)


def own_code(function: Any) -> Any:
    """The function that has a function's own code, whatever stands at its entrance."""
    gate = _gates.get(function)
    return redirection.own_code(function) if gate is None else gate.own


def follow(function: FunctionType, made: FunctionType) -> None:
    """From now on `made` is a twin of a function, whose handlers want to see its calls."""
    _twins.setdefault(function, []).append(made)
    gate = _gates.get(function)
    for handler in () if gate is None else gate.handlers:
        if handler.with_twins:
            add(made, handler.rank, handler.through)


WITHOUT_CLASSES = """
def around({cells}):
    def line(*args, **kwargs):
        watch = "watch"  # constants: the function's module may have names of its own
        if watch.results:
            enter = "enter"
            return enter(args, kwargs)
        own = "own"
        return own(*args, **kwargs)
        ({cells})
    return line
"""
WITH_CLASSES = """
def around({cells}):
    def line(*args, **kwargs):
        watch = "watch"
        known = "known"
        every = "map"
        kind = "type"
        if (watch.results or not known(every(kind, args))
                or kwargs and not known(every(kind, kwargs.values()))):
            enter = "enter"
            return enter(args, kwargs)
        own = "own"
        return own(*args, **kwargs)
        ({cells})
    return line
"""
