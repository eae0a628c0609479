"""Calls: which overload takes the arguments, and the node that a call becomes.

An overload is tried twice with all others: first with the arguments as they are, then with implicit
conversions (a tensor for a number, `view(2, 3)` for a list of sizes); the first that fits is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators import table
from flambeau.jit.operators.builtin_functions import builtin_functions
from flambeau.jit.operators.conversions import (
    constant,
    convert,
    convertible_to_list,
    list_of,
    pack,
    repeated,
    without_none,
)
from flambeau.jit.operators.type_variables import Bound, Mismatch, bind, evaluate, shown

NEVER_MATCHED = frozenset(("aten::view.dtype", "aten::max.unary_out", "aten::min.unary_out"))
"""Overloads that TorchScript cannot tell apart from others: dtypes are ints there."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: a value of the graph, or any constant; `name` if it has a keyword."""

    value: Any
    where: SourceRange | None = None
    name: str | None = None

    def in_graph(self, graph: Graph) -> Argument:
        """The same argument as a value of the graph."""
        if isinstance(self.value, Value):
            return self
        with graph.at(self.where):
            return Argument(graph.constant(self.value), self.where, self.name)


@dataclass(frozen=True, slots=True)
class Match:
    """How a call fits a schema. fields: the names of the results, if all have one."""

    schema: FunctionSchema
    inputs: list[Value]
    return_types: tuple[T.Type, ...]
    fields: tuple[str, ...] = ()


class _Unfit(Exception):
    """Why a schema does not take the arguments."""


def match_schema(schema: FunctionSchema, graph: Graph, where: SourceRange | None,
                 args: Sequence[Argument | Value], kwargs: Sequence[Argument] = (),
                 self_value: Argument | Value | None = None, *,
                 allow_conversions: bool = True) -> Match | str:  # fmt: skip
    """Fit the arguments of a call to a schema. Conversions are put into the graph.

    Returns:
        The inputs of the call and the types of its results; or a text: why it does not fit.
    """
    if schema.full_name in NEVER_MATCHED:
        return ""
    before = graph.point.before
    with graph.at(where):
        call = _Call(schema, graph, args, kwargs, self_value, allow_conversions)
        try:
            return call.match()
        except _Unfit as reason:
            _remove_since(graph, before)
            return f"\n{spelled(schema)}:\n{reason}"


def match_one(schema: FunctionSchema, graph: Graph, where: SourceRange | None,
              args: Sequence[Argument | Value], kwargs: Sequence[Argument] = (),
              self_value: Argument | Value | None = None) -> Match:  # fmt: skip
    """`match_schema` for a call that can only mean this; ScriptError if it does not fit."""
    found = match_schema(schema, graph, where, args, kwargs, self_value)
    if isinstance(found, str):
        raise ScriptError(found, where)
    return found


def match_any(schemas: Sequence[FunctionSchema], graph: Graph, where: SourceRange | None,
              args: Sequence[Argument | Value], kwargs: Sequence[Argument] = (),
              self_value: Argument | Value | None = None) -> tuple[int, Match]:  # fmt: skip
    """The first schema that fits, without conversions if possible, and its place in the list.

    Raises:
        ScriptError: none fits; the text says of each why.
    """
    if len(schemas) == 1:
        return 0, match_one(schemas[0], graph, where, args, kwargs, self_value)
    reasons: list[str] = []
    for allow_conversions in (False, True):
        reasons = []
        for index, schema in enumerate(schemas):
            found = match_schema(schema, graph, where, args, kwargs, self_value,
                                 allow_conversions=allow_conversions)  # fmt: skip
            if isinstance(found, Match):
                return index, found
            reasons.append(found)
    listed = "".join(f"  {line}\n" for line in "".join(reasons).splitlines())
    raise ScriptError(
        "Arguments for call are not valid.\nThe following variants are available:\n"
        f"{listed}\nThe original call is",
        where,
    )


def emit_builtin(graph: Graph, where: SourceRange | None, name: str,
                 args: Sequence[Argument | Value], kwargs: Sequence[Argument] = (),
                 self_value: Argument | Value | None = None) -> Value:  # fmt: skip
    """Put a call of an operator (`aten::add`) into the graph.

    Returns:
        Its result; of several results, a tuple; of none, a constant None.

    Raises:
        ScriptError: there is no such operator, or it does not take the arguments.
    """
    overloads = table.overloads(name)
    functions = builtin_functions(name)
    if not overloads and not functions:
        raise ScriptError(_unknown(name), where)
    schemas = [*overloads, *(function.schema for function in functions)]
    with graph.at(where):
        args = [_argument(a).in_graph(graph) for a in args]
        kwargs = [a.in_graph(graph) for a in kwargs]
    index, match = match_any(schemas, graph, where, args, kwargs, self_value)
    with graph.at(where):
        if index >= len(overloads):
            return functions[index - len(overloads)].insert(graph, match.inputs)
        node = insert_matched(graph, name, match)
        return packed(graph, node.outputs, match.fields)


def insert_matched(graph: Graph, kind: str, match: Match, **attributes: Any) -> Node:
    """The node of a call that fits a schema."""
    node = graph.insert(kind, match.inputs, match.return_types, **attributes)
    node.schema = match.schema
    return node


def packed(graph: Graph, outputs: Sequence[Value], fields: Sequence[str] = ()) -> Value:
    """The results of a call as one value."""
    if len(outputs) == 1:
        return outputs[0]
    if not outputs:
        return graph.constant(None, T.NONE)
    return pack(graph, outputs, fields)


def spelled(schema: FunctionSchema) -> str:
    """A schema as errors show it."""
    known = table.SPELLED.get(schema.full_name)
    if known is not None:
        return known
    parts: list[str] = []
    for argument in schema.arguments:
        if argument.keyword_only and "*" not in parts:
            parts.append("*")
        default = "" if argument.default is REQUIRED else f"={_constant_text(argument.default)}"
        parts.append(f"{argument.type} {argument.name}{default}")
    returns = ", ".join(f"{r.type} {r.name}".rstrip() for r in schema.returns)
    if len(schema.returns) != 1 or (returns[0] == "(" and returns[-1] == ")"):
        returns = f"({returns})"
    name = (
        schema.full_name.rpartition(".")[2] if schema.name.startswith("__torch__") else schema.name
    )
    return f"{name}({', '.join(parts)}) -> {returns}"


def _constant_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_constant_text, value))}]"
    return str(value)


def _argument(given: Argument | Value) -> Argument:
    return given if isinstance(given, Argument) else Argument(given)


def _remove_since(graph: Graph, before: Node | None) -> None:
    """Take away the conversions of an attempt that failed."""
    node = graph.point.before
    while node is not before and node is not None:
        previous = node.before
        if all(not value.users for value in node.outputs):
            node.destroy()
        node = previous


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, table.names(), cutoff=0.85)
    if not close:
        return (
            f"Unknown builtin op: {name}.\nCould not find any similar ops to {name}. This op may "
            "not exist or may not be currently supported in TorchScript.\n"
        )
    listed = "".join(f"\t{other}\n" for other in close)
    return (
        f"Unknown builtin op: {name}.\nHere are some suggestions: \n{listed}\nThe original call is"
    )


class _Call:
    """One attempt to fit arguments to a schema."""

    def __init__(self, schema: FunctionSchema, graph: Graph, args: Sequence[Argument | Value],
                 kwargs: Sequence[Argument], self_value: Argument | Value | None,
                 implicit: bool) -> None:  # fmt: skip
        self.schema = schema
        self.graph = graph
        self.args = [_argument(a) for a in args]
        self.kwargs = list(kwargs)
        self.self_value = None if self_value is None else _argument(self_value)
        self.implicit = implicit
        self.bound: Bound = {}
        self.used_args = 0
        self.used_kwargs: set[int] = set()

    def match(self) -> Match:
        inputs = [self.input(index, p) for index, p in enumerate(self.schema.arguments)]
        if self.self_value is not None:
            raise _Unfit("Provided self argument not used in schema.\n")
        if self.schema.vararg:
            rest = self.args[self.used_args :]
            inputs += [argument.in_graph(self.graph).value for argument in rest]
            self.used_args = len(self.args)
        self.check_rest()
        return self.result(inputs)

    def input(self, index: int, parameter: Parameter) -> Value:
        """The value for one parameter."""
        if parameter.name == "self" and self.self_value is not None:
            given, self.self_value = self.self_value, None
            return self.fit(parameter, given)
        if not parameter.keyword_only and self.used_args < len(self.args):
            return self.positional(index, parameter)
        found = self.keyword(parameter.name)
        if found is not None:
            return self.fit(parameter, found)
        if parameter.default is REQUIRED:
            raise _Unfit(f"Argument {parameter.name} not provided.\n")
        value = parameter.default
        if isinstance(value, Value):
            return value
        return self.fit(parameter, Argument(self.default(value, parameter)))

    def default(self, value: Any, parameter: Parameter) -> Value:
        place, self.graph.place = self.graph.place, None
        try:
            return constant(self.graph, value, parameter.type)
        finally:
            self.graph.place = place

    def positional(self, index: int, parameter: Parameter) -> Value:
        if self.implicit and self.takes_rest(index, parameter):
            first = self.args[self.used_args].in_graph(self.graph).value.type
            is_list = isinstance(first, T.ListType)
            if not is_list and not convertible_to_list(first, without_none(parameter.type)):
                return self.rest_as_list(parameter)
        self.used_args += 1
        return self.fit(parameter, self.args[self.used_args - 1])

    def takes_rest(self, index: int, parameter: Parameter) -> bool:
        """Whether all further arguments may be one list: `view(2, 3)`."""
        behind = self.schema.arguments[index + 1 : index + 2]
        if any(not other.keyword_only for other in behind) or parameter.length is not None:
            return False
        type = parameter.type
        return isinstance(type, T.ListType) and not isinstance(type.element, T.VariableType)

    def rest_as_list(self, parameter: Parameter) -> Value:
        wanted = without_none(parameter.type)
        assert isinstance(wanted, T.ListType)
        element = Parameter(parameter.name, wanted.element)
        values = [self.fit(element, argument) for argument in self.args[self.used_args :]]
        self.used_args = len(self.args)
        return list_of(self.graph, wanted.element, values)

    def keyword(self, name: str) -> Argument | None:
        """The keyword argument of a parameter's name; `input` is the `self` of functions."""
        wanted = {name}
        if name == "self" and self.schema.name.startswith("aten::"):
            wanted.add("input")
        for index, argument in enumerate(self.kwargs):
            if argument.name in wanted:
                self.used_kwargs.add(index)
                return argument
        return None

    def fit(self, parameter: Parameter, given: Argument) -> Value:
        """The value of an argument, converted to the type of the parameter."""
        value = given.in_graph(self.graph).value
        value = repeated(self.graph, value, parameter.type, parameter.length)
        try:
            bind(parameter.type, value.type, self.bound)
        except Mismatch as reason:
            raise _Unfit(
                f"Could not match type {shown(value.type)} to {shown(parameter.type)} "
                f"in argument '{parameter.name}': {reason}.\n"
            ) from None
        wanted = evaluate(parameter.type, self.bound)
        if wanted is None:
            raise _Unfit(
                f"Type variables in type {shown(parameter.type)} could not be inferred from "
                f"actual type {shown(value.type)}"
            )
        value = convert(self.graph, wanted, value, self.implicit)
        if not value.type.is_subtype_of(wanted):
            raise _Unfit(_mismatch(parameter, value.type))
        return value

    def check_rest(self) -> None:
        """Refuse arguments that no parameter takes."""
        if self.used_args < len(self.args):
            raise _Unfit(
                f"Expected at most {self.used_args} arguments but found {len(self.args)} "
                "positional arguments.\n"
            )
        for index, argument in enumerate(self.kwargs):
            if index in self.used_kwargs:
                continue
            known = any(p.name == argument.name for p in self.schema.arguments)
            what = "specified twice" if known else "unknown"
            raise _Unfit(f"Keyword argument {argument.name} {what}.\n")

    def result(self, inputs: list[Value]) -> Match:
        types = []
        for result in self.schema.returns:
            type = evaluate(result.type, self.bound)
            if type is None:
                raise ScriptError(f"{shown(result.type)} has unbound type variables.")
            types.append(type)
        names = tuple(result.name for result in self.schema.returns)
        return Match(self.schema, inputs, tuple(types), names if all(names) else ())


def _mismatch(parameter: Parameter, actual: T.Type) -> str:
    text = (
        f"Expected a value of type '{shown(parameter.type)}' for argument '{parameter.name}' "
        f"but instead found type '{shown(actual)}'.\n"
    )
    inferred = "to be of type 'Tensor' because it was not annotated with an explicit type.\n"
    if getattr(parameter.type, "inferred", False):
        text += f"Inferred '{parameter.name}' {inferred}"
    if getattr(actual, "inferred", False):
        text += f"Inferred the value for argument '{parameter.name}' {inferred}"
    if isinstance(actual, T.ListType) and actual.element == T.TENSOR:
        text += (
            "Empty lists default to List[Tensor]. Add a variable annotation to the assignment to "
            "create an empty list of another type (torch.jit.annotate(List[T, []]) where T is the "
            "type of elements in the list for Python 2)\n"
        )
    return text
