"""Computes once what is computed several times."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from flambeau.jit.ir.graph import Block, Graph, Node
from flambeau.jit.passes.alias import AliasInfo
from flambeau.jit.passes.constants import constant_key
from flambeau.jit.passes.effects import has_side_effects, is_mutable, is_random, writes_inputs

NEVER_SHARED = frozenset(("prim::CreateObject", "prim::Uninitialized", "prim::fork", "aten::wait"))


def eliminate_common(graph: Graph, within: bool = False) -> None:
    """Replace a node by an earlier one of the same kind, inputs and attributes, if both may be the
    same object: neither random nor with side effects, nothing writes to what they use or give, and
    not both can be told apart outside of the graph.

    within: neither is known outside. What leaves may be written to later, when the other has been
    saved for backward.
    """
    _Search(graph, within).block(graph.block, {})


class _Search:
    """The nodes met so far. What is known of aliases is that of the graph as it came."""

    def __init__(self, graph: Graph, within: bool) -> None:
        self.graph = graph
        self.within = within
        self.writes = any(writes_inputs(n) or has_side_effects(n) for n in graph.walk())
        self.leaving: set[Node] = set()  # nodes that stand for others that leave

    @cached_property
    def alias(self) -> AliasInfo:
        """Who shares memory with whom: asked for where something is found twice."""
        return AliasInfo(self.graph)

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
        return not self.writes or not any(self.alias.has_writers(v, deep=True) for v in values)

    def may_be_one(self, node: Node, earlier: Node) -> bool:
        """Whether the program cannot tell two results from one: of new memory that leaves the
        graph twice, in a container or as a view, one could be written to.
        """
        if node.kind == "prim::GetAttr":
            return True
        if self.within:
            return not (self.leaves(node) or self.leaves(earlier))
        if not self.leaves(node):
            return True
        if _is_repeated(node, earlier) or self.leaves(earlier):
            return False
        self.leaving.add(earlier)
        return True

    def leaves(self, node: Node) -> bool:
        """Whether the memory of a result may be known outside of the graph."""
        if node in self.leaving:
            return True
        return any(is_mutable(v.type) and self.alias.may_leave(v) for v in node.outputs)


def _is_repeated(node: Node, earlier: Node) -> bool:
    """Whether a loop makes a node's results anew in each round, but not an earlier node's."""
    block = node.block
    while block is not None and block is not earlier.block:
        owner = block.owner
        if owner is None:
            return False
        if owner.kind == "prim::Loop":
            return True
        block = owner.block
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
