"""Functions: parameters, defaults, body, result; the whole way from syntax to a finished graph."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from flambeau.jit.frontend import (  # noqa: F401  they say what each kind of syntax means
    augmented,
    closures,
    conditions,
    dictionaries,
    expressions,
    indexing,
    iteration,
    loops,
    statements,
    with_blocks,
)
from flambeau.jit.frontend.annotations import broadcasting_length, type_of_expression
from flambeau.jit.frontend.compiler import Compiler, Resolver
from flambeau.jit.frontend.environment import convert_at
from flambeau.jit.frontend.errors import compiling
from flambeau.jit.frontend.simple_value import shown
from flambeau.jit.frontend.ssa import convert_to_ssa
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.frontend.syntax import check_syntax
from flambeau.jit.frontend.type_comments import apply_type_comment
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, Function, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import ScriptError, Source


def compile_function(function: Function, definition: ast.FunctionDef, source: Source,
                     resolver: Resolver, self_value: SugaredValue | None = None,
                     class_type: T.ClassType | None = None, *,
                     defaults: Mapping[str, Any] | None = None,
                     assumed: Mapping[str, T.Type] | None = None) -> None:  # fmt: skip
    """Compile a definition: sets the graph and the schema of the function.

    definition: its positions are those in the text of `source`.
    resolver: what names mean that are no variables.
    self_value: what the first parameter means, for a method of a module; for other methods it is
        simply a value of `class_type`, the class that the function's name names.
    defaults: values of parameters that the call may leave out; without it they are read from the
        definition, where they have to be literals.
    assumed: types of parameters that have no annotation.

    Raises:
        ScriptError, FrontendError: TorchScript does not allow the program.
    """
    class_type = class_type or owner_of(function)
    owner = "" if class_type is None else f"{class_type.name}."
    with compiling(f"{owner}{function.name}"):
        check_syntax(definition, source, closures=function.unit.is_foreign)
        apply_type_comment(definition, source, is_method=class_type is not None)
        graph = Graph()
        c = Compiler(graph, source, resolver)
        function.where = c.place(definition)
        if defaults is None:
            defaults = literal_defaults(definition, c)
        _Definition(c, definition, defaults, assumed or {}).compile(
            function, self_value, class_type
        )


def compile_body(c: Compiler, node: ast.FunctionDef) -> None:
    """Compile what stands in a closure."""
    _Definition(c, node, {}, {}).compile_body()


def owner_of(function: Function) -> T.ClassType | None:
    """The class that a method belongs to."""
    owner = function.unit.types.get(function.qualified_name.rpartition(".")[0])
    return owner if isinstance(owner, T.ClassType) else None


class _Definition:
    def __init__(self, c: Compiler, node: ast.FunctionDef, defaults: Mapping[str, Any],
                 assumed: Mapping[str, T.Type]) -> None:  # fmt: skip
        self.c = c
        self.node = node
        self.defaults = defaults
        self.assumed = assumed

    def compile(self, function: Function, self_value: SugaredValue | None,
                class_type: T.Type | None) -> None:  # fmt: skip
        c, node = self.c, self.node
        if node.returns is not None:
            c.declared = c.type_of(node.returns)
        parameters = self.parameters(class_type)
        if c.declared is not None:
            self.announce(function, parameters, c.declared)
        for parameter, argument in zip(parameters, self.arguments(), strict=True):
            name = parameter.name
            value = c.graph.add_input(parameter.type, "" if name == "_" else name)
            meaning: Any = value
            if self_value is not None and value is c.graph.inputs[0]:
                meaning = self_value.bound_to(value)
            c.environment.set(name, c.place(argument), meaning)
        c.statements(node.body)
        self.finish_body()
        assert c.returned is not None
        result = Parameter("", c.returned)
        function.schema = FunctionSchema(function.qualified_name, "", tuple(parameters), (result,))
        self.output()
        convert_to_ssa(c.graph)
        _clean_up(c.graph)
        function.graph = c.graph

    def compile_body(self) -> None:
        """The same for a closure, whose variables are known already."""
        self.c.statements(self.node.body)
        self.finish_body()
        self.output()
        convert_to_ssa(self.c.graph)
        _clean_up(self.c.graph)

    def arguments(self) -> list[ast.arg]:
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    def parameters(self, class_type: T.Type | None) -> list[Parameter]:
        keyword_only = {argument.arg for argument in self.node.args.kwonlyargs}
        found = []
        for index, argument in enumerate(self.arguments()):
            name = argument.arg
            if index == 0 and class_type is not None:
                found.append(Parameter(name, class_type))
                continue
            type = self.type_of(argument)
            length = broadcasting_length(argument.annotation)
            default = self.default(name, type, length) if name in self.defaults else REQUIRED
            found.append(Parameter(name, type, default, name in keyword_only, length))
        return found

    def type_of(self, argument: ast.arg) -> T.Type:
        if argument.annotation is not None:
            return self.c.type_of(argument.annotation)
        return self.assumed.get(argument.arg, T.INFERRED_TENSOR)

    def default(self, name: str, type: T.Type, length: int | None) -> Any:
        """The default as a value of the parameter's type."""
        from flambeau.jit.frontend.constants import default_value

        value = self.defaults[name]
        if length is not None and isinstance(value, (int, float)):
            value = (value,) * length
        allowed = getattr(self.c.resolver, "mutable_defaults", False)  # as schemas and archives do
        if isinstance(value, (list, dict, set)) and not allowed:
            raise ScriptError(
                "Mutable default parameters are not supported because Python binds them to the "
                "function and they persist across function calls.\n As a workaround, make the "
                "default None and instantiate the default parameter within the body of the "
                f"function. Found {value.__class__} on parameter {name}",
                self.c.place(self.node),
            )
        return default_value(value, type, name, self.c.place(self.node))

    def announce(self, function: Function, parameters: list[Parameter], result: T.Type) -> None:
        """Set the schema already, so that methods may call each other."""
        returns = (Parameter("", result),)
        function.schema = FunctionSchema(function.qualified_name, "", tuple(parameters), returns)

    def finish_body(self) -> None:
        """Return None where the body comes to its end."""
        c = self.c
        place = c.place(self.node)
        if c.graph.block in c.exits:
            if c.returned is None:
                c.returned = c.declared or T.NONE
            return
        if c.declared is not None and c.declared != T.NONE:
            raise ScriptError(
                "Function was not annotated as having type None, but does not return along all "
                "paths", place
            )  # fmt: skip
        statements.emit_return(c, c.constant(None, place), place)

    def output(self) -> None:
        """The result until `exits.py` puts the right one there."""
        c = self.c
        assert c.returned is not None
        value = c.insert("prim::Uninitialized", (), (c.returned,), None).output
        c.graph.add_output(value)


def literal_defaults(node: ast.FunctionDef, c: Compiler) -> dict[str, Any]:
    """The defaults that a definition writes down."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    found = {}
    for argument, value in zip(reversed(arguments), reversed(node.args.defaults), strict=False):
        try:
            found[argument.arg] = ast.literal_eval(value)
        except ValueError:
            found[argument.arg] = literal_of(value, c)
    return found


def literal_of(node: ast.expr, c: Compiler) -> Any:
    """The value of a default that is written as an expression of constants."""
    scratch = Compiler(Graph(), c.places.source, c.resolver)
    value = scratch.value(node)
    from flambeau.jit.frontend.constants import folded

    return folded(value, c.place(node))


def _clean_up(graph: Graph) -> None:
    from flambeau.jit.passes import clean_up

    clean_up(graph)


__all__ = ["compile_function", "convert_at", "literal_defaults", "shown", "type_of_expression"]
