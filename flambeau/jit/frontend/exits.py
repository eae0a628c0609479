"""`return`, `break` and `continue` in the middle become flags, values and conditions.

A block that may be left early gets outputs: whether it was left, and with which values. What stands
behind it in the same block is put into a branch that is taken if it was not. The pass runs twice:
for what leaves rounds of loops, then for what leaves the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value, copy_node


def transform_exits(graph: Graph) -> None:
    """Let all blocks run to their end."""
    _enclose(graph.block)
    for kind in ("prim::LoopContinuation", "prim::ReturnStmt"):
        _Exits(graph, kind).transform(graph.block)
    _disclose(graph.block)
    _join_consecutive(graph.block)


@dataclass
class _Exit:
    """Whether a block has been left, and with which values. status: "wont", "will", "might" or
    "throws", what is known of it now.
    """

    status: str
    left: Value
    values: list[Value]


class _Exits:
    """Transforms one kind of exit."""

    def __init__(self, graph: Graph, kind: str) -> None:
        self.graph = graph
        self.kind = kind
        self.target: Block | None = None  # what an exit leaves
        first = graph.block.end.after
        assert first is not None
        with graph.inserting(first):
            self.true = graph.constant(True)
            self.false = graph.constant(False)
        self.unset: dict[int, Value] = {}
        self.never = self.uninitialized(T.BOOL)

    def uninitialized(self, type: T.Type) -> Value:
        """A value of a type that nobody will look at."""
        found = self.unset.get(id(type))  # equal types are not one, as in torch
        if found is None:
            node = self.graph.create("prim::Uninitialized", (), (type,))
            node.source = None
            first = self.graph.block.end.after
            assert first is not None
            found = self.unset[id(type)] = node.insert_before(first).output
        return found

    def like(self, values: Sequence[Value]) -> list[Value]:
        """Unset values of the types of others."""
        return [self.uninitialized(value.type) for value in values]

    # ---- blocks

    def transform(self, block: Block) -> _Exit:
        """Transform what is in a block."""
        saved = self.target
        if self.is_target(block):
            self.target = block
        found = self.nodes(block)
        if self.target is block:
            self.arrive(block, found)
            found = self.no_exit()
        self.target = saved
        return found

    def is_target(self, block: Block) -> bool:
        owner = block.owner
        if self.kind == "prim::LoopContinuation":
            return owner is not None and owner.kind == "prim::Loop"
        return owner is None

    def no_exit(self) -> _Exit:
        return _Exit("wont", self.false, [])

    def nodes(self, block: Block) -> _Exit:
        for node in block:
            found = self.node(node)
            if found.status in ("will", "throws"):
                self.remove_behind(node, block)
                if node.kind == self.kind:
                    node.destroy()
                return found
            if found.status == "might":
                if node.after is not block.end:
                    return self.guard(block, node, found)
                return found
        return self.no_exit()

    def node(self, node: Node) -> _Exit:
        if node.kind == "prim::RaiseException":
            return _Exit("throws", self.never, [])
        if node.kind == self.kind:
            return _Exit("will", self.true, list(node.inputs))
        if node.kind == "prim::If":
            return self.branches(node)
        if node.kind == "prim::Loop":
            return self.loop(node)
        if node.kind == "prim::With":
            return self.nodes(node.blocks[0])
        return self.no_exit()

    def remove_behind(self, node: Node, block: Block) -> None:
        """Remove what is never reached."""
        for dead in reversed(block):
            if dead is node:
                return
            for value in dead.outputs:
                if value.users:
                    value.replace_by(self.uninitialized(value.type))
            dead.destroy()

    def guard(self, block: Block, node: Node, found: _Exit) -> _Exit:
        """Put what stands behind a node into a branch for the case that it did not leave."""
        test = self.graph.create("prim::If", (found.left,), ())
        test.source = None
        test.insert_after(node)
        left, rest = test.add_block(), test.add_block()
        while test.after is not block.end:
            assert test.after is not None
            test.after.move_before(rest.end)
        outputs = block.outputs[:]
        block.remove_all_outputs()
        for unset, value in zip(self.like(outputs), outputs, strict=True):
            left.add_output(unset)
            rest.add_output(value)
            block.add_output(test.add_output(value.type))
        left.append(self.graph.create(self.kind, found.values, ()))
        return self.branches(test)

    def arrive(self, block: Block, found: _Exit) -> None:
        """Let a block that exits leave end with the values of the exit."""
        if found.status in ("wont", "throws"):
            return
        values = found.values
        if found.status == "might":
            test = self.graph.create("prim::If", (found.left,), ())
            test.source = None
            block.append(test)
            test.add_block(), test.add_block()
            values = add_outputs(test, found.values, block.outputs)
        block.remove_all_outputs()
        for value in values:
            block.add_output(value)

    # ---- nodes with blocks

    def branches(self, node: Node) -> _Exit:
        one, other = (self.transform(block) for block in node.blocks)
        status = _joined(one.status, other.status)
        if status == "throws":
            return _Exit("throws", self.never, [])
        if status == "wont":
            return self.no_exit()
        if one.status in ("wont", "throws"):
            one = _Exit(one.status, one.left, self.like(other.values))
        elif other.status in ("wont", "throws"):
            other = _Exit(other.status, other.left, self.like(one.values))
        left = self.true
        if status == "might":
            (left,) = add_outputs(node, [one.left], [other.left])
        return _Exit(status, left, add_outputs(node, one.values, other.values))

    def loop(self, node: Node) -> _Exit:
        body = node.blocks[0]
        found = self.transform(body)
        if found.status in ("wont", "throws"):
            return self.no_exit()
        test = self.graph.create("prim::If", (found.left,), ())
        test.source = None
        body.append(test)
        test.add_block().add_output(self.false)
        test.add_block().add_output(body.outputs[0])
        body.set_output(0, test.add_output(T.BOOL))
        before = [self.false, *self.like(found.values)]
        after = [found.left, *found.values]
        for value, changed in zip(before, after, strict=True):
            node.add_input(value)
            body.add_input(value.type)
            body.add_output(changed)
            node.add_output(value.type)
        results = node.outputs[-len(after) :]
        return _Exit("might", results[0], results[1:])


def _joined(one: str, other: str) -> str:
    """What is known of a node whose branches are left so."""
    if one == "throws":
        return other
    if other in ("throws", one):
        return one
    return "might"


def add_outputs(node: Node, if_true: Sequence[Value], if_false: Sequence[Value]) -> list[Value]:
    """More results of a branch."""
    made = []
    for one, other in zip(if_true, if_false, strict=True):
        node.blocks[0].add_output(one)
        node.blocks[1].add_output(other)
        type = T.common(one.type, other.type)
        made.append(node.add_output(type))
    return made


# ---- `with` blocks, which are left in any case


def _enclose(block: Block) -> None:
    """Put what stands between `prim::Enter` and its `prim::Exit` into the first block of a
    `prim::With` node, and the `prim::Exit` into the second one.
    """
    around: list[Node] = []
    for node in block:
        for inner in node.blocks:
            _enclose(inner)
        if node.kind == "prim::Exit":
            node.move_before(around.pop().blocks[1].end)
        elif around:
            node.move_before(around[-1].blocks[0].end)
        if node.kind == "prim::Enter":
            made = node.graph.create("prim::With", (), ())
            made.add_block(), made.add_block()
            around.append(made.insert_after(node))


def _disclose(block: Block) -> None:
    """Replace `prim::With` nodes by what is in their blocks."""
    for node in block:
        for inner in node.blocks:
            _disclose(inner)
        if node.kind == "prim::With":
            for inner in node.blocks:
                for one in inner:
                    one.move_before(node)
            node.destroy()


# ---- two branches on one condition


def _join_consecutive(block: Block) -> None:
    """`if a: left = True … if left: …` becomes one branch, if both values of `left` are known."""
    node = block.end.after
    while node is not None and node is not block.end:
        for inner in node.blocks:
            _join_consecutive(inner)
        if not _join_with_next(node):
            node = node.after


def _join_with_next(node: Node) -> bool:
    second = node.after
    assert second is not None
    if node.kind != "prim::If" or second.kind != "prim::If":
        return False
    test = second.inputs[0]
    if test.node is not node:
        return False
    position = node.outputs.index(test)
    known = [block.outputs[position] for block in node.blocks]
    if not all(value.is_constant for value in known) or known[0].constant == known[1].constant:
        return False
    for block, value in zip(node.blocks, known, strict=True):
        chosen = second.blocks[0 if value.constant else 1]
        mapping = dict(zip(node.outputs, block.outputs, strict=True))
        for inner in chosen:
            block.append(copy_node(inner, node.graph, mapping))
        for output in chosen.outputs:
            block.add_output(mapping.get(output, output))
    for output in second.outputs:
        output.replace_by(node.add_output(output.type, output.name))
    second.destroy()
    return True
