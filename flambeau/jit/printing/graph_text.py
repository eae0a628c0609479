"""`print(function.graph)`: a graph as text, as torch writes it.

    graph(%x.1 : Tensor,
          %n.1 : int):
      %2 : int = prim::Constant[value=1]() # file.py:3:15
      %y : Tensor = prim::If(%c) # file.py:4:4
        block0():
          -> (%x.1)
        ...
      return (%y)

Values have the names of the program's variables; those without a name have the number of their
place among all values. Of values with the same name, the last one keeps it and the others get
`.1`, `.2`, …
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.ir.values import facts_of
from flambeau.jit.printing.literals import attribute_text

show_places = True
"""Whether texts note the lines that nodes come from, where that is not said."""


def graph_text(graph: Graph, source: bool | None = None) -> str:
    """The text of a graph. `source`: whether each node notes the line that it comes from."""
    return _Printer(show_places if source is None else source).graph(graph)


def type_text(type: T.Type) -> str:
    """A type as graphs write it: `Tensor[]`, `Future[int]`, `(int, float)`; of a tensor what is
    known of it, but not in lists and dictionaries.
    """
    if isinstance(type, T.SimpleType):
        return type.facts or type.name
    if isinstance(type, T.ListType):
        return f"{type_text(T.without_facts(type.element))}[]"
    if isinstance(type, T.OptionalType):
        return f"{type_text(type.inner)}?"
    if isinstance(type, T.FutureType):
        return f"Future[{type_text(type.inner)}]"
    if not isinstance(type, T.TupleType):
        return str(type)
    elements = [type_text(element) for element in type.elements]
    if not type.fields:
        return f"({', '.join(elements)})"
    return f"NamedTuple({', '.join(_fields(type, elements))})"


def _fields(type: T.TupleType, elements: list[str]) -> Iterator[str]:
    required = len(elements) - len(type.defaults)
    for index, (name, element) in enumerate(zip(type.fields, elements, strict=True)):
        default = ""
        if index >= required:
            default = f" = {attribute_text(type.defaults[index - required])}"
        yield f"{name} : {element}{default}"


def in_order(block: Block) -> Iterator[Value]:
    """The values of a block and of what lies within it, in the order of the text."""
    yield from block.inputs
    for node in block:
        yield from node.outputs
        for inner in node.blocks:
            yield from in_order(inner)


def inner_first(block: Block) -> Iterator[Value]:
    """The values in the order in which they get their names: results behind what is in blocks."""
    yield from block.inputs
    for node in block:
        for inner in node.blocks:
            yield from inner_first(inner)
        yield from node.outputs


def value_names(graph: Graph) -> dict[Value, str]:
    """The name of each value in the text, without `%`."""
    names = Names()
    for value in inner_first(graph.block):
        if value.name:
            names.give(value, value.name)
    for number, value in enumerate(in_order(graph.block)):
        names.of.setdefault(value, str(number))
    return names.of


class Names:
    """Unique names: who asks for a name that is taken gets it, and its owner another one."""

    def __init__(self) -> None:
        self.of: dict[Value, str] = {}
        self._owner: dict[str, Value] = {}
        self._next: dict[str, int] = {}  # the number to try next for `name.1`, `name.2`, …

    def give(self, value: Value, name: str) -> None:
        """Name a value."""
        previous = self._owner.get(name)
        if previous is not None:
            self._put(previous, self._numbered(name))
        self._put(value, name)

    def _put(self, value: Value, name: str) -> None:
        self._owner[name] = value
        self.of[value] = name

    def _numbered(self, name: str) -> str:
        base, dot, digits = name.rpartition(".")
        number = 1
        if dot and digits.isdecimal():
            name, number = base, int(digits)
        number = max(number, self._next.get(name, 0))
        while f"{name}.{number}" in self._owner:
            number += 1
        self._next[name] = number + 1
        return f"{name}.{number}"


class _Printer:
    def __init__(self, source: bool) -> None:
        self.source = source
        self.subgraphs: list[Node] = []  # nodes whose graph is printed behind the outer one

    def graph(self, graph: Graph) -> str:
        self.names = value_names(graph)
        self.subgraphs = []
        lines = [f"graph({self.declared(graph.inputs, ',' + chr(10) + ' ' * 6)}):"]
        self.nodes(graph.block, 1, lines)
        lines.append(f"  return ({self.used(graph.outputs)})")
        text = "\n".join(lines) + "\n"
        subgraphs = self.subgraphs
        for index, node in enumerate(subgraphs):
            text += f"with {node.kind}_{index} = {self.graph(node.attributes['Subgraph'])}"
        return text

    def nodes(self, block: Block, level: int, lines: list[str]) -> None:
        for node in block:
            lines.append("  " * level + self.node(node))
            for index, inner in enumerate(node.blocks):
                inputs = self.declared(inner.inputs)
                lines.append(f"{'  ' * (level + 1)}block{index}({inputs}):")
                self.nodes(inner, level + 2, lines)
                lines.append(f"{'  ' * (level + 2)}-> ({self.used(inner.outputs)})")

    def node(self, node: Node) -> str:
        operation = node.kind + self.attributes(node)
        text = f"{self.declared(node.outputs)} = {operation}({self.used(node.inputs)})"
        if node.scope:
            text += f", scope: {node.scope}"
        if self.source and node.source is not None and node.source.place:
            text += f" # {node.source.place}"
        return text

    def attributes(self, node: Node) -> str:
        shown = {name: value for name, value in node.attributes.items() if name != "Subgraph"}
        number = ""
        if "Subgraph" in node.attributes:
            number = f"_{len(self.subgraphs)}"
            self.subgraphs.append(node)
        if node.kind == "prim::Constant":
            shown = {name: value for name, value in shown.items() if value is not None}
        if not shown:
            return number
        type = node.outputs[0].type if node.outputs else None
        inside = ", ".join(f"{name}={attribute_text(v, type)}" for name, v in shown.items())
        return f"{number}[{inside}]"

    def declared(self, values: Sequence[Value], separator: str = ", ") -> str:
        return separator.join(f"%{self.names[v]} : {_type_of(v)}" for v in values)

    def used(self, values: Sequence[Value]) -> str:
        return ", ".join(f"%{self.names[value]}" for value in values)


def _type_of(value: Value) -> str:
    """The type of a value as the text shows it."""
    if isinstance(value.constant, Tensor):
        return type_text(facts_of(value.constant))
    return type_text(value.type)
