"""Which values may be, or share memory with, or hold the same thing, and who writes to it.

Each value stands for a set of places, found in one walk over the graph; if there are loops, it is
repeated until nothing changes. A place is what an operator makes anew, a constant's object, or the
unknown of a kind (tensor, container, object): everything that came in from outside or was handed to
a function that may keep it. A list, a tuple or an object is a place that holds places. Schemas tell
the rest: `Tensor(a) self -> Tensor(a)` gives the same place, `Tensor(a!)` writes to it, `t(c -> *)
el` is kept by what the call writes to. Where nothing is known, the answer is that it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema, Parameter
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.operators.naming import with_fact
from flambeau.jit.passes.effects import SIDE_EFFECTS, is_mutable
from flambeau.jit.passes.places import Place, Places, kinds_of

SAME = frozenset(("prim::unchecked_cast", "prim::unchecked_unwrap_optional",
                  "aten::_unwrap_optional", "prim::data", "prim::annotate"))  # fmt: skip
"""The result is the first input."""
MAKE = frozenset(("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct",
                  "prim::TupleSlice"))  # fmt: skip
TAKE = frozenset(("prim::TupleUnpack", "prim::TupleIndex", "prim::ListUnpack", "prim::GetAttr"))
MAY_GIVE_INPUTS = with_fact("may_give_input")
"""Operators that may give an input back, or a view of it, though their schemas do not say so."""
CALLS = SIDE_EFFECTS | {"prim::fork", "aten::wait", "prim::Closure"}
"""Whatever they are handed may be kept, written to and returned."""
HARMLESS = frozenset(("prim::Print", "prim::RaiseException", "prim::TimePoint", "aten::warn",
                      "aten::manual_seed", "aten::_assert"))  # fmt: skip
"""They keep and write nothing of what they are handed."""


class AliasInfo(Places):
    """What is known of a graph as it is now; make a new one after changing the graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        super().__init__()
        self._leaving: set[Place] | None = None
        self._written: set[Place] | None = None
        self._loops = False  # whether the graph has loops: their bodies see what comes later
        self._settled: set[Node] = set()  # nodes of which nothing more can become known
        self._analyse()

    # ---- questions

    def may_alias(self, one: Value, other: Value) -> bool:
        """Whether a write to one may be seen in the other, contents of containers apart."""
        return not self._of(one).isdisjoint(self._of(other))

    def may_contain_alias(self, one: Value, other: Value) -> bool:
        """The same, of the values and all that they hold."""
        return not self._reach(self._of(one)).isdisjoint(self._reach(self._of(other)))

    def has_writers(self, value: Value, deep: bool = False) -> bool:
        """Whether any node writes to a value; `deep`: or to what it holds."""
        if self._written is None:
            self._written = set().union(*map(self.written_by, self._writes))
        places = self._reach(self._of(value)) if deep else self._of(value)
        return not places.isdisjoint(self._written)

    def writers(self, value: Value) -> list[Node]:
        """The nodes that may write to a value."""
        places = self._of(value)
        return [n for n in self._writes if not places.isdisjoint(self.written_by(n))]

    def written_by(self, node: Node) -> set[Place]:
        """The places that a node, with its blocks, may write to."""
        found = self._closed(self._writes.get(node, set()))
        for block in node.blocks:
            for inner in block:
                found |= self.written_by(inner)
        return found

    def places(self, values: Iterable[Value]) -> set[Place]:
        """What some values may be, and all that they hold."""
        return self._reach(set().union(*map(self._of, values)))

    def writes_outside(self, node: Node) -> bool:
        """Whether a node may write to something that is known outside of the graph."""
        return any(place[0] == "unknown" for place in self.written_by(node))

    def is_known_outside(self, value: Value) -> bool:
        """Whether a value may be, or hold, something that is known outside of the graph."""
        return any(place[0] == "unknown" for place in self._reach(self._of(value)))

    def may_leave(self, value: Value) -> bool:
        """Whether a value may be, or be held by, what the graph returns or anyone outside knows."""
        if self._leaving is None:
            self._leaving = set()
            for result in self.graph.outputs:
                self._leaving |= self._reach(self._of(result))
        places = self._of(value)
        return not places.isdisjoint(self._leaving) or any(p[0] == "unknown" for p in places)

    # ---- the walk

    def _analyse(self) -> None:
        for value in self.graph.inputs:
            self._add(value, self._unknown(value.type))
        self._changed = True
        while self._changed:
            self._changed = False
            self._loops = False
            self._block(self.graph.block)
            self._changed = self._changed and self._loops  # else all was known when it was asked

    def _block(self, block: Block) -> None:
        for node in block:
            self._node(node)

    def _node(self, node: Node) -> None:
        visit = VISITS.get(node.kind)
        if visit is not None:
            visit(self, node)
        elif node.kind in HARMLESS or self._only_reads(node):
            return
        elif node.schema is None or node.schema.vararg or node.blocks or node.kind in CALLS:
            self._call(node)
        else:
            self._operator(node)

    def _same(self, node: Node) -> None:
        self._add(node.output, self._of(node.inputs[0]))

    def _new(self, node: Node) -> None:
        self._add(node.output, self._fresh(node.output))

    def _set_attribute(self, node: Node) -> None:
        instance, value = map(self._of, node.inputs)
        self._write(node, instance)
        self._hold(instance, value)

    def _only_reads(self, node: Node) -> bool:
        """`"{}".format(x)`: any arguments, and nothing that could hold them."""
        if node.schema is None or not node.schema.vararg or not node.kind.startswith("aten::"):
            return False
        return not any(is_mutable(value.type) for value in node.outputs)

    def _branches(self, node: Node) -> None:
        for block in node.blocks:
            self._block(block)
            for result, value in zip(node.outputs, block.outputs, strict=True):
                self._add(result, self._of(value))

    def _loop(self, node: Node) -> None:
        self._loops = True
        (body,) = node.blocks
        carried = zip(node.inputs[2:], body.inputs[1:], node.outputs, strict=True)
        for index, (start, inside, result) in enumerate(carried):
            for source in (start, body.outputs[index + 1]):
                self._add(inside, self._of(source))
                self._add(result, self._of(source))
        self._block(body)

    def _constant(self, node: Node) -> None:
        """Constants that are one object are one place."""
        if node.output in self._places:
            return
        kinds = kinds_of(node.output.type)
        value = node.attributes.get("value")
        if kinds and value is not None:
            self._add(node.output, {self._place_of(value, kinds[0])})

    def _make(self, node: Node) -> None:
        places = self._fresh(node.output)
        self._add(node.output, places)
        for value in node.inputs:
            held = self._of(value)
            if node.kind == "prim::TupleSlice":
                held = self._contents(value)
            self._hold(places, held)

    def _take(self, node: Node) -> None:
        contents = self._contents(node.inputs[0])
        for value in node.outputs:
            keys = kinds_of(value.type)
            found = {place for place in contents if self._kind_of[place] in keys}
            if any(place[0] == "unknown" for place in self._of(node.inputs[0])):
                found |= self._unknown(value.type)
            self._add(value, found)

    def _call(self, node: Node) -> None:
        """An operator of which nothing is known."""
        for block in node.blocks:
            self._block(block)
        for value in node.inputs:
            places = self._reach(self._of(value))
            self._escape(places)
            self._write(node, places)
        for value in node.outputs:
            self._add(value, self._unknown(value.type))

    def _operator(self, node: Node) -> None:
        schema = node.schema
        if node in self._settled:
            return
        if node.kind in MAY_GIVE_INPUTS:
            self._may_give_inputs(node)
            return
        if _makes_tensors(schema):
            self._settled.add(node)
            for value in node.outputs:
                self._add(value, self._fresh(value))
            return
        by_mark: dict[str, list[tuple[Parameter, Value]]] = {}
        if any(parameter.alias for parameter in schema.arguments):
            for parameter, value in zip(schema.arguments, node.inputs, strict=False):
                for mark in _marks(parameter.alias):
                    by_mark.setdefault(mark, []).append((parameter, value))
                if parameter.written:
                    self._write(node, self._of(value))
            self._keep(node)
        for value, parameter in zip(node.outputs, schema.returns, strict=False):
            self._result(node, value, parameter, by_mark)

    def _may_give_inputs(self, node: Node) -> None:
        """The results are inputs, what these hold, or new; several are in a new list."""
        given: set[Place] = set()
        for source in node.inputs:
            given |= self._of(source) | self._contents(source)
        tensors = {place for place in given if self._kind_of[place] == "Tensor"}
        for value in node.outputs:
            made = self._fresh(value)
            self._add(value, made)
            if value.type.is_subtype_of(T.TENSOR):
                self._add(value, tensors)
            else:
                self._hold(made, tensors)

    def _keep(self, node: Node) -> None:
        """`append`, `__setitem__`, `extend`: the written container holds the others."""
        pairs = list(zip(node.schema.arguments, node.inputs, strict=False))
        for parameter, container in pairs:
            if not parameter.written or container.type.is_subtype_of(T.TENSOR):
                continue
            for other, value in pairs:
                if other is not parameter:
                    self._hold(self._of(container), self._of(value) | self._contents(value))

    def _result(self, node: Node, value: Value, parameter: Parameter,
                by_mark: dict[str, list[tuple[Parameter, Value]]]) -> None:  # fmt: skip
        marks = _marks(parameter.alias)
        sources = [source for mark in marks for _, source in by_mark.get(mark, ())]
        if sources:
            self._alias(value, sources)
        elif marks or "*" in parameter.alias or self._may_hold_inputs(node, value):
            self._from_inputs(node, value)
        else:
            self._add(value, self._fresh(value))

    def _alias(self, value: Value, sources: Sequence[Value]) -> None:
        """`Tensor(a) -> Tensor(a)`; or `Tensor(a) -> Tensor(a)[]`: a new list that holds it."""
        keys = kinds_of(value.type)
        for source in sources:
            places = self._of(source)
            same = {place for place in places if self._kind_of[place] in keys}
            self._add(value, same)
            if not same:
                made = self._fresh(value)
                self._add(value, made)
                self._hold(made, places)

    def _may_hold_inputs(self, node: Node, value: Value) -> bool:
        """Whether a new container may hold what the inputs hold: `list(x)`, `a + b`."""
        if value.type is T.TENSOR or value.type.is_subtype_of(T.TENSOR):
            return False
        if not any(map(is_mutable, _parts(value.type))):
            return False
        return any(not v.type.is_subtype_of(T.TENSOR) and self._of(v) for v in node.inputs)

    def _from_inputs(self, node: Node, value: Value) -> None:
        """Something that the inputs hold, or a container of such things; for a tensor, anything."""
        keys = kinds_of(value.type)
        everything: set[Place] = set()
        for source in node.inputs:
            if source.type.is_subtype_of(T.TENSOR):
                everything |= self._unknown(value.type)
            everything |= self._reach(self._contents(source))
        self._add(value, {place for place in everything if self._kind_of[place] in keys})
        made = self._fresh(value)
        self._add(value, made)
        self._hold(made, {place for place in everything if self._kind_of[place] not in keys})


def _parts(type: T.Type) -> tuple[T.Type, ...]:
    return type.inner.parts if isinstance(type, T.OptionalType) else type.parts


@cache
def _marks(alias: str) -> tuple[str, ...]:
    """`a`, `b` of `a|b`, `a!`, `a -> *`; the part before the arrow."""
    marks = alias.partition("->")[0].replace("!", "").split("|")
    return tuple([mark.strip() for mark in marks if mark.strip() not in ("", "*")])


_makers: dict[int, tuple[FunctionSchema, bool]] = {}  # by ids, which are theirs meanwhile


def _makes_tensors(schema: FunctionSchema) -> bool:
    """Whether an operator gives new tensors or numbers, whatever it is given: most do."""
    known = _makers.get(id(schema))
    if known is None:
        known = _makers[id(schema)] = schema, _is_maker(schema)
    return known[1]


def _is_maker(schema: FunctionSchema) -> bool:
    marked = any(parameter.alias for parameter in (*schema.arguments, *schema.returns))
    simple = all(p.type is T.TENSOR or not is_mutable(p.type) for p in schema.returns)
    return simple and not marked and not schema.varret


VISITS: dict[str, Callable[[AliasInfo, Node], None]] = {
    "prim::If": AliasInfo._branches,
    "prim::Loop": AliasInfo._loop,
    "prim::Constant": AliasInfo._constant,
    "prim::SetAttr": AliasInfo._set_attribute,
    "prim::CreateObject": AliasInfo._new,
    "prim::Uninitialized": AliasInfo._new,
    **dict.fromkeys(SAME, AliasInfo._same),
    **dict.fromkeys(MAKE, AliasInfo._make),
    **dict.fromkeys(TAKE, AliasInfo._take),
}
"""Nodes whose meaning no schema tells."""
