"""Which nodes are written inside the expression that uses them, and which get a statement.

A node is written in place if its result has no name, is used once, and nothing would run in
another order: the blocks are walked backwards, and a node is taken only if it is the last one
that has not been taken yet, before its user.
"""

from __future__ import annotations

from flambeau.jit.ir.graph import Block, Node, Value

NOT_INTO = frozenset(("prim::fork", "prim::awaitable"))


def inlined_nodes(block: Block) -> set[Node]:
    """The nodes below a block that are written in place; constants always are."""
    scan = _Scan()
    scan.block(block)
    return scan.found


class _Scan:
    def __init__(self) -> None:
        self.found: set[Node] = set()

    def block(self, block: Block) -> None:
        self.values(block.outputs, _before(block.end))
        for node in reversed(block):
            self.node(node)

    def node(self, node: Node) -> Node:
        """Look at what a node uses; the last node before it that is not written in it."""
        if node in self.found:
            return node
        for block in node.blocks:
            self.block(block)
        return self.values(node.inputs, _before(node))

    def values(self, values: list[Value], last: Node) -> Node:
        for value in reversed(values):
            if value.is_constant:
                self.found.add(value.node)  # type: ignore[arg-type]
            elif value.node is last and _may_be_inlined(value):
                following = self.node(last)
                self.found.add(last)
                last = following
        return last


def _before(node: Node) -> Node:
    """The node before, constants skipped; the end mark of the block if there is none."""
    before = node.before
    while before is not None and before.kind == "prim::Constant":
        before = before.before
    assert before is not None
    return before


def _may_be_inlined(value: Value) -> bool:
    node = value.node
    assert node is not None
    if len(node.outputs) != 1 or len(value.users) != 1 or node.blocks:
        return False
    ((user, index),) = value.users
    if value.name and not isinstance(user, Block):
        return False
    if isinstance(user, Node):
        if user.kind == "prim::Loop" and index >= 2:
            return False  # it would be written behind the number of trips and the condition
        if user.kind in NOT_INTO:
            return False
    return node.kind != "prim::isinstance"  # in a condition it would refine types again
