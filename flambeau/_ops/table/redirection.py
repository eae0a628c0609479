"""Functions whose calls go elsewhere for a while, whoever holds a reference to them.

Traces and recordings have to see `torch.relu(x)`, `x.relu()`, `F.relu(x)` and a `relu` that a file
has imported by name, and an operator may not pay for it while nobody looks. All of them are Python
functions, so it is a function's code that is exchanged for one line that hands its arguments over,
and put back afterwards. Several may look at once, and stop in any order: each hands on to who was
there before, the first of them to the function's own code. `docs/interpreters.md` says who does
this, and why; what stays in place once it is there is a gate (`gates.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any

Through = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""What is called instead: with a function that does what was done before, and the arguments."""

_befores: dict[FunctionType, list[FunctionType]] = {}
"""For each redirected function: what was done before each redirection, the newest last."""
lock = threading.Lock()


class Redirection:
    """Functions that are redirected together, and together left alone again."""

    def __init__(self) -> None:
        self.befores: dict[FunctionType, FunctionType] = {}
        self.followed: dict[FunctionType, Through] = {}

    def add(self, function: Any, through: Through) -> None:
        """Redirect a function, once; what is no Python function is left alone."""
        if not isinstance(function, FunctionType) or function in self.befores:
            return
        with lock:
            before = copied(function)
            known = _befores.get(function, [])
            # from here on `end` takes it out, whatever a signal's handler raises
            self.befores[function] = before
            _befores[function] = [*known, before]
            keep_signature(function, before)
            function.__code__ = line(_LINE, {"through": through, "before": before}, function)

    def add_with_twins(self, function: Any, through: Through) -> None:
        """Redirect a function and its twins, those too that are made meanwhile."""
        self.add(function, through)
        if isinstance(function, FunctionType):
            self.followed[function] = through
            _followers.setdefault(function, []).append(self)
            for other in _twins.get(function, ()):
                self.add(other, through)

    def end(self) -> None:
        """Leave all functions alone."""
        with lock:
            for function, before in self.befores.items():
                _take_out(function, before)
            self.befores.clear()
            for function in self.followed:
                _followers[function].remove(self)
            self.followed.clear()


def _take_out(function: FunctionType, before: FunctionType) -> None:
    """Let whoever came next, or the function itself, do what was done before."""
    befores = _befores.get(function, [])
    if before not in befores:  # it was not put in, or is out: an error came between
        return
    place = befores.index(before)
    following = befores[place + 1] if place + 1 < len(befores) else function
    following.__code__ = before.__code__
    del befores[place]
    if not befores:
        del _befores[function]
        if getattr(function, "__wrapped__", None) in _copies:
            _copies.discard(function.__wrapped__)  # type: ignore[attr-defined]
            del function.__wrapped__  # type: ignore[attr-defined]


def own_code(function: FunctionType) -> FunctionType:
    """The function that has a function's own code: itself, or a copy while it is redirected."""
    befores = _befores.get(function)
    return befores[0] if befores else function


_copies: set[FunctionType] = set()
"""What `inspect` is told to look at instead of redirected functions."""


def keep_signature(function: FunctionType, before: FunctionType, *, for_good: bool = False) -> None:
    """Let `inspect` find the parameters that the function had, until nobody redirects it, or for
    good."""
    known = getattr(function, "__wrapped__", None)
    if known is None or (for_good and known in _copies):
        before.__annotations__ = function.__annotations__
        function.__wrapped__ = before  # type: ignore[attr-defined]
        _copies.discard(known)  # type: ignore[arg-type]
        if not for_good:
            _copies.add(before)


_twins: dict[FunctionType, list[FunctionType]] = {}
_followers: dict[FunctionType, list[Redirection]] = {}
"""For functions that have twins or may get them: who redirects those, too."""


def follow(function: FunctionType, made: FunctionType) -> None:
    """From now on `made` is a twin of a function: who redirects that with its twins gets both."""
    _twins.setdefault(function, []).append(made)
    for redirection in _followers.get(function, ()):
        redirection.add(made, redirection.followed[function])


def copied(function: FunctionType) -> FunctionType:
    """A function with the same code, for whatever happens to the other's."""
    copy = FunctionType(function.__code__, function.__globals__, function.__name__,
                        function.__defaults__, function.__closure__)  # fmt: skip
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__  # by which Python's errors call it
    return copy


def line(text: str, values: dict[str, Any], function: FunctionType) -> CodeType:
    """Code from a text that names `values` as string constants, to be a function's: it has just as
    many closure cells."""
    code = function.__code__
    template = _template(text, len(code.co_freevars))
    constants = tuple(
        values.get(constant, constant) if isinstance(constant, str) else constant
        for constant in template.co_consts
    )
    return template.replace(co_consts=constants, co_name=code.co_name,
                            co_freevars=code.co_freevars)  # fmt: skip


@cache
def _template(text: str, cells: int) -> CodeType:
    """A text, compiled as a function that closes over so many variables: what reads a frame's
    variables (debuggers, pytest) relies on the first instruction, which puts the cells there."""
    names = "".join(f"cell{number:05}, " for number in range(cells))
    scope: dict[str, Any] = {}
    exec(compile(text.format(cells=names), __file__, "exec"), scope)
    template: CodeType = scope["around"](*[None] * cells).__code__
    # No variable of the function's own can have such a name, nor be taken for one of these.
    return template.replace(co_varnames=tuple(f".{name}" for name in template.co_varnames))


_LINE = """
def around({cells}):
    def line(*args, **kwargs):
        through = "through"
        return through("before", args, kwargs)
        ({cells})
    return line
"""
