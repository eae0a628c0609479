"""Statements: assignments, `if`, `return`, `raise`, `assert`, `del`, `with`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache

from flambeau.jit.frontend.compiler import Compiler, statement
from flambeau.jit.frontend.conditions import Condition, block_of, condition, refine
from flambeau.jit.frontend.environment import Frame, convert_at
from flambeau.jit.frontend.indexing import OPTIONAL_TENSOR, index_nodes, view_of
from flambeau.jit.frontend.simple_value import BuiltinFunction, shown
from flambeau.jit.frontend.special_forms import ExceptionClass, Magic, RaisedException
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.ir.graph import Block, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators import table
from flambeau.jit.operators.matching import Argument, emit_builtin


@statement(ast.Pass)
def _pass(c: Compiler, node: ast.Pass) -> None:
    """Nothing to do."""


@statement(ast.Expr)
def _expression(c: Compiler, node: ast.Expr) -> None:
    c.sugared(node.value)


# ---- assignment


@statement(ast.Assign)
def _assign(c: Compiler, node: ast.Assign) -> None:
    if len(node.targets) == 1:
        _assign_expression(c, node.targets[0], node.value, c.place(node))
        return
    where = c.place(node.value)
    name = ast.copy_location(ast.Name(c.temporary("$tmp_assign_"), ast.Load()), node.value)
    c.environment.set(name.id, where, c.sugared(node.value))
    for target in node.targets:
        _assign_expression(c, target, name, c.place(node))


def _assign_expression(c: Compiler, target: ast.expr, node: ast.expr, where: SourceRange) -> None:
    """`target = expression`."""
    if isinstance(target, ast.Attribute):
        owner = c.sugared(target.value)
        value = c.sugared(node).as_value(c.graph, c.place(node))
        owner.set_attr(c.graph, where, target.attr, value)
    elif isinstance(target, ast.Subscript):
        _assign_element(c, target, node, where)
    else:
        assign(c, target, c.sugared(node), c.place(node))


def assign(c: Compiler, target: ast.expr, meaning: SugaredValue, where: SourceRange) -> None:
    """Assign what an expression at `where` means to a variable, a tuple of them, …"""
    if isinstance(target, ast.Name):
        c.environment.set(target.id, c.place(target), meaning)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _assign_tuple(c, target, meaning, where)
    elif isinstance(target, ast.Attribute):
        owner = c.sugared(target.value)
        owner.set_attr(c.graph, where, target.attr, meaning.as_value(c.graph, where))
    elif isinstance(target, ast.Subscript):
        _assign_element(c, target, meaning.as_value(c.graph, where), where)
    else:
        raise ScriptError("unexpected expression on left-hand side of assignment", c.place(target))


def _assign_tuple(c: Compiler, target: ast.Tuple | ast.List, meaning: SugaredValue,
                  where: SourceRange) -> None:  # fmt: skip
    targets = target.elts
    starred = [i for i, node in enumerate(targets) if isinstance(node, ast.Starred)]
    if len(starred) > 1:
        raise ScriptError("Only one starred expression is allowed on the lhs", c.place(target))
    needed = len(targets) - len(starred)
    values = meaning.as_tuple(c.graph, where, None if starred else needed)
    least = "at least " if starred else ""
    if len(values) < needed:
        raise ScriptError(
            f"need {least}{needed} values to unpack but found only {len(values)}", c.place(target)
        )
    if len(values) > needed and not starred:
        raise ScriptError(
            f"too many values to unpack: need {needed} but found {len(values)}", c.place(target)
        )
    position = 0
    for node in targets:
        if isinstance(node, ast.Starred):
            count = len(values) - needed
            _pack(c, node, values[position : position + count])
            position += count
        else:
            assign(c, node, values[position], where)
            position += 1


def _pack(c: Compiler, node: ast.Starred, values: Sequence[SugaredValue]) -> None:
    if not isinstance(node.value, ast.Name):
        raise ScriptError("Cannot pack a tuple into a non-variable", c.place(node))
    where = c.place(node)
    packed = c.tuple_of([value.as_value(c.graph, where) for value in values])
    c.environment.set(node.value.id, c.place(node.value), packed)


@statement(ast.AnnAssign)
def _annotated(c: Compiler, node: ast.AnnAssign) -> None:
    assert node.value is not None
    type = c.type_of(node.annotation)
    if isinstance(node.target, ast.Attribute):
        owner = c.sugared(node.target.value)
        value = c.sugared(node.value, type).as_value(c.graph, c.place(node.value))
        owner.set_attr(c.graph, c.place(node), node.target.attr, value)
        return
    if not isinstance(node.target, ast.Name):
        _assign_expression(c, node.target, node.value, c.place(node))
        return
    meaning = c.sugared(node.value, type)
    from flambeau.jit.frontend.simple_value import SimpleValue

    if isinstance(meaning, SimpleValue):
        converted = convert_at(c.graph, c.place(node.target), type, meaning.value)
        meaning = SimpleValue(converted)
    c.environment.set(node.target.id, c.place(node.target), meaning, type)


def _assign_element(c: Compiler, target: ast.Subscript, node: ast.expr | Value, where: SourceRange
                    ) -> None:  # fmt: skip
    """`x[i] = value`."""
    if isinstance(node, Value):
        right = Argument(node, where)
    else:
        right = Argument(c.value(node), c.place(node))
    place = c.place(target)
    base = c.value(target.value)
    indices = index_nodes(target)
    if base.type == T.TENSOR:
        viewed, tensors = view_of(c, place, base, indices)
        value = _as_tensor(c, right, viewed)
        if not tensors:
            c.builtin("aten::copy_", where, viewed, value)
        else:
            c.builtin("aten::index_put_", where, viewed, c.list_of(tensors, OPTIONAL_TENSOR), value)
        return
    if len(indices) != 1 or isinstance(indices[0], ast.Slice):
        raise ScriptError(
            "Sliced expression not yet supported for subscripted assignment. "
            "File a bug if you want this", SourceRange(place.source, place.start, place.end - 1)
        )  # fmt: skip
    if isinstance(base.type, T.TupleType):
        raise ScriptError(f"{shown(base.type)} does not support subscripted assignment", place)
    key = Argument(c.value(indices[0]), place)
    called = Magic("__setitem__", BuiltinFunction("aten::_set_item"))
    called.call(c.graph, where, [Argument(base, place), key, right], [], 0)


def _as_tensor(c: Compiler, given: Argument, like: Value) -> Argument:
    """A number as a tensor of the type and on the device of another one."""
    value = given.value
    if value.type not in (T.INT, T.FLOAT, T.BOOL, T.COMPLEX, T.NUMBER):
        return given
    dtype = emit_builtin(c.graph, None, "prim::dtype", [like])
    device = emit_builtin(c.graph, None, "prim::device", [like])
    keywords = [Argument(dtype, None, "dtype"), Argument(device, None, "device")]
    return Argument(emit_builtin(c.graph, None, "aten::tensor", [given], keywords), given.where)


@statement(ast.Delete)
def _delete(c: Compiler, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            c.environment.remove(target.id, c.place(target))
            continue
        if not isinstance(target, ast.Subscript):
            raise ScriptError("del is only supported for indexed data structures", c.place(node))
        indices = index_nodes(target)
        if isinstance(indices[0], ast.Slice):
            raise ScriptError(
                "del statements only support deletion at a single index, slicing is not supported "
                "(see https://github.com/pytorch/pytorch/issues/31430)", c.place(target)
            )  # fmt: skip
        if len(indices) != 1:
            raise ScriptError(
                "Sliced expression not yet supported for subscripted list/dict deletion. File a "
                "bug if you want this", c.place(target)
            )  # fmt: skip
        base = Argument(c.value(target.value), c.place(target))
        key = Argument(c.value(indices[0]), c.place(target))
        called = Magic("__delitem__", BuiltinFunction("aten::Delete"))
        called.call(c.graph, c.place(target), [base, key], [], 0)


# ---- leaving


@statement(ast.Return)
def _return(c: Compiler, node: ast.Return) -> None:
    where = c.place(node)
    if node.value is None:
        value = c.constant(None, where)
    else:
        value = c.value(node.value, c.declared)
    emit_return(c, value, where)


def emit_return(c: Compiler, value: Value, where: SourceRange) -> None:
    """Return a value, as one of the type that all results have in common."""
    declared = c.declared
    if declared is not None:
        value = convert_at(c.graph, where, declared, value)
        if not value.type.is_subtype_of(declared):
            raise ScriptError(
                f"Return value was annotated as having type {shown(declared)} but is actually of "
                f"type {shown(value.type)}", where
            )  # fmt: skip
    else:
        known = c.returned or value.type
        declared = T.unify(known, value.type)
        if declared is None:
            raise ScriptError(
                f"Previous return statement returned a value of type {shown(known)} but this "
                f"return statement returns a value of type {shown(value.type)}", where
            )  # fmt: skip
    c.returned = declared
    if declared == T.ANY and value.type != T.ANY:
        value = c.cast(value, T.ANY)
    c.insert("prim::ReturnStmt", (value,), (), None)
    c.exits.add(c.block)


@statement(ast.Raise)
def _raise(c: Compiler, node: ast.Raise) -> None:
    assert node.exc is not None
    _emit_raise(c, c.sugared(node.exc), c.place(node))


@cache
def _raise_schema() -> FunctionSchema:
    return table.schema("prim::RaiseException(str msg, str? cls=None) -> ()")


def _emit_raise(c: Compiler, raised: SugaredValue, where: SourceRange) -> None:
    if isinstance(raised, RaisedException):
        message, name = raised.message, raised.name
    elif isinstance(raised, ExceptionClass):
        message, name = c.constant("", where), None
    else:
        raise ScriptError("exceptions must derive from BaseException", where)
    if message.type != T.STRING:
        message = emit_builtin(c.graph, None, "aten::str", [message])
    name = name or c.constant(None, None, T.NONE)
    c.insert("prim::RaiseException", (message, name), (), where).schema = _raise_schema()
    c.exits.add(c.block)


@statement(ast.Assert)
def _assert(c: Compiler, node: ast.Assert) -> None:
    found = condition(c, node.test)
    where = c.place(node)

    def fail() -> None:
        message = c.constant("", where) if node.msg is None else c.value(node.msg)
        raised = ExceptionClass().call(c.graph, where, [Argument(message, where)], [])
        _emit_raise(c, raised, where)

    _branches(c, found, where, lambda: None, fail)


# ---- if


@statement(ast.If)
def _if(c: Compiler, node: ast.If) -> None:
    found = condition(c, node.test)
    _branches(
        c, found, c.place(node), lambda: c.statements(node.body), lambda: c.statements(node.orelse)
    )


def _branches(c: Compiler, test: Condition, where: SourceRange, if_true: object, if_false: object
              ) -> None:  # fmt: skip
    """Compile one branch if the condition is known now, both otherwise."""
    refinements = (test.refinements.if_true, test.refinements.if_false)
    emitters = (if_true, if_false)
    if test.static is not None:
        chosen = 0 if test.static else 1
        refine(c, where, refinements[chosen])
        emitters[chosen]()  # type: ignore[operator]
        return
    node = c.insert("prim::If", (test.value,), (), where)
    blocks = [node.add_block(), node.add_block()]
    frames = []
    for block, types, emit in zip(blocks, refinements, emitters, strict=True):
        region = block_of(c, block)
        with region:
            refine(c, where, types)
            emit()  # type: ignore[operator]
        frames.append(region.frame)
    exits = [block in c.exits for block in blocks]
    if all(exits):
        c.exits.add(c.block)
        return
    _join(c, where, blocks, frames, exits)


def _join(c: Compiler, where: SourceRange, blocks: list[Block], frames: list[Frame],
          exits: list[bool]) -> None:  # fmt: skip
    """Let the variables that both branches define, or the one that is not left, be used behind."""
    defined: set[str] = set()
    for side, name_of_other in ((0, "false"), (1, "true")):
        for name in frames[side].types:
            if frames[1 - side].has(name) or exits[1 - side]:
                defined.add(name)
            else:
                reason = f"{name} is not defined in the {name_of_other} branch"
                c.environment.frame.errors[name] = (reason, where)
    for name in sorted(defined):
        _join_variable(c, where, name, blocks, frames, exits)


def _join_variable(c: Compiler, where: SourceRange, name: str, blocks: list[Block],
                   frames: list[Frame], exits: list[bool]) -> None:  # fmt: skip
    types = [frame.type_of(name) for frame in frames]
    for side in (0, 1):
        if exits[side]:
            types[side] = types[1 - side]
            with c.graph.inserting(blocks[side]):
                left = c.insert("prim::Uninitialized", (), (types[side] or T.TENSOR,), None).output
                c.insert("prim::Store", (left,), (), None, name=name)
            continue
        if types[side] is None:
            with c.graph.inserting(blocks[side]):
                found = c.environment.find(name, where, frames[side])
                assert found is not None
                types[side] = found.as_value(c.graph, where).type
    one, other = types
    assert one is not None and other is not None
    known = c.environment.frame.type_of(name)
    unified = T.unify(one, other)
    if unified is None and isinstance(known, T.UnionType):
        unified = T.unify(one, other, known)
    if unified is not None:
        c.environment.frame.types[name] = unified
        c.environment.frame.sugared.pop(name, None)
        return
    reason = (
        f"Type mismatch: {name} is set to type {shown(one)} in the true branch and type "
        f"{shown(other)} in the false branch"
    )
    if c.environment.frame.has(name):
        raise ScriptError(reason, where)
    c.environment.frame.errors[name] = (reason, where)
