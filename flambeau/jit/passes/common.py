"""Computes once what is computed several times."""

from __future__ import annotations

from typing import Any

from flambeau.jit.ir.graph import Block, Graph, Node
from flambeau.jit.passes.alias import AliasInfo
from flambeau.jit.passes.constants import constant_key
from flambeau.jit.passes.effects import has_side_effects, is_mutable, is_random, writes_inputs

NEVER_SHARED = frozenset(("prim::CreateObject", "prim::Uninitialized", "prim::fork", "aten::wait"))


def eliminate_common(graph: Graph) -> None:
    """Replace a node by an earlier one of the same kind, inputs and attributes, if both may be the
    same object: neither random nor with side effects, and nothing writes to what they use or give.
    """
    writes = any(writes_inputs(node) or has_side_effects(node) for node in graph.walk())
    _Search(AliasInfo(graph) if writes else None).block(graph.block, {})


class _Search:
    def __init__(self, alias: AliasInfo | None) -> None:
        self.alias = alias

    def block(self, block: Block, known: dict[Any, Node]) -> None:
        known = dict(known)  # what an inner block computes is not known outside of it
        for node in block:
            for inner in node.blocks:
                self.block(inner, known)
            if node.blocks or not self.may_share(node):
                continue
            key = _key(node)
            earlier = known.setdefault(key, node)
            if earlier is not node and self.may_be_one(node, earlier):
                for result, value in zip(node.outputs, earlier.outputs, strict=True):
                    result.replace_by(value)
                node.destroy()

    def may_share(self, node: Node) -> bool:
        if node.kind in NEVER_SHARED or has_side_effects(node) or is_random(node):
            return False
        values = (*node.inputs, *node.outputs)
        return self.alias is None or not any(self.alias.has_writers(v, deep=True) for v in values)

    def may_be_one(self, node: Node, earlier: Node) -> bool:
        """Whether the program cannot tell two results from one: a new mutable result that leaves
        the graph twice would be one object.
        """
        if self.alias is None:
            outside = _leaves(node) and _leaves(earlier)
            return not outside
        return not any(
            is_mutable(v.type) and self.alias.is_known_outside(v) and node.kind != "prim::GetAttr"
            for v in (*node.outputs, *earlier.outputs)
        )


def _leaves(node: Node) -> bool:
    """Whether a mutable result is used by the graph's results, also in containers."""
    todo = [value for value in node.outputs if is_mutable(value.type)]
    seen = set(todo)
    while todo:
        for user, _ in todo.pop().users:
            if isinstance(user, Block):
                return True
            if user.kind in ("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct"):
                new = [value for value in user.outputs if value not in seen]
                seen.update(new)
                todo += new
    return False


def _key(node: Node) -> Any:
    if node.kind == "prim::Constant":
        return ("prim::Constant", constant_key(node))
    attributes = tuple((name, _frozen(value)) for name, value in node.attributes.items())
    types = tuple(str(value.type) for value in node.outputs)
    return (node.kind, tuple(map(id, node.inputs)), attributes, types)


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    return value if isinstance(value, (str, int, float, bool)) else id(value)
