"""Compiled functions: the generated text of a graph, made callable, and kept."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from flambeau.jit import state
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Graph, Node
from flambeau.jit.run.limits import Meter
from flambeau.jit.run.python_text import Writer

_numbers = count(1)


class Program:
    """A graph as a Python function. `nodes` has the node of each line, `name` the program's."""

    by_file: WeakValueDictionary[str, Program] = WeakValueDictionary()

    def __init__(self, graph: Graph, name: str, meter: Meter | None = None) -> None:
        self.name = name
        self.filename = f"<torchscript {next(_numbers)}>"
        writer = Writer(lambda called: _resolved(called, name, meter))
        if meter is not None:
            writer.meter = writer.bind(meter, "meter")
        writer.write(graph)
        self.nodes: list[Node | None] = writer.nodes
        self.text = "\n".join(writer.lines) + "\n"
        self.scope = writer.scope
        linecache.cache[self.filename] = (
            len(self.text), None, self.text.splitlines(True), self.filename
        )  # fmt: skip
        exec(compile(self.text, self.filename, "exec"), self.scope)
        self.function: Callable[..., Any] = self.scope["f"]
        self.function.program = self  # type: ignore[attr-defined]  # lives as long as it
        Program.by_file[self.filename] = self


def _resolved(called: Any, name: str, meter: Meter | None) -> Callable[..., Any]:
    """What stands for a function that a program calls: itself, or what compiles it when it is
    first called, so that functions may call each other.
    """
    if isinstance(called, Graph):
        return graph_callable(called, name, meter)
    function, scope, key = called
    known = function.compiled.get(_key(meter))
    if known is not None:
        return known  # type: ignore[no-any-return]

    def first_call(*args: Any) -> Any:
        scope[key] = compiled = callable_of(function, meter)
        return compiled(*args)

    return first_call


def _key(meter: Meter | None) -> Any:
    return ("run", state.optimize) if meter is None else ("metered", meter)


def graph_callable(graph: Graph, name: str = "", meter: Meter | None = None) -> Callable[..., Any]:
    """A Python function of a graph's inputs. Several results are a tuple."""
    return Program(graph, name, meter).function


def callable_of(function: Function, meter: Meter | None = None) -> Callable[..., Any]:
    """The Python function of a script function: positional, on runtime values, kept for next time.

    With a meter, the function counts its steps and asks before it takes memory.
    """
    key = _key(meter)
    found = function.compiled.get(key)
    if found is None:
        plain = meter is not None or not state.optimize
        found = _plain(function, meter) if plain else _optimised(function)
        if state.optimize == state.CHECKED and not plain:
            from flambeau.jit.optimise.shadow import Checked

            found = Checked(function, found)
        function.compiled[key] = found
    return found  # type: ignore[no-any-return]


def _plain(function: Function, meter: Meter | None = None) -> Callable[..., Any]:
    """The graph as it stands."""
    return Program(function.graph, function.name, meter).function


def _optimised(function: Function) -> Callable[..., Any]:
    """The optimised graph; as it stands, should the optimiser fail."""
    from flambeau.jit.optimise import faults, optimised

    function.ensure_defined()  # what raises here is the program's error
    try:
        return Program(optimised(function), function.name).function
    except Exception as error:
        return faults.plainly("rewriting", error, lambda: _plain(function))  # type: ignore[no-any-return]
