"""Functions within functions, which archives have: the code that `fork` starts.

def __forked_function():
    return torch.sin(x)
future = fork(__forked_function)
"""

from __future__ import annotations

import ast

from flambeau.jit.frontend.compiler import Compiler, statement
from flambeau.jit.frontend.simple_value import SimpleValue
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir.graph import Graph, Value


class Closure(SugaredValue):
    """A function without parameters that sees the variables around it."""

    kind = "closure"

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node


@statement(ast.FunctionDef)
def _define(c: Compiler, node: ast.FunctionDef) -> None:
    c.environment.set(node.name, c.place(node), Closure(node))


def closure_graph(c: Compiler, closure: Closure) -> tuple[Graph, list[Value]]:
    """The closure as a graph of its own, and the values around it that are its inputs."""
    from flambeau.jit.frontend.definitions import compile_body

    inner = Compiler(Graph(), c.places.source, c.resolver)
    inner.places = c.places
    captured = []
    names = [part.id for part in ast.walk(closure.node) if isinstance(part, ast.Name)]
    for name in dict.fromkeys(names):
        place = c.place(closure.node)
        found = c.environment.find(name, place)
        if isinstance(found, SimpleValue):
            captured.append(found.value)
            inner.environment.set(name, place, inner.graph.add_input(found.value.type, name))
        elif found is not None:
            inner.environment.set(name, place, found)
    compile_body(inner, closure.node)
    return inner.graph, captured
