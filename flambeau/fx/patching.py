"""What is replaced while a program is traced, and put back afterwards."""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable
from typing import Any

from flambeau.fx.node import map_aggregate
from flambeau.fx.proxy import Proxy

MISSING = object()

wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
"""Names that `wrap` was told of: the globals of a module, by their identity, and the name."""


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Record calls of a function of this module as one node; use it at the top of the module.

    fn_or_name: the function (then it can be a decorator), or the name of a global or builtin.

    Raises:
        RuntimeError: it is neither.
        NotImplementedError: the call is not at the top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class Patches:
    """Replacements of attributes and of entries in dicts, undone in reverse at the end."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []
        self._visited: set[int] = set()

    def __enter__(self) -> Patches:
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()

    def attribute(self, owner: type, name: str, value: Any) -> None:
        """Replace what a class has under a name."""
        before = owner.__dict__.get(name, MISSING)
        setattr(owner, name, value)
        if before is MISSING:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, before))

    def entry(self, table: dict[str, Any], name: str, value: Any) -> None:
        """Replace what a dict has under a name."""
        before = table.get(name, MISSING)
        table[name] = value
        if before is MISSING:
            self._undo.append(lambda: table.pop(name))
        else:
            self._undo.append(lambda: table.__setitem__(name, before))

    def visit(self, table: dict[str, Any], functions: frozenset[int]) -> None:
        """Replace functions among the globals of a module that are to be recorded; once."""
        if id(table) in self._visited:
            return
        self._visited.add(id(table))
        for name, value in list(table.items()):
            if not name.startswith("_") and callable(value) and id(value) in functions:
                self.entry(table, name, recorded(value))

    def all_wrapped(self) -> None:
        """Replace everything that `wrap` was told of."""
        for (_, name), table in wrapped_functions.items():
            original = table.get(name, getattr(builtins, name, MISSING))
            if original is not MISSING:
                self.entry(table, name, recorded(original))


def recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls with proxies become nodes, and whose other calls run."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", original, args, kwargs)

    return call


def find_proxy(arguments: Any) -> Proxy | None:
    """The first proxy among arguments."""
    found: list[Proxy] = []
    map_aggregate(arguments, lambda leaf: found.append(leaf) if isinstance(leaf, Proxy) else None)
    return found[0] if found else None
