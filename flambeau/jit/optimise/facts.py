"""What is known of a node: whether it only computes, and what it uses."""

from __future__ import annotations

from flambeau.jit.ir.graph import Node, Value
from flambeau.jit.operators.naming import with_fact
from flambeau.jit.passes.effects import has_side_effects, is_random

PURE = frozenset(
    "prim::Constant prim::ListConstruct prim::ListUnpack prim::TupleConstruct prim::TupleUnpack "
    "prim::TupleIndex prim::TupleSlice prim::NumToTensor prim::dtype prim::device prim::min "
    "prim::max prim::unchecked_cast prim::If prim::Loop prim::GetAttr".split()
)
"""Kinds outside of `aten` that do not write. Attributes are read among them: what sets one,
or calls a method that may, is not pure, so that nothing that is moved passes it."""
UNDETERMINED = with_fact("undetermined") | {"aten::wait"}
"""Operators beside the random ones whose results are not settled by their inputs."""


def name_of(node: Node) -> str:
    """`add` for `aten::add`."""
    return node.kind.partition("::")[2]


def writes(node: Node) -> bool:
    """Whether an operator writes to one of its inputs."""
    if node.schema is not None:
        return any(argument.written for argument in node.schema.arguments)
    name = name_of(node)
    listed = ("append", "extend", "insert", "pop", "clear", "reverse", "sort", "_set_item")
    return node.kind.startswith("aten::") and (
        name in listed or (name.endswith("_") and not name.endswith("__"))
    )


def is_pure(node: Node) -> bool:
    """Whether a node, inner blocks included, only computes: it may be left out, moved, or run
    several times. Errors it may raise.
    """
    if node.kind in PURE:
        return all(is_pure(inner) for block in node.blocks for inner in block)
    if not node.kind.startswith("aten::") or node.kind in UNDETERMINED:
        return False
    return not (has_side_effects(node) or is_random(node) or writes(node))


def used_values(node: Node) -> list[Value]:
    """The inputs of a node and of the nodes within it."""
    found = list(node.inputs)
    for block in node.blocks:
        found += block.outputs
        for inner in block:
            found += used_values(inner)
    return found
