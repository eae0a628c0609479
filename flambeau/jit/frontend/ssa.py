"""Variables become values: what a branch or loop assigns becomes an output of its node.

After it there are no `prim::Store` and `prim::Load` nodes, conditions of loops stand before the
loop and at the end of its body, `break` and `continue` have become `prim::LoopContinuation` nodes
with the condition and the values that the next round begins with, and `exits.py` does the rest.
"""

from __future__ import annotations

from flambeau.jit.frontend.environment import is_meaningful
from flambeau.jit.frontend.exits import transform_exits
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value, copy_nodes


def convert_to_ssa(graph: Graph) -> None:
    """Let each variable be a value."""
    _Variables(graph).block(graph.block)
    _Continuations(graph).block(graph.block)
    _inline_conditions(graph.block)
    _Reader().block(graph.block)
    transform_exits(graph)
    _replace_empty_literals(graph)


def _replace_empty_literals(graph: Graph) -> None:
    """`[]` that nobody gave another type to is a list of tensors."""
    for node in graph.walk():
        if node.kind == "prim::EmptyListLiteral":
            made = graph.create("prim::ListConstruct", (), (node.output.type,))
            node.output.replace_by(made.insert_before(node).output)
            node.destroy()


class _Scope:
    """The types of the variables of a block."""

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.types: dict[str, T.Type] = {}

    def find(self, name: str) -> T.Type | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.types:
                return scope.types[name]
            scope = scope.parent
        return None


class _Variables:
    """Adds inputs and outputs for variables that branches and loops assign."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope: _Scope | None = None

    def block(self, block: Block) -> _Scope:
        scope = self.scope = _Scope(self.scope)
        for node in block:
            if node.kind == "prim::Store":
                scope.types[node.attributes["name"]] = node.inputs[0].type
            elif node.kind == "prim::If":
                self.branches(node)
            elif node.kind == "prim::Loop":
                self.loop(node)
            elif node.kind == "prim::ComprehensionScope":
                self.block(node.blocks[0])
        self.scope = scope.parent
        return scope

    def branches(self, node: Node) -> None:
        one, other = (self.block(block) for block in node.blocks)
        names = {name for name in one.types if other.find(name) is not None}
        names |= {name for name in other.types if one.find(name) is not None}
        assert self.scope is not None
        for name in sorted(names):
            types = (one.find(name), other.find(name))
            for block, type in zip(node.blocks, types, strict=True):
                assert type is not None
                self.output(block, name, type)
            unified = T.common(*types)  # type: ignore[arg-type]
            self.result(node, name, unified)
            self.scope.types[name] = unified

    def loop(self, node: Node) -> None:
        body = node.blocks[0]
        inner = self.block(body)
        assert self.scope is not None
        for name in sorted(inner.types):
            outer = self.scope.find(name)
            if outer is None:
                continue
            type = T.unify(outer, inner.types[name]) or outer
            load = self.graph.create("prim::Load", (), (outer,), name=name)
            node.add_input(load.insert_before(node).output)
            first = body.end.after
            assert first is not None
            given = body.add_input(type, name if is_meaningful(name) else "")
            self.graph.create("prim::Store", (given,), (), name=name).insert_before(first)
            self.output(body, name, inner.types[name])
            self.result(node, name, type)
            self.scope.types[name] = type

    def output(self, block: Block, name: str, type: T.Type) -> None:
        node = self.graph.create("prim::Load", (), (type,), name=name)
        block.add_output(block.append(node).output)

    def result(self, node: Node, name: str, type: T.Type) -> None:
        value = node.add_output(type, name if is_meaningful(name) else "")
        self.graph.create("prim::Store", (value,), (), name=name).insert_after(node)


class _Continuations:
    """Gives `break` and `continue` the values that the loop goes on with."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.loop: Node | None = None

    def block(self, block: Block) -> None:
        for node in block:
            if node.kind == "prim::Loop":
                saved, self.loop = self.loop, node
                self.block(node.blocks[0])
                self.loop = saved
            elif node.kind in ("prim::BreakStmt", "prim::ContinueStmt"):
                self.leave(node)
            else:
                for inner in node.blocks:
                    self.block(inner)

    def leave(self, node: Node) -> None:
        assert self.loop is not None
        body, test = self.loop.blocks
        with self.graph.inserting(node):
            if node.kind == "prim::BreakStmt":
                goes_on = self.graph.constant(False)
            else:
                goes_on = _copied(self.graph, test)
            inputs = [goes_on]
            for value in body.outputs:
                load = value.node
                assert load is not None and load.kind == "prim::Load"
                name = load.attributes["name"]
                inputs.append(self.graph.insert("prim::Load", (), (value.type,), name=name).output)
            self.graph.insert("prim::LoopContinuation", inputs, ())
        node.destroy()


def _copied(graph: Graph, block: Block) -> Value:
    """A copy of a block's nodes at the insertion point; its only result."""
    made = Block(graph, None)
    copy_nodes(block, made, {})
    return _moved(graph, made)


def _moved(graph: Graph, block: Block) -> Value:
    """The nodes of a block, put to the insertion point; its only result."""
    for node in block:
        node.move_before(graph.point)
    result = block.outputs[0]
    block.remove_all_outputs()
    return result


def _inline_conditions(block: Block) -> None:
    for node in block:
        for inner in node.blocks:
            _inline_conditions(inner)
        if node.kind == "prim::Loop":
            _inline_condition(node)


def _inline_condition(loop: Node) -> None:
    graph = loop.graph
    body, test = loop.blocks
    with graph.inserting(loop):
        first = _copied(graph, test)
    inputs = loop.inputs[:]
    loop.remove_all_inputs()
    for value in (inputs[0], first, *inputs[1:]):
        loop.add_input(value)
    with graph.inserting(body):
        again = _moved(graph, test)
    del loop.blocks[1]
    outputs = body.outputs[:]
    body.remove_all_outputs()
    for value in (again, *outputs):
        body.add_output(value)


class _Reader:
    """Replaces what reads a variable by what was written last."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Value]] = []

    def block(self, block: Block) -> None:
        self.frames.append({})
        for node in block:
            if node.kind == "prim::Store":
                self.frames[-1][node.attributes["name"]] = node.inputs[0]
                node.destroy()
            elif node.kind == "prim::Load":
                node.output.replace_by(self.find(node.attributes["name"]))
                node.destroy()
            elif node.kind == "prim::ComprehensionScope":
                self.block(node.blocks[0])
                for inner in node.blocks[0]:
                    inner.move_before(node)
                node.destroy()
            else:
                for inner_block in node.blocks:
                    self.block(inner_block)
        self.frames.pop()

    def find(self, name: str) -> Value:
        for frame in reversed(self.frames):
            if name in frame:
                return frame[name]
        raise KeyError(name)
