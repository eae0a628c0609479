"""Functions of torch that are programs: the bodies of rows, compiled as they stand.

A row of the kind `composite` is Python over other operators, which eager calls run; its schema
says the types of its parameters. A flag that says how many tensors there are (`return_indices`)
is a constant of the program: each choice is a function of its own.
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product as product_of
from typing import Any

from flambeau._core.programs import product
from flambeau._ops.table import binder
from flambeau._ops.table.op import BY_NAME, Op
from flambeau._ops.table.schema import REQUIRED
from flambeau._ops.table.schema import Argument as RowArgument
from flambeau.jit.frontend.constants import constant_of
from flambeau.jit.frontend.python_values import OperatorNamespaces, PythonModule
from flambeau.jit.frontend.simple_value import BuiltinFunction, FunctionValue
from flambeau.jit.frontend.source import Definition, definition_of
from flambeau.jit.frontend.sugar import SugaredValue, sugar_of
from flambeau.jit.ir.function import PYTHON_UNIT, Function
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.modules.resolvers import MISSING, PythonScope, scope_of
from flambeau.jit.operators import table
from flambeau.jit.operators.matching import Argument

FUNCTIONAL = "nn.functional."
TYPES = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}
"""What types of schemas are called in programs, if not by the same name."""
FLAGS = {"return_indices": "indices", "return_inverse": "inverse", "return_counts": "counts",
         "get_infos": "infos"}  # fmt: skip
"""Parameters that say which results there are."""
ONLY_EAGER = "EAGER"
"""A name for what programs leave out; see `flambeau._core.programs`."""


# ---- what names mean


class RowScope(PythonScope):
    """The names that a function of flambeau sees: its globals do not change, so that numbers and
    the like are constants.
    """

    def value(self, name: str, graph: Graph, where: SourceRange) -> SugaredValue | None:
        """What a name means as a value."""
        found = self.find(name)
        if found is MISSING:
            return None
        if found is math:
            return MathNames(math)
        return constant_of(found) or sugar_of(found, where)


def _scope(function: Any) -> RowScope:
    return RowScope(*scope_of(function).scopes)


class MathNames(PythonModule):
    """Python's `math`, with a product of sizes."""

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        """What a name in it means."""
        if name == "prod":
            return FunctionValue(helper(product))
        return super().attr(graph, where, name)


class RowNames(OperatorNamespaces):
    """`ops`, by which our own Python calls operators: `ops.relu`, `ops.nn.functional.pad`."""

    def __init__(self) -> None:
        super().__init__("aten")

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        """The operator of a name, or a namespace."""
        if name in ("nn", "linalg", "special", "fft"):
            import importlib

            return PythonModule(importlib.import_module(f"flambeau.{name}"))
        return super().attr(graph, where, name)


class Row(SugaredValue):
    """A row that Python names: the operator. Its body, which eager calls run, is the same."""

    kind = "builtin"

    def __init__(self, op: Op) -> None:
        self.op = op

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        """`row.body`: Python spares itself a call by it."""
        if name != "body":
            raise ScriptError(f"object has no attribute {name}", where)
        public = f"{self.op.namespace}.{self.op.public}" if self.op.namespace else self.op.public
        found = program(public) if public.startswith(FUNCTIONAL) else None
        if found is not None:
            return found
        kind = f"aten::{self.op.name}"
        if not table.overloads(kind):
            raise ScriptError(f"{self.op.name} is no operator of programs", where)
        return BuiltinFunction(kind)

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        """A row itself is no function."""
        raise ScriptError("a row is called by its name", where)


# ---- rows as programs


def program(public: str) -> SugaredValue | None:
    """What the function of a row means ("nn.functional.relu"); None if it is no program."""
    rows = BY_NAME.get(public, [])
    if len(rows) != 1 or rows[0].kind != "composite":
        return None
    op = rows[0]
    flags = [a.name for a in op.schema.arguments if a.name in FLAGS]
    if flags and not public.endswith("_with_indices"):
        return Flagged(op, flags)
    return FunctionValue(*functions(op))


def place(op: Op) -> str:
    """The module of torch in which programs find a row's function."""
    return f"__torch__.torch.{op.namespace or 'functional'}"


@cache
def functions(op: Op) -> tuple[Function, ...]:
    """The function that a row's body is, compiled when it is first used; where parameters may be
    of several types, one for each choice of types.
    """
    chosen = [
        dict(zip(op.choices, types, strict=True)) for types in product_of(*op.choices.values())
    ]
    return tuple(_function(op, op.public, signature(op, types)) for types in chosen)


def _function(op: Op, name: str, declared: Definition, body: Definition | None = None) -> Function:
    from flambeau.jit.modules.methods import function_from
    from flambeau.jit.modules.signatures import with_signature

    found = with_signature(body or _body(op.body), declared, name)
    return function_from(found, _scope(op.body), f"{place(op)}.{name}", PYTHON_UNIT)


@cache
def _body(function: Any) -> Definition:
    """The text of one of our functions, as programs read it."""
    found = definition_of(function)
    node = Decided(_constants(function)).visit(AsProgram().visit(copy.deepcopy(found.node)))
    return Definition(node, found.source)


def _constants(function: Any) -> dict[str, Any]:
    """The numbers and texts that a function closes over, such as the dims of a family's row, and
    the name for what programs leave out.
    """
    closed = inspect.getclosurevars(function).nonlocals
    return {ONLY_EAGER: False, **{n: v for n, v in closed.items() if isinstance(v, (int, str))}}


def without_eager(definition: Definition) -> Definition:
    """A method of a layer without what `EAGER` guards."""
    return Definition(Decided({ONLY_EAGER: False}).visit(definition.node), definition.source)


class AsProgram(ast.NodeTransformer):
    """Takes away what is Python's: the array of a tensor stands for the tensor, `Any` in an
    annotation for a tensor too, or for what follows from the body, and what puts errors into other
    words for the body that they come from.
    """

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        return node.value if node.attr == "_data" else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802
        if getattr(node.returns, "id", "") == "Any":
            node.returns = None
        _tensors_for_any(node.returns)
        return self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.AST]:  # noqa: N802
        self.generic_visit(node)
        raises = all(isinstance(handler.body[-1], ast.Raise) for handler in node.handlers)
        return [*node.body, *node.orelse] if raises and not node.finalbody else node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        _tensors_for_any(node.annotation)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802
        _tensors_for_any(node.annotation)
        return self.generic_visit(node)


def _tensors_for_any(annotation: ast.expr | None) -> None:
    for part in ast.walk(annotation) if annotation is not None else ():
        if isinstance(part, ast.Name) and part.id == "Any":
            part.id = "Tensor"


def signature(op: Op, types: Mapping[str, str] | None = None) -> Definition:
    """The parameters and results that a row's schema declares, as Python writes them; where the
    operator of ATen has others than the function, those of the function.

    types: those of parameters that the row has several for.
    """
    from flambeau.jit.ir.source import Source

    if op.program:
        return _own_signature(op, types or {})
    parameters = [parameter(op, argument, types or {}) for argument in op.schema.arguments]
    results = [f"Optional[{kind[:-1]}]" if kind.endswith("?") else kind
               for kind in op.schema.return_types]  # fmt: skip
    result = results[0] if len(results) == 1 else f"Tuple[{', '.join(results)}]"
    text = f"def {op.public}({', '.join(parameters)}) -> {result}: ..."
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return Definition(node, Source(text, op.module))


def _own_signature(op: Op, types: Mapping[str, str]) -> Definition:
    found = _body(op.body)
    node = copy.deepcopy(found.node)
    node.returns = None
    parameters = node.args.args
    without = len(parameters) - len(node.args.defaults)
    for index, argument in enumerate(parameters):
        if argument.arg not in types:
            continue
        argument.annotation = ast.parse(types[argument.arg], mode="eval").body
        default = node.args.defaults[index - without] if index >= without else None
        if isinstance(default, ast.Constant) and not _fits(default.value, types[argument.arg]):
            # The default fits another choice: here there is none, nor are there any before.
            node.args.defaults = node.args.defaults[index - without + 1 :]
            without = index + 1
    return Definition(node, found.source)


def _fits(default: Any, type: str) -> bool:
    if default is None:
        return type.startswith("Optional")
    return type.removeprefix("Optional[").removesuffix("]") == default.__class__.__name__


def parameter(op: Op, argument: RowArgument, types: Mapping[str, str]) -> str:
    """`kernel_size: BroadcastingList2[int]`."""
    kind = TYPES.get(argument.type, argument.type)
    if argument.is_list and argument.length:
        kind = f"BroadcastingList{argument.length}[{kind}]"
    elif argument.is_list:
        kind = f"List[{kind}]"
    kind = f"Optional[{kind}]" if argument.optional else kind
    name = binder.python_name(op, argument)
    kind = types.get(name, kind)
    default = "" if argument.default is REQUIRED else f" = {argument.default!r}"
    return f"{name}: {kind}{default}"


# ---- flags


class Flagged(SugaredValue):
    """A function whose flags say which results it has: one program for each choice."""

    kind = "boolean dispatch"

    def __init__(self, op: Op, flags: list[str]) -> None:
        self.op = op
        self.flags = flags

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        """Call the program of the flags that are given."""
        names = [argument.name for argument in self.op.schema.arguments]
        chosen = []
        for flag in self.flags:
            given = next((k for k in kwargs if k.name == flag), None)
            if given is None and names.index(flag) < len(args):
                given = args[names.index(flag)]
            if given is not None and _known(given, where):
                chosen.append(flag)
        function = chosen_function(self.op, tuple(chosen))
        return FunctionValue(function).call(graph, where, args, kwargs, n_binders)


def _known(given: Argument, where: SourceRange) -> bool:
    value = given.value
    if isinstance(value, Value):
        if not value.is_constant:
            raise ScriptError("argument for boolean dispatch was not constant", where)
        value = value.constant
    return bool(value)


@cache
def chosen_function(op: Op, chosen: tuple[str, ...]) -> Function:
    """The program of a row for certain flags: its other branches are left out."""
    name = f"_{op.public}"
    if chosen:
        name = f"{op.public}_with_{'_and_'.join(FLAGS[flag] for flag in chosen)}"
    declared = signature(op)
    declared.node.returns = None
    _one_each(declared.node, len(op.schema.return_types) + len(chosen))
    values = {flag: flag in chosen for flag in FLAGS}
    body = _body(op.body)
    node = Decided(values).visit(copy.deepcopy(body.node))
    return _function(op, name, declared, Definition(node, body.source))


def _one_each(node: ast.FunctionDef, count: int) -> None:
    """Let `tuple[Tensor, ...]`, which programs have not, be of as many tensors as there are."""
    for part in ast.walk(node.args):
        if isinstance(part, ast.Tuple) and getattr(part.elts[-1], "value", None) is Ellipsis:
            part.elts = [part.elts[0]] * count


class Decided(ast.NodeTransformer):
    """Works out what follows from constants: names of operators, and which branch is taken."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def visit(self, node: ast.AST) -> Any:
        """Put the value in the place of an expression of constants."""
        if isinstance(node, (ast.Name, ast.Compare, ast.JoinedStr, ast.BinOp, ast.BoolOp,
                             ast.UnaryOp)):  # fmt: skip
            names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
            if names and all(name in self.values for name in names) and not _is_stored(node):
                return ast.copy_location(ast.Constant(self._value(node)), node)
        return super().visit(node)

    def _value(self, node: Any) -> Any:
        return eval(  # noqa: S307 - an expression of our own text
            compile(ast.Expression(node), "<constant>", "eval"), {}, dict(self.values)
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        named = isinstance(node.func, ast.Name) and node.func.id == "getattr"
        name = node.args[1] if named else None
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return node
        found = ast.Attribute(node.args[0], name.value, ast.Load())
        return ast.copy_location(found, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        decides = isinstance(node.op, ast.Or)
        parts = [part for part in node.values if not _is(part, not decides)]
        if any(_is(part, decides) for part in parts) or not parts:
            return ast.copy_location(ast.Constant(decides if parts else not decides), node)
        return parts[0] if len(parts) == 1 else ast.copy_location(ast.BoolOp(node.op, parts), node)

    def visit_If(self, node: ast.If | ast.IfExp) -> Any:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            return node
        return node.body if node.test.value else node.orelse

    visit_IfExp = visit_If  # noqa: N815


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def _is(node: ast.AST, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


# ---- what rows call


@cache
def helper(function: Any) -> Function:
    """A function beside rows that their bodies call."""
    from flambeau.jit.modules.methods import function_from
    from flambeau.jit.modules.names import qualified_name

    return function_from(_body(function), _scope(function), qualified_name(function), PYTHON_UNIT,
                         original=function)  # fmt: skip
