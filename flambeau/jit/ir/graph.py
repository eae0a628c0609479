"""Graphs: nodes in blocks, each value assigned once.

A node has a kind (`aten::add`, `prim::If`), inputs, outputs, attributes that are known when it is
made, and blocks: the branches of an `If`, the body of a `Loop`. What a block computes for its node
are its outputs. The kinds of nodes and their attributes are those of torch's graphs:

    prim::Constant[value=1]()              a constant; of FunctionType: [name="f"]
    prim::If(condition)                    two blocks without inputs; outputs are theirs
    prim::Loop(trips, condition, *carried) block (i, *carried) -> (condition, *carried)
    prim::ListConstruct, TupleConstruct, DictConstruct(k, v, …), prim::TupleUnpack, ListUnpack
    prim::TupleIndex(tuple, i), prim::TupleSlice[beg=, end=](tuple)
    prim::GetAttr[name="weight"](self), prim::SetAttr[name="n"](self, value)
    prim::CallFunction(constant function, *args), prim::CallMethod[name="forward"](self, *args)
    prim::CreateObject()                   the class is the type of its output
    prim::RaiseException(message, class), prim::Uninitialized(), prim::unchecked_cast(x)
    prim::isinstance[types=(…)](x), prim::fork[Subgraph=graph](*args), aten::wait(future)
    prim::EnumName(e), prim::EnumValue(e), prim::tolist(x, dim, type)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau.jit.ir.source import Call, SourceRange
from flambeau.jit.ir.types import TENSOR, Type, without_facts


class Value:
    """What a node computes, or an input of a block. `users` holds a node once for each use; for
    an output of a block, the node of the block (None for the graph's own).
    """

    __slots__ = ("block", "name", "node", "type", "users")

    def __init__(self, type: Type, node: Node | None, block: Block | None, name: str = "") -> None:
        self.type = type
        self.node = node  # what computes it; None for an input of a block
        self.block = block  # the block that it is an input of; None for others
        self.name = name  # the variable's name in the program; "" for a temporary
        self.users: dict[tuple[Node | Block, int], None] = {}

    def replace_by(self, other: Value) -> None:
        """Let everything that uses this value use another one."""
        for user, index in list(self.users):
            user.set_input(index, other) if isinstance(user, Node) else user.set_output(
                index, other
            )

    @property
    def constant(self) -> Any:
        """The value if a constant makes it, else None: ask `is_constant` to tell None apart."""
        return self.node.attributes.get("value") if self.is_constant else None  # type: ignore[union-attr]

    @property
    def is_constant(self) -> bool:
        """Whether a `prim::Constant` makes it."""
        return self.node is not None and self.node.kind == "prim::Constant"

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self) & 0xFFFF)} : {self.type}"


class Node:
    """One operation."""

    __slots__ = ("after", "attributes", "before", "block", "blocks", "calls", "graph", "inputs",
                 "kind", "outputs", "schema", "scope", "source")  # fmt: skip

    def __init__(self, graph: Graph, kind: str, inputs: Sequence[Value] = (),
                 attributes: dict[str, Any] | None = None) -> None:  # fmt: skip
        self.graph = graph
        self.kind = kind
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.attributes = attributes or {}
        self.blocks: list[Block] = []
        self.schema: Any = None  # the FunctionSchema that the inputs were matched with
        self.source: SourceRange | None = None
        self.calls: tuple[Call, ...] = ()  # that were inlined and led here, the outermost first
        self.scope = ""  # the module path, in traces
        self.block: Block | None = None  # where it stands
        self.before: Node | None = None
        self.after: Node | None = None
        for value in inputs:
            self.add_input(value)

    # ---- inputs and outputs

    def add_input(self, value: Value) -> None:
        """One more input."""
        value.users[self, len(self.inputs)] = None
        self.inputs.append(value)

    def set_input(self, index: int, value: Value) -> None:
        """Another value for an input."""
        del self.inputs[index].users[self, index]
        self.inputs[index] = value
        value.users[self, index] = None

    def remove_input(self, index: int) -> None:
        """Leave an input out; those behind it move up."""
        values = self.inputs[:]
        self.remove_all_inputs()
        for value in values[:index] + values[index + 1 :]:
            self.add_input(value)

    def remove_all_inputs(self) -> None:
        """Leave all inputs out."""
        for index, value in enumerate(self.inputs):
            del value.users[self, index]
        self.inputs = []

    def add_output(self, type: Type = TENSOR, name: str = "") -> Value:
        """One more result."""
        value = Value(type, self, None, name)
        self.outputs.append(value)
        return value

    def remove_output(self, index: int) -> None:
        """Leave a result out; nothing may use it."""
        if self.outputs[index].users:
            raise ValueError(f"{self.kind}: output {index} is still used")
        del self.outputs[index]

    @property
    def output(self) -> Value:
        """The only result."""
        (value,) = self.outputs
        return value

    def add_block(self) -> Block:
        """One more block, empty."""
        block = Block(self.graph, self)
        self.blocks.append(block)
        return block

    def named(self, name: str) -> Value:
        """The input that a parameter of the schema gets."""
        for value, argument in zip(self.inputs, self.schema.arguments, strict=False):
            if argument.name == name:
                return value
        raise KeyError(name)

    # ---- its place

    def insert_before(self, other: Node) -> Node:
        """Put the node before another one."""
        assert other.block is not None and self.block is None
        self.block, self.before, self.after = other.block, other.before, other
        other.before.after = self  # type: ignore[union-attr]
        other.before = self
        return self

    def insert_after(self, other: Node) -> Node:
        """Put the node after another one."""
        assert other.after is not None
        return self.insert_before(other.after)

    def unlink(self) -> None:
        """Take the node out of its block; it keeps its inputs."""
        self.before.after, self.after.before = self.after, self.before  # type: ignore[union-attr]
        self.block = self.before = self.after = None

    def move_before(self, other: Node) -> None:
        """Take it out and put it before another one."""
        self.unlink()
        self.insert_before(other)

    def destroy(self) -> None:
        """Remove the node; nothing may use its results."""
        for index, value in enumerate(self.outputs):
            if value.users:
                raise ValueError(f"{self.kind}: output {index} is still used")
        for block in self.blocks:
            block.clear()
        self.remove_all_inputs()
        if self.block is not None:
            self.unlink()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.inputs} -> {self.outputs}>"


class Block:
    """A sequence of nodes with inputs and outputs."""

    __slots__ = ("end", "graph", "inputs", "outputs", "owner")

    def __init__(self, graph: Graph, owner: Node | None) -> None:
        self.graph = graph
        self.owner = owner  # the node that it belongs to; None for the graph's own
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.end = Node(graph, "prim::Return")  # a mark: the nodes stand in a ring around it
        self.end.block, self.end.before, self.end.after = self, self.end, self.end

    def add_input(self, type: Type = TENSOR, name: str = "") -> Value:
        """One more input."""
        value = Value(type, None, self, name)
        self.inputs.append(value)
        return value

    def add_output(self, value: Value) -> None:
        """One more result."""
        value.users[self, len(self.outputs)] = None
        self.outputs.append(value)

    def set_output(self, index: int, value: Value) -> None:
        """Another value for a result."""
        del self.outputs[index].users[self, index]
        self.outputs[index] = value
        value.users[self, index] = None

    def remove_output(self, index: int) -> None:
        """Leave a result out; those behind it move up."""
        values = self.outputs[:]
        self.remove_all_outputs()
        for value in values[:index] + values[index + 1 :]:
            self.add_output(value)

    def remove_all_outputs(self) -> None:
        """Leave all results out."""
        for index, value in enumerate(self.outputs):
            del value.users[self, index]
        self.outputs = []

    def append(self, node: Node) -> Node:
        """Put a node at the end."""
        return node.insert_before(self.end)

    def clear(self) -> None:
        """Remove all nodes and results."""
        self.remove_all_outputs()
        for node in reversed(list(self)):
            node.destroy()

    def __iter__(self) -> Iterator[Node]:
        """The nodes, in order; the one at hand may be removed, and others added before it."""
        node = self.end.after
        while node is not self.end:
            assert node is not None
            after = node.after
            yield node
            node = after

    def __reversed__(self) -> Iterator[Node]:
        node = self.end.before
        while node is not self.end:
            assert node is not None
            before = node.before
            yield node
            node = before

    def walk(self) -> Iterator[Node]:
        """All nodes, those of inner blocks included, outer ones first."""
        for node in self:
            yield node
            for block in node.blocks:
                yield from block.walk()

    def is_inside(self, other: Block) -> bool:
        """Whether this block is another one or lies within it."""
        block: Block | None = self
        while block is not None:
            if block is other:
                return True
            block = block.owner.block if block.owner is not None else None
        return False


class Graph:
    """A function's body. New nodes go to the insertion point, at first the end."""

    def __init__(self) -> None:
        self.block = Block(self, None)
        self.point = self.block.end  # new nodes are put before this one
        self.place: SourceRange | None = None  # what new nodes are noted to come from
        self.scope = ""

    @property
    def inputs(self) -> list[Value]:
        """The parameters."""
        return self.block.inputs

    @property
    def outputs(self) -> list[Value]:
        """What is returned."""
        return self.block.outputs

    def add_input(self, type: Type = TENSOR, name: str = "") -> Value:
        """One more parameter."""
        return self.block.add_input(type, name)

    def add_output(self, value: Value) -> None:
        """One more result."""
        self.block.add_output(value)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.block)

    def walk(self) -> Iterator[Node]:
        """All nodes, inner blocks included."""
        return self.block.walk()

    # ---- making nodes

    def create(self, kind: str, inputs: Sequence[Value] = (), types: Sequence[Type] = (TENSOR,),
               **attributes: Any) -> Node:  # fmt: skip
        """A node that stands nowhere yet, with an output for each type."""
        node = Node(self, kind, inputs, attributes)
        node.source, node.scope = self.place, self.scope
        for type in types:
            node.add_output(type)
        return node

    def insert(self, kind: str, inputs: Sequence[Value] = (), types: Sequence[Type] = (TENSOR,),
               **attributes: Any) -> Node:  # fmt: skip
        """A new node at the insertion point."""
        return self.create(kind, inputs, types, **attributes).insert_before(self.point)

    def constant(self, value: Any, type: Type | None = None) -> Value:
        """A constant at the insertion point; its type is that of the value, if it is not given."""
        if type is None:
            from flambeau.jit.ir.values import type_of

            type = type_of(value)
        return self.insert("prim::Constant", (), (type,), value=value).output

    @contextmanager
    def inserting(self, point: Node | Block) -> Iterator[None]:
        """Let new nodes go before a node, or to the end of a block."""
        saved = self.point
        self.point = point.end if isinstance(point, Block) else point
        try:
            yield
        finally:
            self.point = saved

    @contextmanager
    def at(self, place: SourceRange | None) -> Iterator[None]:
        """Note on new nodes where they come from."""
        saved = self.place
        self.place = place if place is not None else saved
        try:
            yield
        finally:
            self.place = saved

    def erase_facts(self) -> None:
        """Forget what a trace has seen of tensors."""
        for block in (self.block, *(inner for node in self.walk() for inner in node.blocks)):
            for value in (*block.inputs, *(v for node in block for v in node.outputs)):
                value.type = without_facts(value.type)

    # ---- copies

    def copy(self) -> Graph:
        """A graph of its own with the same nodes."""
        graph = Graph()
        mapping: dict[Value, Value] = {}
        for value in self.inputs:
            mapping[value] = graph.add_input(value.type, value.name)
        copy_nodes(self.block, graph.block, mapping)
        return graph

    def inline(self, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Put a copy of another graph's nodes at the insertion point; its results."""
        mapping = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.block:
            copy_node(node, self, mapping).insert_before(self.point)
        return [mapping[value] for value in graph.outputs]

    def __str__(self) -> str:
        from flambeau.jit.printing.graph_text import graph_text

        return graph_text(self)


def copy_node(node: Node, graph: Graph, mapping: dict[Value, Value]) -> Node:
    """A copy of a node, which stands nowhere yet. `mapping` leads from old values to new ones and
    gets the node's results; values that it does not hold stay as they are.
    """
    copied = Node(graph, node.kind, [mapping.get(v, v) for v in node.inputs], {**node.attributes})
    copied.schema, copied.source, copied.scope = node.schema, node.source, node.scope
    copied.calls = node.calls
    for block in node.blocks:
        inner = copied.add_block()
        for value in block.inputs:
            mapping[value] = inner.add_input(value.type, value.name)
        copy_nodes(block, inner, mapping)
    for value in node.outputs:
        mapping[value] = copied.add_output(value.type, value.name)
    return copied


def copy_nodes(block: Block, target: Block, mapping: dict[Value, Value]) -> None:
    """Copy the nodes and results of a block to the end of another one."""
    for node in block:
        target.append(copy_node(node, target.graph, mapping))
    for value in block.outputs:
        target.add_output(mapping.get(value, value))


def captured(nodes: Sequence[Node]) -> list[Value]:
    """What nodes use and do not compute themselves, in order of use; constants apart."""
    inside: set[Value] = set()
    found: dict[Value, None] = {}

    def visit(node: Node) -> None:
        for value in node.inputs:
            use(value)
        for block in node.blocks:
            inside.update(block.inputs)
            for inner in block:
                visit(inner)
            for value in block.outputs:
                use(value)
        inside.update(node.outputs)

    def use(value: Value) -> None:
        if value not in inside and not value.is_constant:
            found[value] = None

    for node in nodes:
        visit(node)
    return list(found)
