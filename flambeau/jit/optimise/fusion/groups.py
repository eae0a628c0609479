"""Which nodes of a graph make a group.

Nodes are taken in order. What is fusible joins the group at hand; what is pure and does not need
the group moves before it; anything else ends the group. Questions about shapes may stand within:
they are answered when a form is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Node, Value, captured
from flambeau.jit.operators.naming import with_fact
from flambeau.jit.optimise import facts
from flambeau.jit.optimise.subgraphs import extracted, replace_by_call, used_outside
from flambeau.jit.passes.effects import fills

COMPUTING = with_fact("fused")
"""Operators that kernels compute."""
ROWS = frozenset(("aten::softmax", "aten::log_softmax", "aten::layer_norm", "aten::mean",
                  "aten::sum"))  # fmt: skip
"""Those that need whole rows: kernels of their own, already, where they stand alone."""
PASSIVE = frozenset(("aten::size", "aten::dim", "aten::chunk", "prim::ListUnpack",
                     "prim::ListConstruct", "prim::Constant"))  # fmt: skip
"""What may stand within a group beside them."""


def rewrite(block: Block) -> None:
    """Put calls of groups into a block and into those within it."""
    group: list[Node] = []
    for node in list(block):
        for inner in node.blocks:
            rewrite(inner)
        if node.kind == "prim::Constant":
            continue
        if _joins(node):
            group.append(node)
        elif group and (not facts.is_pure(node) or node.blocks or _needs(node, group)):
            _close(group)
            group = []
        elif group:
            node.move_before(group[0])
    _close(group)


def _joins(node: Node) -> bool:
    if node.kind in COMPUTING:
        return not fills(node) and len(node.outputs) == 1 and node.output.type == T.TENSOR
    if node.kind == "prim::ListConstruct":
        return all(value.type == T.INT for value in node.inputs)
    if node.kind == "prim::ListUnpack":
        maker = node.inputs[0].node
        return maker is not None and maker.kind == "aten::chunk"
    return node.kind in PASSIVE and _asks_tensor(node)


def _asks_tensor(node: Node) -> bool:
    return bool(node.inputs) and node.inputs[0].type == T.TENSOR


def _needs(node: Node, group: Sequence[Node]) -> bool:
    """Whether a node uses what a group computes."""
    made = {value for member in group for value in member.outputs}
    return any(value in made for value in facts.used_values(node))


def _close(group: list[Node]) -> None:
    """Put a call in the place of a group, if it is worth one."""
    group = _trimmed(group)
    computing = [node for node in group if node.kind in COMPUTING]
    if len(computing) < 2 or all(node.kind in ROWS for node in computing):
        return
    outputs = used_outside(group)
    inputs = captured(group)
    if not outputs or not all(_may_cross(value) for value in (*inputs, *outputs)):
        return
    from flambeau.jit.optimise.fusion.group import Group

    function = Group(extracted(group, inputs, outputs))
    replace_by_call(group, group[0], inputs, outputs, function)


def _may_cross(value: Value) -> bool:
    """Whether a value may enter or leave a group."""
    inner = value.type.inner if isinstance(value.type, T.OptionalType) else value.type
    if isinstance(inner, T.ListType):
        return inner.element in (T.INT, T.FLOAT, T.BOOL) and value.node is not None
    return inner in (T.TENSOR, T.INT, T.FLOAT, T.BOOL, T.NONE, T.NUMBER)


def _trimmed(group: list[Node]) -> list[Node]:
    """Without passive nodes that others than the group use, or nobody: they stay outside.

    A list must not leave the group: it would be another one each time.
    """
    kept = list(group)
    changed = True
    while changed:
        changed = False
        inside = set(kept)
        for node in reversed(kept):
            if node.kind in COMPUTING:
                continue
            users = [user for value in node.outputs for user, _ in value.users]
            if users and all(user in inside for user in users):
                continue
            if not _can_leave(node, kept):
                return []
            kept.remove(node)
            changed = True
            break
    return kept


def _can_leave(node: Node, group: list[Node]) -> bool:
    """Take a passive node out: before the group if it needs nothing of it, else behind."""
    others = [member for member in group if member is not node]
    if not others:
        return True
    if not _needs(node, others):
        node.move_before(others[0])
        return True
    used = set(node.outputs)
    if any(value in used for member in others for value in member.inputs):
        return False
    last = others[-1]
    assert last.after is not None
    node.unlink()
    node.insert_after(last)
    return True
