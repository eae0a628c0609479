"""Replaces nodes by simpler ones, looking at one at a time and at what made its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.passes.alias import AliasInfo
from flambeau.jit.passes.dead_code import remove_dead_code
from flambeau.jit.passes.effects import writes_inputs

Rule = Callable[[Node], "Value | Any"]
NOTHING = object()
"""What a rule returns if it does not apply; a Value or a constant replaces the node's result."""


def peephole(graph: Graph) -> None:
    """Apply the rules to all nodes, inner blocks first to last, and leave out what is not needed
    any more.
    """
    simplify(graph)
    remove_dead_code(graph)


def simplify(graph: Graph) -> None:
    """Apply the rules alone."""
    for node in graph.walk():
        if node.kind == "prim::If":
            _choose_by_condition(node)
        rule = RULES.get(node.kind)
        if rule is not None:
            _replace(node, rule(node))
    _index_lists(graph)


def _replace(node: Node, found: Any) -> None:
    if found is NOTHING:
        return
    if not isinstance(found, Value):
        with node.graph.inserting(node):
            found = node.graph.constant(found)
        found.node.source = None
    node.output.replace_by(found)


def is_certain(type: T.Type) -> bool | None:
    """Whether values of a type are None (True), never None (False), or may be (None)."""
    if type == T.NONE:
        return True
    if any(alternative in (T.NONE, T.ANY) for alternative in T.alternatives(type)):
        return None
    return None if isinstance(type, T.VariableType) else False


def _is_none(node: Node, wanted: bool) -> Any:
    """`x is None`, where the types tell."""
    first, second = (is_certain(value.type) for value in node.inputs)
    if first is None or second is None or not (first or second):
        return NOTHING
    return (first and second) == wanted


def _unwrap(node: Node) -> Any:
    (value,) = node.inputs
    return value if is_certain(value.type) is False else NOTHING


def _cast(node: Node) -> Any:
    (value,) = node.inputs
    return value if value.type.is_subtype_of(node.output.type) else NOTHING


def _tuple_element(node: Node) -> Any:
    made, index = node.inputs[0].node, node.inputs[1]
    if made is None or made.kind != "prim::TupleConstruct" or not index.is_constant:
        return NOTHING
    return made.inputs[index.constant]


def _double_negation(node: Node) -> Any:
    made = node.inputs[0].node
    return made.inputs[0] if made is not None and made.kind == "aten::__not__" else NOTHING


def _number_again(node: Node) -> Any:
    """`int(NumToTensor(n))` is `n`, if `n` was of that type."""
    made = node.inputs[0].node
    if made is None or made.kind != "prim::NumToTensor":
        return NOTHING
    return made.inputs[0] if made.inputs[0].type == node.output.type else NOTHING


def _attribute(node: Node) -> Any:
    return None if node.output.type == T.NONE else NOTHING


RULES: dict[str, Rule] = {
    "prim::GetAttr": _attribute,
    "aten::__is__": lambda node: _is_none(node, True),
    "aten::__isnot__": lambda node: _is_none(node, False),
    "aten::_unwrap_optional": _unwrap,
    "prim::unchecked_unwrap_optional": _unwrap,
    "prim::unchecked_cast": _cast,
    "aten::__not__": _double_negation,
    "aten::Int": _number_again,
    "aten::Float": _number_again,
    "aten::IntImplicit": _number_again,
    "aten::FloatImplicit": _number_again,
    "prim::TupleIndex": _tuple_element,
}


def _choose_by_condition(node: Node) -> None:
    """A result that is True in one block and False in the other is the condition."""
    condition = node.inputs[0]
    first, second = node.blocks
    for index, result in enumerate(node.outputs):
        one, other = first.outputs[index], second.outputs[index]
        if not (one.is_constant and other.is_constant and result.type == T.BOOL):
            continue
        if one.constant is True and other.constant is False:
            result.replace_by(condition)


# ---- lists that are only read


def _index_lists(graph: Graph) -> None:
    """`[a, b][1]` is `b` and its length 2, if nobody writes to the list."""
    nodes = [node for node in graph.walk() if node.kind in LIST_RULES and _of_literal(node)]
    if not nodes:
        return
    writes = any(writes_inputs(node) or node.kind.startswith("prim::Call") for node in graph.walk())
    alias = AliasInfo(graph) if writes else None
    for node in nodes:
        if alias is None or not alias.has_writers(node.inputs[0]):
            LIST_RULES[node.kind](node)


def _of_literal(node: Node) -> bool:
    made = node.inputs[0].node
    return made is not None and made.kind == "prim::ListConstruct"


def _list_element(node: Node) -> None:
    values, index = node.inputs[0].node.inputs, node.inputs[1]  # type: ignore[union-attr]
    if index.is_constant and -len(values) <= index.constant < len(values):
        node.output.replace_by(values[index.constant])


def _list_length(node: Node) -> None:
    _replace(node, len(node.inputs[0].node.inputs))  # type: ignore[union-attr]


def _list_unpack(node: Node) -> None:
    values = node.inputs[0].node.inputs  # type: ignore[union-attr]
    if len(values) == len(node.outputs):
        for result, value in zip(node.outputs, values, strict=True):
            result.replace_by(value)


LIST_RULES: dict[str, Callable[[Node], None]] = {
    "aten::__getitem__": _list_element,
    "aten::len": _list_length,
    "prim::ListUnpack": _list_unpack,
}
