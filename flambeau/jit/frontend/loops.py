"""`for`, `while`, and comprehensions.

A loop is a node with two blocks until `ssa.py` has seen it: the body, and the condition, which is
put where it is needed later.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from flambeau.jit.frontend.compiler import MAX_TRIPS, Compiler, expression, statement
from flambeau.jit.frontend.conditions import block_of, condition
from flambeau.jit.frontend.simple_value import SimpleValue, shown
from flambeau.jit.frontend.special_forms import SpecialForm, check_inputs, form
from flambeau.jit.frontend.statements import assign
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.matching import Argument, emit_builtin

Emit = Callable[[], None]


@statement(ast.While)
def _while(c: Compiler, node: ast.While) -> None:
    where = c.place(node)
    loop = c.insert("prim::Loop", (c.number(MAX_TRIPS, where),), (), where)
    body, test = loop.add_block(), loop.add_block()
    with block_of(c, test):
        test.add_output(condition(c, node.test).value)
    body.add_input(T.INT)
    with block_of(c, body):
        _in_loop(c, "loop", lambda: c.statements(node.body))


def _in_loop(c: Compiler, status: str, emit: Emit) -> None:
    saved, c.loop = c.loop, status
    try:
        emit()
    finally:
        c.loop = saved


@statement(ast.For)
def _for(c: Compiler, node: ast.For) -> None:
    where = c.place(node)
    each(c, node.target, c.sugared(node.iter), where, lambda: c.statements(node.body))


def each(c: Compiler, target: ast.expr, source: SugaredValue, where: SourceRange, emit: Emit
         ) -> None:  # fmt: skip
    """Compile a body for each element of something."""
    iterated = source.iterate(c.graph, where)
    if iterated.unrolled:
        _unrolled(c, target, iterated, where, emit)
        return
    loop_trips = iterated.length(c.graph, where)
    loop = c.insert("prim::Loop", (), (), where)
    body, test = loop.add_block(), loop.add_block()
    with c.graph.inserting(loop):
        test.add_output(c.constant(True, where))
    loop.add_input(loop_trips)
    index = body.add_input(T.INT)
    with block_of(c, body):
        element = iterated.getitem(c.graph, where, index).as_value(c.graph, where)
        assign(c, target, SimpleValue(element), where)
        _in_loop(c, "loop", emit)


def _unrolled(c: Compiler, target: ast.expr, iterated: SugaredValue, where: SourceRange, emit: Emit
              ) -> None:  # fmt: skip
    count = iterated.static_length()
    assert count is not None
    for number in range(count):
        index = c.number(number, where)
        assign(c, target, iterated.getitem(c.graph, where, index), c.place(target))
        _in_loop(c, "unrolled", emit)


# ---- break and continue


@statement(ast.Break, ast.Continue)
def _leave(c: Compiler, node: ast.Break | ast.Continue) -> None:
    where = c.place(node)
    name = "break" if isinstance(node, ast.Break) else "continue"
    if c.loop == "unrolled":
        raise ScriptError(
            "Because we emit iteration over Modulelists or Tuples as unrolled loops, we do not "
            "support break or continue inside the body of these loops", where
        )  # fmt: skip
    if c.loop == "":
        raise ScriptError(f"SyntaxError: '{name}' outside loop", where)
    c.insert(f"prim::{name.capitalize()}Stmt", (), (), where)


# ---- comprehensions


@expression(ast.ListComp, ast.GeneratorExp)
def _list_comprehension(c: Compiler, node: ast.ListComp, wanted: T.Type | None) -> Value:
    generator = node.generators[0]
    return comprehension(
        c, node.elt, generator.target, lambda: c.sugared(generator.iter), c.place(node), wanted
    )


def comprehension(c: Compiler, element: ast.expr, target: ast.expr,
                  source: Callable[[], SugaredValue], where: SourceRange, wanted: T.Type | None
                  ) -> Value:  # fmt: skip
    """`[element for target in source]`."""
    from flambeau.jit.frontend.expressions import literal_hint

    hint = literal_hint(wanted, T.ListType, "List", where)
    made = c.list_of((), hint.element if isinstance(hint, T.ListType) else T.TENSOR)
    state = {"typed": hint is not None}

    def emit() -> None:
        inner = hint.element if isinstance(hint, T.ListType) else None
        value = c.value(element, inner)
        if not state["typed"]:
            made.type, state["typed"] = T.ListType(value.type), True
        _check_element(made, value, where)
        emit_builtin(c.graph, where, "aten::append", [Argument(value, where)], [],
                     Argument(made, where))  # fmt: skip

    _in_scope(c, where, lambda: each(c, target, source(), where, emit))
    return made


def _in_scope(c: Compiler, where: SourceRange, emit: Emit) -> None:
    """Compile in a scope whose variables nobody else sees."""
    scope = c.insert("prim::ComprehensionScope", (), (), where)
    with block_of(c, scope.add_block()):
        emit()


def _check_element(made: Value, value: Value, where: SourceRange) -> None:
    type = made.type
    assert isinstance(type, T.ListType)
    if value.type.is_subtype_of(type.element):
        return
    unified = T.unify(type.element, value.type)
    if unified is None:
        raise ScriptError(
            f"List type annotation `{shown(type)}` did not match the types of the given list "
            f"elements, which were {shown(value.type)}", where
        )  # fmt: skip
    made.type = T.ListType(unified)


@expression(ast.DictComp)
def _dict_comprehension(c: Compiler, node: ast.DictComp, wanted: T.Type | None) -> Value:
    generator = node.generators[0]
    pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
    return dict_comprehension(
        c, pair, generator.target, lambda: c.sugared(generator.iter), c.place(node), wanted
    )


def dict_comprehension(c: Compiler, pair: ast.Tuple, target: ast.expr,
                       source: Callable[[], SugaredValue], where: SourceRange,
                       wanted: T.Type | None) -> Value:  # fmt: skip
    """`{key: value for target in source}`."""
    from flambeau.jit.frontend.expressions import literal_hint

    hint = literal_hint(wanted, T.DictType, "Dict", where)
    type = hint or T.DictType(T.STRING, T.TENSOR)
    made = c.insert("prim::DictConstruct", (), (type,), None).output
    state = {"typed": hint is not None}

    def emit() -> None:
        key, value = (c.value(part) for part in pair.elts)
        if not state["typed"]:
            made.type, state["typed"] = T.DictType(key.type, value.type), True
        c.builtin("aten::_set_item", where, made, key, value)

    _in_scope(c, where, lambda: each(c, target, source(), where, emit))
    return made


def is_list_or_text(type: T.Type) -> bool:
    """What `list` copies at once."""
    return isinstance(type, T.ListType) or type == T.STRING


@form("list")
def _list(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    """`list(x)` is `[element for element in x]`."""
    where = c.place(node)
    if not node.args:
        type = wanted if isinstance(wanted, T.ListType) else T.ListType(T.TENSOR)
        return c.list_of((), type.element)
    check_inputs(c, node, 1, 1)
    source = c.sugared(node.args[0])
    if isinstance(source, SimpleValue) and is_list_or_text(source.type):
        return c.builtin("aten::list", where, source.value)
    name = ast.copy_location(ast.Name(c.temporary("$_elem"), ast.Load()), node)
    return comprehension(c, name, name, lambda: source, where, wanted)
