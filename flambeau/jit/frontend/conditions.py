"""Conditions: what is known before the program runs, and what holds for variables if they do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from flambeau.jit.frontend.compiler import Compiler, expression
from flambeau.jit.frontend.simple_value import shown
from flambeau.jit.frontend.special_forms import SpecialForm, check_inputs
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Value
from flambeau.jit.ir.source import ScriptError, SourceRange

Types = dict[str, T.Type]


@dataclass(frozen=True)
class Refinements:
    """Types of variables that hold if a condition is true, and if it is false."""

    if_true: Types = field(default_factory=dict)
    if_false: Types = field(default_factory=dict)

    def negated(self) -> Refinements:
        """Those of `not condition`."""
        return Refinements(self.if_false, self.if_true)

    def both(self, other: Refinements) -> Refinements:
        """Those of `a and b`."""
        return Refinements(
            _all(self.if_true, other.if_true), _common(self.if_false, other.if_false)
        )

    def either(self, other: Refinements) -> Refinements:
        """Those of `a or b`."""
        return self.negated().both(other.negated()).negated()


def _all(one: Types, other: Types) -> Types:
    """What either says, but for variables of which they say different things."""
    found = {name: t for name, t in one.items() if other.get(name, t) == t}
    return found | {name: t for name, t in other.items() if name not in one}


def _common(one: Types, other: Types) -> Types:
    return {name: type for name, type in one.items() if other.get(name) == type}


@dataclass(frozen=True)
class Condition:
    """A condition. static: its value, if that is known now."""

    value: Value
    refinements: Refinements = Refinements()
    static: bool | None = None


def condition(c: Compiler, node: ast.expr) -> Condition:
    """Compile an expression as a condition."""
    if isinstance(node, ast.BoolOp):
        return _chain(c, node.values, isinstance(node.op, ast.Or), c.place(node))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(c, node.operand)
        value = c.builtin("aten::__not__", c.place(node), inner.value)
        static = None if inner.static is None else not inner.static
        return Condition(value, inner.refinements.negated(), static)
    if isinstance(node, ast.Compare):
        if len(node.ops) > 1:
            return _chain(c, _pairs(node), False, c.place(node))
        operator = node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return _identity(c, node, isinstance(operator, ast.Is))
        if isinstance(operator, ast.NotIn):
            inner = condition(c, _compared(node.left, ast.In(), node.comparators[0]))
            value = c.builtin("aten::__not__", c.place(node), inner.value)
            return Condition(value, inner.refinements.negated())
    if isinstance(node, ast.Call):
        found = _type_question(c, node)
        if found is not None:
            return found
    return _truth(c, node)


def _pairs(node: ast.Compare) -> list[ast.expr]:
    """`a < b < c` is `a < b and b < c`, and b is computed twice."""
    operands = [node.left, *node.comparators]
    return [_compared(*parts) for parts in zip(operands[:-1], node.ops, operands[1:], strict=True)]


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Compare(left, [operator], [right]), left)


def _truth(c: Compiler, node: ast.expr) -> Condition:
    value = as_bool(c, c.place(node), c.value(node))
    kind = value.node.kind if value.node is not None else ""
    static: bool | None = None
    if kind == "aten::is_scripting":
        static = True
    elif value.is_constant:
        static = bool(value.constant)
    return Condition(value, static=static)


def as_bool(c: Compiler, where: SourceRange, value: Value) -> Value:
    """The truth of a value."""
    from flambeau.jit.operators.matching import Argument

    message = f"Could not cast value of type {shown(value.type)} to bool"
    try:
        meaning = c.environment.get("bool", where)
        found = meaning.call(c.graph, where, [Argument(value, where)], [], 0)
    except ScriptError:
        raise ScriptError(message, where) from None
    result = found.as_value(c.graph, where)
    if result.type != T.BOOL:
        raise ScriptError(
            f"expected a bool expression for condition but found {shown(result.type)}", where
        )
    return result


# ---- and, or, ?:


@expression(ast.BoolOp)
def _bool_op(c: Compiler, node: ast.BoolOp, wanted: T.Type | None) -> Value:
    return condition(c, node).value


def _chain(c: Compiler, nodes: list[ast.expr], is_or: bool, where: SourceRange) -> Condition:
    """`a and b and c` is `(a and b) and c`: the right side in the branch where it counts."""
    if len(nodes) == 1:
        return condition(c, nodes[0])
    where = c.places.over(nodes)
    left = _chain(c, nodes[:-1], is_or, where)
    right: list[Condition] = []

    def known() -> Value:
        return c.constant(is_or, where)

    def rest() -> Value:
        right.append(condition(c, nodes[-1]))
        return right[0].value

    value = choose(c, where, left, known if is_or else rest, rest if is_or else known)
    if is_or:
        refinements = left.refinements.either(right[0].refinements)
    else:
        refinements = left.refinements.both(right[0].refinements)
    return Condition(value, refinements, _static(left.static, right[0].static, is_or))


def _static(left: bool | None, right: bool | None, is_or: bool) -> bool | None:
    if is_or in (left, right):
        return is_or
    return None if left is None or right is None else not is_or


@expression(ast.IfExp)
def _ternary(c: Compiler, node: ast.IfExp, wanted: T.Type | None) -> SugaredValue | Value:
    found = condition(c, node.test)
    if found.static is not None:
        known = found.refinements if found.static else found.refinements.negated()
        refine(c, c.place(node), known.if_true)
        return c.value(node.body if found.static else node.orelse, wanted)
    return choose(
        c,
        c.place(node),
        found,
        lambda: c.value(node.body, wanted),
        lambda: c.value(node.orelse, wanted),
    )


def choose(c: Compiler, where: SourceRange, test: Condition, if_true: Callable[[], Value],
           if_false: Callable[[], Value]) -> Value:  # fmt: skip
    """One of two values."""
    node = c.insert("prim::If", (test.value,), (), where)
    branches = ((test.refinements.if_true, if_true), (test.refinements.if_false, if_false))
    for types, emit in branches:
        block = node.add_block()
        with block_of(c, block):
            refine(c, where, types)
            block.add_output(emit())
    one, other = (block.outputs[0].type for block in node.blocks)
    unified = T.unify(one, other)
    if unified is None:
        raise ScriptError(
            f"if-expression's true branch has type {shown(one)} but false branch has type "
            f"{shown(other)}", where
        )  # fmt: skip
    return node.add_output(unified)


class block_of:  # noqa: N801
    """The region in which a block is compiled."""

    def __init__(self, c: Compiler, block: Block) -> None:
        self.c = c
        self.block = block
        self.inserting = c.graph.inserting(block)

    def __enter__(self) -> None:
        self.c.environment.push(self.block)
        self.inserting.__enter__()

    def __exit__(self, *exception: object) -> None:
        self.inserting.__exit__(None, None, None)
        self.frame = self.c.environment.pop()


def refine(c: Compiler, where: SourceRange, types: Types) -> None:
    """Let variables have the types that a condition says."""
    for name, type in types.items():
        value = c.environment.value(name, where)
        c.environment.set(name, where, c.cast(value, type))


# ---- is None


def _identity(c: Compiler, node: ast.Compare, is_is: bool) -> Condition:
    sides = (node.left, node.comparators[0])
    where = c.place(node)
    values = [c.value(side) for side in sides]
    left, right = (_can_be_none(value.type) for value in values)
    if left is True and right is True:
        return Condition(c.constant(is_is, where), static=is_is)
    if {left, right} == {True, False}:
        return Condition(c.constant(not is_is, where), static=not is_is)
    kind = "aten::__is__" if is_is else "aten::__isnot__"
    value = c.builtin(kind, where, *values)
    return Condition(value, _none_refinements(sides, values, is_is))


def _can_be_none(type: T.Type) -> bool | None:
    """True: it is always None; False: never; None: it may be."""
    if type == T.NONE:
        return True
    if isinstance(type, T.OptionalType) or (isinstance(type, T.UnionType) and T.NONE in type.parts):
        return None
    return False if type != T.ANY else None


def _none_refinements(sides: tuple[ast.expr, ast.expr], values: list[Value],
                      is_is: bool) -> Refinements:  # fmt: skip
    """`x is None`: x is None if true, and not None if false."""
    for side, value, other in zip(sides, values, reversed(values), strict=True):
        if not isinstance(side, ast.Name) or other.type != T.NONE:
            continue
        rest = [type for type in T.alternatives(value.type) if type != T.NONE]
        if len(rest) == len(T.alternatives(value.type)):
            continue
        refinements = Refinements({}, {side.id: T.union(rest)})
        return refinements if is_is else refinements.negated()
    return Refinements()


# ---- isinstance, hasattr


def _type_question(c: Compiler, node: ast.Call) -> Condition | None:
    """`isinstance(x, T)` and `hasattr(x, "name")`, if the call is one."""
    meaning = c.sugared(node.func)
    if not isinstance(meaning, SpecialForm):
        return None
    if meaning.form == "isinstance":
        check_inputs(c, node, 2, 2)
        return _isinstance(c, node.args[0], node.args[1])
    if meaning.form == "hasattr":
        check_inputs(c, node, 2, 2)
        return _hasattr(c, node.args[0], node.args[1])
    return None


def _hasattr(c: Compiler, target: ast.expr, name: ast.expr) -> Condition:
    where = c.place(target)
    meaning = c.sugared(target)
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        raise ScriptError("hasattr's second argument must be a string literal", c.place(name))
    found = meaning.has_attr(c.graph, where, name.value)
    return Condition(c.constant(found, where), static=found)


def _isinstance(c: Compiler, target: ast.expr, classes: ast.expr) -> Condition:
    value = c.value(target)
    asked = _flat([_type_asked_for(c, node) for node in _type_nodes(classes)])
    inside, outside, certain = _split(_flat([value.type]), asked)
    where = c.place(target)
    refinements = Refinements()
    if isinstance(target, ast.Name):
        refinements = Refinements(
            {target.id: T.union(inside)} if inside else {},
            {target.id: T.union(outside)} if outside else {},
        )
    if not inside:
        return Condition(c.constant(False, where), refinements, False)
    if certain:
        return Condition(c.constant(True, where), refinements, True)
    node = c.graph.insert("prim::isinstance", (value,), (T.BOOL,))
    node.attributes["types"] = asked
    return Condition(node.output, refinements)


BARE = {"list": T.ANY_LIST, "tuple": T.ANY_TUPLE}


def _type_asked_for(c: Compiler, node: ast.expr) -> T.Type:
    """A type; `list` and `tuple` may stand without their elements here."""
    bare = BARE.get(node.id) if isinstance(node, ast.Name) else None
    return c.type_of(node) if bare is None else bare


def _type_nodes(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple):
        return [inner for element in node.elts for inner in _type_nodes(element)]
    return [node]


def _flat(types: list[T.Type]) -> list[T.Type]:
    """The members of unions and optionals, in the order of unions."""
    united = T.union(types)
    members = (T.NUMBER,) if united == T.NUMBER else T.alternatives(united)
    return sorted(members, key=T.union_rank)


def _split(types: list[T.Type], asked: list[T.Type]) -> tuple[list[T.Type], list[T.Type], bool]:
    """The types that a value may have if it is an instance, and if it is not; and whether it is
    certainly one.
    """
    inside: list[T.Type] = []
    outside: list[T.Type] = []
    certain = True
    for type in types:
        if type == T.ANY:
            inside += asked
            outside.append(T.ANY)
            certain = certain and inside == [T.ANY]
            break
        found = _narrower(type, asked)
        if found is None:
            outside.append(type)
            certain = False
        else:
            inside.append(found)
            if not type.is_subtype_of(found):
                outside.append(type)
                certain = False
    return inside, outside, certain


def _narrower(type: T.Type, asked: list[T.Type]) -> T.Type | None:
    for one in asked:
        if type.is_subtype_of(one):
            return type
    for one in asked:
        if one.is_subtype_of(type):
            return one
    return None
