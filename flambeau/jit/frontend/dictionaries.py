"""Dictionaries: literals and `dict(…)`."""

from __future__ import annotations

import ast
from typing import Any

from flambeau.jit.frontend.compiler import Compiler
from flambeau.jit.frontend.expressions import common_type, hinted, literal_hint
from flambeau.jit.frontend.loops import dict_comprehension
from flambeau.jit.frontend.simple_value import SimpleValue, shown
from flambeau.jit.frontend.special_forms import SpecialForm, form
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.source import ScriptError, SourceRange


def dict_literal(c: Compiler, node: ast.Dict, wanted: T.Type | None) -> Value:
    """`{k: v, …}`."""
    nodes = [key for key in node.keys if key is not None]
    keys = c.values(nodes)
    values = c.values(node.values)
    if not isinstance(literal_hint(wanted, T.DictType, "Dict", c.place(node)), T.DictType):
        for key, key_node in zip(keys, nodes, strict=True):
            if key.type != keys[0].type:
                raise ScriptError(
                    "Dict keys must contain only a single type. Expected: "
                    f"{shown(keys[0].type)} but found {shown(key.type)} instead",
                    c.place(key_node),
                )
    return make_dict(c, keys, values, wanted, c.place(node))


def make_dict(c: Compiler, keys: list[Value], values: list[Value], wanted: T.Type | None,
              where: SourceRange) -> Value:  # fmt: skip
    """A dictionary of keys and values."""
    type = literal_hint(wanted, T.DictType, "Dict", where)
    if not isinstance(type, T.DictType):
        type = T.DictType(T.STRING, T.TENSOR)
        if keys:
            type = T.DictType(keys[0].type, common_type(values))
    elif keys:
        _check(keys, type, type.key, "keys", where)
        _check(values, type, type.value, "values", where)
    inputs = [part for pair in zip(keys, values, strict=True) for part in pair]
    return hinted(c, c.insert("prim::DictConstruct", inputs, (type,), None).output, wanted)


def _check(values: list[Value], type: T.Type, wanted: T.Type, what: str, where: SourceRange
           ) -> None:  # fmt: skip
    for value in values:
        if not value.type.is_subtype_of(wanted):
            raise ScriptError(
                f"Type annotation was inferred to be `{shown(type)}`, but the type of {what} "
                f"given by the dict literal is {shown(value.type)}", where
            )  # fmt: skip


@form("dict")
def _dict(c: Compiler, node: ast.Call, it: SpecialForm, wanted: T.Type | None) -> Value:
    """`dict()`, `dict(a=1)`, `dict(pairs)`, `dict({…})`."""
    where = c.place(node)
    names = [ast.copy_location(ast.Constant(k.arg), k.value) for k in node.keywords]
    if not node.args and not names:
        return make_dict(c, [], [], wanted, where)
    if len(node.args) > 1:
        raise ScriptError(f"dict expected at most 1 argument, got {len(node.args)}", where)
    if not node.args:
        values = [k.value for k in node.keywords]
        pairs = [
            _placed(ast.Tuple([*p], ast.Load()), p[1]) for p in zip(names, values, strict=True)
        ]
        return _of_pairs(c, node, c.sugared(_placed(ast.List(pairs, ast.Load()), node)), wanted)
    source = c.sugared(node.args[0], wanted)
    if isinstance(source, SimpleValue) and isinstance(source.type, T.DictType):
        made = c.builtin("aten::dict", where, source.value)
    else:
        made = _of_pairs(c, node, source, wanted)
    for name, keyword in zip(names, node.keywords, strict=True):
        place = c.place(keyword.value)
        c.builtin("aten::_set_item", place, made, c.value(name), c.value(keyword.value))
    return made


def _of_pairs(c: Compiler, node: ast.Call, pairs: SugaredValue, wanted: T.Type | None) -> Value:
    """`{key: value for key, value in pairs}`."""
    names = [_placed(ast.Name(c.temporary("$_item"), ast.Load()), node) for _ in range(2)]
    pair = _placed(ast.Tuple(names, ast.Load()), node)
    return dict_comprehension(c, pair, pair, lambda: pairs, c.place(node), wanted)


def _placed(node: Any, like: ast.AST) -> Any:
    return ast.copy_location(node, like)
