"""Calls of Python from programs: functions and methods marked with `ignore` and `unused`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.jit import markers
from flambeau.jit.frontend.errors import FrontendError
from flambeau.jit.frontend.python_values import PythonValue
from flambeau.jit.frontend.simple_value import SimpleValue
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.operators.matching import Argument, emit_builtin, match_one
from flambeau.nn import Module

NOT_RUN = "This Python function is annotated to be ignored and cannot be run"


class IgnoredFunction(SugaredValue):
    """A Python function that is called as it is, or whose call raises an exception.

    owner: the value that it is a method of.
    """

    kind = "python function"

    def __init__(self, function: Callable[..., Any], owner: Value | None = None) -> None:
        self.function = function
        self.owner = owner

    def _schema(self) -> FunctionSchema:
        from flambeau.jit.frontend.source import definition_of
        from flambeau.jit.modules.resolvers import scope_of
        from flambeau.jit.modules.signatures import declared_schema

        definition = definition_of(self.function)
        owner = None if self.owner is None else self.owner.type
        scope = scope_of(self.function)
        return declared_schema(definition, scope, owner, _defaults(self.function))

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        schema = self._schema()
        if self.owner is not None:
            args = [Argument(self.owner, where), *args]
        with graph.at(where):
            args = [argument.in_graph(graph) for argument in args]
            kwargs = [argument.in_graph(graph) for argument in kwargs]
        match = match_one(schema, graph, where, args, kwargs)
        with graph.at(where):
            if markers.should_drop(self.function):
                return self._dropped(graph, where, match.return_types)
            node = graph.insert(
                "prim::PythonOp", match.inputs, match.return_types,
                name=self.function.__name__, function=self.function,
            )  # fmt: skip
        return SimpleValue(node.output)

    def _dropped(self, graph: Graph, where: SourceRange, types: Sequence[T.Type]) -> SugaredValue:
        emit_builtin(graph, where, "prim::RaiseException", [Argument(NOT_RUN, where)])
        return SimpleValue(graph.insert("prim::Uninitialized", (), types).output)


class IgnoredMethod(IgnoredFunction):
    """A method of a module that stays Python."""

    def __init__(self, owner: Value, function: Callable[..., Any]) -> None:
        super().__init__(function, owner)


class PythonCallable(SugaredValue):
    """Any other Python object that can be called: from tensors to a tensor."""

    kind = "python value"

    def __init__(self, function: Callable[..., Any], name: str = "<python_value>") -> None:
        self.function = function
        self.name = name

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        parameters = tuple(Parameter(str(index), T.TENSOR) for index in range(len(args)))
        schema = FunctionSchema(self.name, "", parameters, (Parameter("0", T.TENSOR),))
        with graph.at(where):
            args = [argument.in_graph(graph) for argument in args]
        match = match_one(schema, graph, where, args, kwargs)
        with graph.at(where):
            node = graph.insert("prim::PythonOp", match.inputs, (T.TENSOR,),
                                name=self.name, function=self.function)  # fmt: skip
        return SimpleValue(node.output)


class PythonClass(PythonValue):
    """A class that programs know nothing of: its call is one of Python, from tensors to a tensor.

    So `super()` is a tensor, as in torch, and has no `forward`.
    """

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        if issubclass(self.value, Module):
            name = self.value.__name__
            raise FrontendError(where, f"Cannot instantiate class '{name}' in a script function")
        called = PythonCallable(self.value, self.value.__name__)
        return called.call(graph, where, args, kwargs, n_binders)


def _defaults(function: Callable[..., Any]) -> dict[str, Any] | None:
    from flambeau.jit.modules.methods import defaults_of

    return defaults_of(function)
