"""Reads the text of a graph, as torch and flambeau print it.

The text does not hold everything: what a tensor, a function or a class is has to be handed over.
Facts about tensors (`Float(2, 3, strides=[3, 1])`) are kept as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import CompilationUnit, Function
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.ir.source import Source, SourceRange
from flambeau.jit.ir.type_parser import TypeReader
from flambeau.jit.ir.values import ELEMENTS, dtype_of

ELEMENT_NUMBERS = {name: number for number, name in enumerate(ELEMENTS)}
WORDS = {"True": True, "False": False, "None": None}
ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
NUMBER = re.compile(r"-?(?:inf|nan|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)")
ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


@dataclass
class Outside:
    """What the text of a graph refers to.

    tensors: values of constants by the names of their results, where the text shows `<Tensor>`.
    functions: by the names in `prim::Constant[name="f"]`. Those that are missing are made up,
        without a body, and so are classes in `types`, which are found by qualified name.
    """

    tensors: Mapping[str, Any] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    types: dict[str, T.Type] = field(default_factory=dict)
    unit: CompilationUnit = field(default_factory=CompilationUnit)


def parse_graph(text: str, outside: Outside | None = None, *, schemas: bool = True) -> Graph:
    """The graph that a text describes; ValueError, with the place, if it is none.

    schemas: whether nodes get the schemas that fit their inputs, as the compiler's nodes have.
    """
    graph = _Reader(text, outside or Outside()).whole()
    if schemas:
        from flambeau.jit.passes.schemas import attach_schemas

        attach_schemas(graph)
    return graph


class _Reader(TypeReader):
    """Reads from `self.at` on; the values that have been named so far are in `self.values`."""

    def __init__(self, text: str, outside: Outside) -> None:
        super().__init__(text, outside.types, outside.unit)
        self.outside = outside
        self.values: dict[str, Value] = {}

    def whole(self) -> Graph:
        graph = self.graph()
        subgraphs: dict[str, Graph] = {}
        while self.takes("with "):
            name = self.must(r"[\w:]+")
            self.expect("=")
            self.values = {}
            subgraphs[name] = self.graph()
        for one in (graph, *subgraphs.values()):
            for node in one.walk():
                if node.kind in subgraphs:
                    node.attributes["Subgraph"] = subgraphs[node.kind]
                    node.kind = node.kind.rpartition("_")[0]
        self.space()
        if self.at < len(self.text):
            raise self.error("the end")
        return graph

    def graph(self) -> Graph:
        graph = Graph()
        self.expect("graph")
        self.block_inputs(graph.block)
        self.nodes(graph.block, "return")
        return graph

    def block_inputs(self, block: Block) -> None:
        self.expect("(")
        while not self.takes(")"):
            name, type = self.declaration()
            self.values[name] = block.add_input(type, _variable(name))
            self.takes(",")
        self.expect(":")

    def declaration(self) -> tuple[str, T.Type]:
        name = self.must(r"%[\w.]+")[1:]
        return name, self.type() if self.takes(":") else T.TENSOR

    def nodes(self, block: Block, end: str) -> None:
        while not self.takes(end):
            block.append(self.node(block.graph))
        for value in self.used():
            block.add_output(value)

    def used(self) -> list[Value]:
        self.expect("(")
        values = []
        while not self.takes(")"):
            name = self.must(r"%[\w.]+")[1:]
            if name not in self.values:
                raise self.error(f"a value that is defined before, not %{name}")
            values.append(self.values[name])
            self.takes(",")
        return values

    def node(self, graph: Graph) -> Node:
        declared = []
        while not self.takes("="):
            declared.append(self.declaration())
            self.takes(",")
        kind = self.must(r"\^?\w+(?:::\w+)?")
        attributes = self.attributes(declared) if self.takes("[") else {}
        if kind == "prim::Constant":
            self.complete_constant(attributes, declared)
        node = Node(graph, kind, self.used(), attributes)
        if self.takes(", scope: "):
            node.scope = self.must(r"[^\s#]+")
        for name, type in declared:
            self.values[name] = node.add_output(type, _variable(name))
        node.source = self.comment()
        while self.takes(f"block{len(node.blocks)}", before=r"\("):
            inner = node.add_block()
            self.block_inputs(inner)
            self.nodes(inner, "->")
        return node

    def comment(self) -> SourceRange | None:
        found = self.match(r"[ \t]*#[ \t]*([^\n]*)")
        place = re.fullmatch(r"(.*):(\d+):(\d+)", found.group(1)) if found else None
        if place is None:
            return None
        column = int(place[3])
        source = Source(" " * (column + 1), place[1], int(place[2]))
        return SourceRange(source, column, column + 1)

    # ---- attributes

    def complete_constant(self, attributes: dict[str, Any],
                          declared: list[tuple[str, T.Type]]) -> None:  # fmt: skip
        """`name="f"` gives the result the type of the function; no value means None."""
        name, type = declared[0]
        if "name" not in attributes:
            attributes.setdefault("value", None)
        elif str(type) == "Function":
            key = attributes["name"]
            made = self.outside.functions.get(key)
            if made is None:
                made = Function(f"__torch__.{key}", self.outside.unit, graph=Graph())
                self.outside.functions[key] = made
            declared[0] = (name, T.FunctionType(made))

    def attributes(self, declared: list[tuple[str, T.Type]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.takes("]"):
            key = self.must(r"\w+")
            self.expect("=")
            if key == "types":
                found[key] = self.type_list()
            elif key == "value" and declared and declared[0][1] == T.TENSOR:
                found[key] = self.tensor(declared[0][0])
            else:
                value = self.literal()
                found[key] = as_type(value, declared[0][1]) if key == "value" else value
            self.takes(",")
        return found

    def type_list(self) -> list[T.Type]:
        self.expect("[")
        found = []
        while not self.takes("]"):
            found.append(self.type())
            self.takes(",")
        return found

    def tensor(self, name: str) -> Any:
        """`{2.5}`, or one that has been handed over: ` 1  2 [ CPULongType{2} ]`, `<Tensor>`."""
        shown = self.match(r"\{([^}]*)\}|<Tensor>|[^\[]*\[ \w+\{[\d,]*\} \]")
        if shown is None:
            raise self.error("a tensor")
        if name in self.outside.tensors:
            return self.outside.tensors[name]
        if shown.group(1) is None:
            raise self.error(f"a tensor that has been handed over for %{name}")
        return self.single_tensor(shown.group(1))

    def single_tensor(self, shown: str) -> Any:
        from flambeau._tensor.conversion import tensor

        element = self.elements_of_line()
        number = complex(*map(float, shown[1:-1].split(","))) if "(" in shown else float(shown)
        return tensor(number, dtype=dtype_of(ELEMENT_NUMBERS.get(element, 6)))

    def elements_of_line(self) -> str:
        """The word `Long` of `%3 : Long(requires_grad=0) = …` in the line at hand."""
        start = self.text.rfind("\n", 0, self.at) + 1
        found = re.match(r"\s*%[\w.]+ : (\w+)", self.text[start : self.at])
        return found.group(1) if found else ""

    def literal(self) -> Any:
        if self.takes("["):
            return self.literals("]")
        if self.takes("("):
            return tuple(self.literals(")"))
        if self.takes("{"):
            return self.dictionary()
        self.space()
        if self.text.startswith('"', self.at):
            return self.string()
        number = self.match(rf"({NUMBER.pattern})\+?({NUMBER.pattern})j")
        if number is not None:
            return complex(float(number.group(1)), float(number.group(2)))
        number = self.match(rf"{NUMBER.pattern}(?![\w.])")
        if number is not None:
            return _number(number.group())
        if self.takes("annotate("):
            self.match(r"\w+(\[[^(]*?\])?, ?")
            return self.in_brackets()
        if self.takes("torch.device("):
            return self.in_brackets()
        word = self.must(r"[\w.]+")
        return WORDS.get(word, word)

    def in_brackets(self) -> Any:
        value = self.literal()
        self.expect(")")
        return value

    def literals(self, end: str) -> list[Any]:
        found = []
        while not self.takes(end):
            found.append(self.literal())
            self.takes(",")
        return found

    def dictionary(self) -> dict[Any, Any]:
        found = {}
        while not self.takes("}"):
            key = self.literal()
            self.expect(":")
            found[key] = self.literal()
            self.takes(",")
        return found

    def string(self) -> str:
        shown = self.must(r'"(?:[^"\\]|\\.)*"')[1:-1]
        return ESCAPE.sub(_unescaped, shown.encode()).decode(errors="replace")


def _variable(name: str) -> str:
    """The name of a value; numbers are given anew."""
    return "" if name.isdecimal() else name


def _unescaped(found: re.Match[bytes]) -> bytes:
    what = found.group(1).decode()
    return bytes([int(what, 8)]) if len(what) == 3 else ESCAPED.get(what, what).encode()


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def as_type(value: Any, type: T.Type) -> Any:
    """A literal as a value of a type: 1 as True, 3 as 3.0, "cpu" as a device."""
    if isinstance(type, T.OptionalType):
        return value if value is None else as_type(value, type.inner)
    if isinstance(type, T.ListType):
        return [as_type(element, type.element) for element in value]
    if isinstance(type, T.TupleType):
        return tuple(map(as_type, value, type.elements))
    if isinstance(type, T.DictType):
        return {as_type(k, type.key): as_type(v, type.value) for k, v in value.items()}
    if type == T.NONE or value is None:
        return None
    if isinstance(type, T.EnumType) and type.python is not None:
        return type.python[value.rpartition(".")[2]]
    if type == T.DEVICE:
        from flambeau._core.device import device

        return device(value)
    wanted = {T.BOOL: bool, T.FLOAT: float, T.COMPLEX: complex}.get(type)  # type: ignore[call-overload]
    return wanted(value) if wanted is not None else value
