"""Before a function has an inline cache: its first calls are counted.

What caches are made of (`inline_cache`) is imported when the first function has been called so
often that a cache is worth while.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from functools import cache as cache_once
from typing import Any, TypeVar

from flambeau._runtime import choice
from flambeau._runtime.observed import observers

Function = TypeVar("Function", bound=Callable[..., Any])
WATCHED = not {"bounds", "memory"}.isdisjoint(os.environ.get("FLAMBEAU_DEBUG", "").split("|"))
AFTER = os.environ.get("FLAMBEAU_INLINE_AFTER", "200")
if not AFTER.isdecimal():
    raise ValueError(
        f"FLAMBEAU_INLINE_AFTER is {AFTER!r}; it can be a number of calls, or 0: never"
    )
CALLS = int(AFTER)
"""Calls of a function before it has a cache: a program that ends before has no use for it."""


@cache_once
def possible() -> bool:
    """Whether there are inline caches: kernels are wanted, nobody checks their accesses, and one
    thread of Python runs at a time."""
    has_lock: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    wanted = CALLS > 0 and choice.ENGINE != "numpy" and choice.available()
    return wanted and not WATCHED and has_lock


class Warming:
    """What stands under a name of generated text until its function has been called some times:
    then the cache's builtin function takes its place, where caches are `possible`. It finds
    nothing.

    Args:
        scopes: the globals of the function, and of its twins under other names.
        learner: makes what describes its calls, see `InlineCache`.
    """

    def __init__(self, scope: dict[str, Any], name: str,
                 learner: Callable[[], Callable[..., None]]) -> None:  # fmt: skip
        self.scopes = [scope]
        self.name = name
        self.learner = learner
        self.left = CALLS

    def __call__(self, *arguments: Any) -> None:
        self.left -= 1
        if self.left == 0:
            found = self._made() or nothing
            for scope in self.scopes:
                scope[self.name] = found

    def _made(self) -> Callable[..., Any] | None:
        if not possible():
            return None
        from flambeau._runtime.inline_cache import InlineCache

        return InlineCache(self.learner()).function()


def nothing(*arguments: Any) -> None:
    """What finds nothing, for good."""


def observer(run: Callable[..., Any], alike: bool = False) -> Callable[..., None]:
    """What describes calls by observing them, see `observed_calls`."""
    from flambeau._runtime import observed_calls

    return observed_calls.observer(run, alike)


def cached(function: Function, alike: bool = False) -> Function:
    """A function of arrays and numbers, by one launch, with an inline cache of its own.

    Args:
        alike: whether NumPy computes just the same, see `choice.Learning`.
    """
    if not possible():
        return function
    scope: dict[str, Any] = {}
    scope["inline"] = Warming(scope, "inline", lambda: observer(function, alike))

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        found = None if observers else scope["inline"](*arguments)
        return function(*arguments) if found is None else found

    return call  # type: ignore[return-value]
