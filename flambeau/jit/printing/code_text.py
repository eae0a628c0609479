"""`function.code`: a function as Python code, as torch writes it, and as archives hold it.

def f(x: Tensor,
    n: int) -> Tensor:
  y = torch.add(x, n)
  if torch.gt(n, 0):
    y0 = torch.relu(y)
  else:
    y0 = y
  return y0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, Function, Parameter
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.printing.constants import ConstantTable, constant_text
from flambeau.jit.printing.expressions import expression, joined
from flambeau.jit.printing.identifiers import UniqueNames, base_name
from flambeau.jit.printing.inlining import inlined_nodes
from flambeau.jit.printing.marks import Marks, unmarked

CHOICES = (T.OptionalType, T.UnionType)
LONG_LINE = 40
MOST_TRIPS = 2**63 - 1
"""The number of trips of a `while` loop."""


def code_of(function: Function, constants: ConstantTable | None = None) -> str:
    """The code of a function or method. What it cannot write goes to `constants`."""
    writer = CodeWriter(constants or ConstantTable())
    writer.function(function, typed_self=not is_method(function))
    return writer.text()


def code_with_constants(function: Function) -> tuple[str, dict[str, Any]]:
    """The code, and what it names: `{"c0": tensor}`."""
    constants = ConstantTable()
    text = code_of(function, constants)
    return text, {f"c{index}": value for index, value in enumerate(constants.values)}


def is_method(function: Function) -> bool:
    """Whether the first parameter is an object of the class that the function belongs to."""
    inputs = function.graph.inputs
    if not inputs or not isinstance(inputs[0].type, T.ClassType):
        return False
    return inputs[0].type.qualified_name == function.qualified_name.rpartition(".")[0]


class Dependencies:
    """Classes and functions that code refers to, in the order in which it does so first."""

    def __init__(self) -> None:
        self.found: list[T.Type | Function] = []
        self._known: set[object] = set()

    def add(self, entry: T.Type | Function) -> None:
        """Note a class, NamedTuple, interface, enumeration or function."""
        key: object = entry
        if isinstance(entry, T.TupleType):
            key = entry.qualified_name
        if key not in self._known:
            self._known.add(key)
            self.found.append(entry)

    def add_type(self, type: T.Type) -> None:
        """Note the classes that a type is made of."""
        if isinstance(type, T.FunctionType):
            return
        if getattr(type, "qualified_name", ""):
            self.add(type)
        for part in type.parts:
            self.add_type(part)


class CodeWriter:
    """Writes functions, one below the other."""

    def __init__(self, constants: ConstantTable, dependencies: Dependencies | None = None,
                 marks: Marks | None = None) -> None:  # fmt: skip
        self.constants = constants
        self.dependencies = dependencies or Dependencies()
        self.marks = marks
        self.place: SourceRange | None = None  # what is written now was in the program
        self.lines: list[str] = []
        self.level = 0
        self.names = UniqueNames()
        self.inlined: set[Node] = set()
        self._variables: dict[Value, str] = {}
        self._expressions: dict[Value, str] = {}
        self._waiting: dict[Value, None] = {}  # expressions that stand in no statement yet
        self._annotated: set[Value] = set()  # variables whose type has been written

    def text(self) -> str:
        """What has been written."""
        return "".join(self.lines)

    def line(self, text: str) -> None:
        """One more line, indented."""
        self.lines.append(self.marked(f"{'  ' * self.level}{text}\n", self.place))

    def marked(self, text: str, place: SourceRange | None) -> str:
        """The text with marks that tell its place, if they are wanted."""
        return text if self.marks is None else self.marks.around(text, place)

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Let lines be those of a node."""
        saved, self.place = self.place, node.source
        yield
        self.place = saved

    # ---- functions

    def function(self, function: Function, *, typed_self: bool) -> None:
        """Write a definition. `typed_self`: whether the first parameter's type is written, too."""
        graph = function.graph
        self.names.new_scope()
        parameters = []
        for index, argument in enumerate(function.schema.arguments):
            self.dependencies.add_type(argument.type)
            name = self.names.unique(argument.name)
            self._variables[graph.inputs[index]] = name
            typed = f"{name}: {argument.type.annotation}"
            shown = typed if typed_self or index > 0 else name
            parameters.append(shown + self.default(argument))
        (result,) = (returned.type for returned in function.schema.returns)
        head = f"def {function.name}({(',' + chr(10) + '    ').join(parameters)})"
        self.line(f"{head} -> {result.annotation}:")
        self.dependencies.add_type(result)
        self.level += 1
        self.body(graph)
        self.level -= 1

    def default(self, argument: Parameter) -> str:
        if argument.default is REQUIRED:
            return ""
        return f"={constant_text(argument.default, argument.type, self.constants)}"

    def body(self, graph: Graph) -> None:
        self.inlined |= inlined_nodes(graph.block)
        self.used_constants(graph.block)
        self.block(graph.block, has_more=bool(graph.outputs))
        if graph.outputs:
            self.split_long(graph.outputs)
            self._waiting.clear()
            self.line(f"return {joined(graph.outputs, self.use)}")

    def used_constants(self, block: Block) -> None:
        """Constants stand in place; long ones become variables at the beginning."""
        for node in block:
            self.constants_among(node.inputs)
            for inner in node.blocks:
                self.used_constants(inner)
        self.constants_among(block.outputs)

    def constants_among(self, values: Sequence[Value]) -> None:
        for value in values:
            if value.is_constant and value not in self._variables:
                self.node(value.node)  # type: ignore[arg-type]

    # ---- values

    def use(self, value: Value) -> str:
        """How a value is written: its variable, or the expression."""
        found = self._variables.get(value)
        return self._expressions[value] if found is None else found

    def name(self, values: Sequence[Value]) -> None:
        """Give values variables."""
        for value in values:
            wanted = base_name(value.name) if value.name else "_"
            self._variables[value] = self.names.unique(wanted)

    def is_long(self, text: str) -> bool:
        return len(unmarked(text)) + 2 * self.level >= LONG_LINE

    def split_long(self, values: Sequence[Value]) -> None:
        """Give long expressions variables."""
        for value in values:
            if value in self._waiting and self.is_long(self.use(value)):
                self.define_up_to(value)

    def define_up_to(self, value: Value) -> None:
        """Give an expression a variable, and those before it, which have to run earlier."""
        for one in list(self._waiting):
            assert one.node is not None
            del self._waiting[one]
            self.define(one.node, self._expressions[one])
            if one is value:
                return

    def define(self, node: Node, text: str) -> None:
        """Assign an expression to the results of a node."""
        self.name(node.outputs)
        results = joined(node.outputs, self.use)
        with self.at(node):
            self.line(f"{results} = {text}" if results else text)

    # ---- statements

    def block(self, block: Block, has_more: bool) -> None:
        nodes = list(block)
        if not nodes and not has_more:
            self.line("pass")
        for node in nodes:
            if node.kind != "prim::Constant":
                self.node(node)

    def node(self, node: Node) -> None:
        for value in (*node.inputs, *node.outputs):
            self.dependencies.add_type(value.type)
        self.split_long(node.inputs)
        for value in node.inputs:
            self._waiting.pop(value, None)
        statement = STATEMENTS.get(node.kind)
        if statement is None:
            self.operation(node)
            return
        with self.at(node):
            statement(self, node)

    def operation(self, node: Node) -> None:
        self.note_callee(node)
        text = expression(node, self.use, self.constants)
        is_constant = node.kind == "prim::Constant"
        if node not in self.inlined or (is_constant and self.is_long(text)):
            self.define(node, text)
            return
        self._expressions[node.output] = self.marked(text, node.source)
        if not is_constant:
            self._waiting[node.output] = None

    def note_callee(self, node: Node) -> None:
        if node.kind == "prim::Constant" and isinstance(node.output.type, T.FunctionType):
            self.dependencies.add(node.output.type.function)

    def end_block(self, results: Sequence[Value], values: Sequence[Value]) -> None:
        """Assign what a block computes. A single optional has its type written, once."""
        self.split_long(values)
        for value in values:
            self._waiting.pop(value, None)
        if not results:
            return
        annotation = ""
        if len(results) == 1 and results[0].node is not None and self.is_first_choice(results[0]):
            annotation = f" : {results[0].type.annotation}"
        self.line(f"{joined(results, self.use)}{annotation} = {joined(values, self.use)}")

    def is_first_choice(self, value: Value) -> bool:
        """Whether a variable may hold several types, and nobody has said so yet."""
        if not isinstance(value.type, CHOICES) or value in self._annotated:
            return False
        self._annotated.add(value)
        return True

    def start(self, results: Sequence[Value], values: Sequence[Value]) -> None:
        """Assign what a loop begins with, each with its type where that is not the value's."""
        for result, value in zip(results, values, strict=True):
            annotation = ""
            is_choice = isinstance(result.type, CHOICES)
            if self.is_first_choice(result) if is_choice else result.type != value.type:
                annotation = f": {result.type.annotation}"
            self.line(f"{self.use(result)}{annotation} = {self.use(value)}")

    def branch(self, node: Node) -> None:
        self.name(node.outputs)
        for word, block in zip(
            (f"if {self.use(node.inputs[0])}:", "else:"), node.blocks, strict=True
        ):
            self.line(word)
            self.level += 1
            self.block(block, has_more=bool(node.outputs))
            self.end_block(node.outputs, block.outputs)
            self.level -= 1

    def loop(self, node: Node) -> None:
        (body,) = node.blocks
        counter = body.inputs[0]
        counted = is_for_loop(node)
        self.name(node.outputs)
        for inside, result in zip(body.inputs[1:], node.outputs, strict=True):
            self._variables[inside] = self.use(result)
        self.start(node.outputs, node.inputs[2:])
        self.name([counter])
        if counted:
            self.line(f"for {self.use(counter)} in range({self.use(node.inputs[0])}):")
        else:  # the counter is not used: its variable is the condition
            self.line(f"{self.use(counter)} = {self.use(node.inputs[1])}")
            self.line(f"while {self.use(counter)}:")
        self.level += 1
        carried = body.inputs[counted:]
        self.block(body, has_more=bool(carried))
        self.end_block(carried, body.outputs[counted:])
        self.level -= 1

    def unpack(self, node: Node) -> None:
        self.name(node.outputs)
        results = f"{joined(node.outputs, self.use)}, = " if node.outputs else ""
        self.line(f"{results}{self.use(node.inputs[0])}")

    def set_attribute(self, node: Node) -> None:
        instance, value = map(self.use, node.inputs)
        self.line(f"{instance}.{node.attributes['name']} = {value}")

    def container_index(self, node: Node) -> None:
        self.name(node.outputs)
        result, (container, key) = node.output, map(self.use, node.inputs)
        self.line(f"{self.use(result)} : {result.type.annotation} = {container}[{key}]")

    def fork(self, node: Node) -> None:
        name = self.names.unique("__forked_function")
        graph = node.attributes["Subgraph"]
        self.line(f"def {name}():")
        for parameter, value in zip(graph.inputs, node.inputs, strict=True):
            self._variables[parameter] = self.use(value)
        self.level += 1
        self.body(graph)
        self.level -= 1
        self.define(node, f"fork({name})")

    def enter(self, node: Node) -> None:
        manager = self.use(node.inputs[0])
        entered = ""
        if node.outputs and node.output.users:
            self.name(node.outputs)
            entered = f" as {self.use(node.output)}"
        self.line(f"with {manager}{entered}:")
        self.level += 1

    def exit(self, node: Node) -> None:
        if node.before is not None and node.before.kind == "prim::Enter":
            self.line("pass")
        self.level -= 1


def is_for_loop(node: Node) -> bool:
    """Whether a loop is `for i in range(n)`; others are `while` loops.

    Raises:
        ValueError: it counts, and has a condition: `passes.make_while_loops` has not been called.
    """
    trips, condition = node.inputs[:2]
    (body,) = node.blocks
    endless = trips.is_constant and trips.constant == MOST_TRIPS
    counted = not endless or bool(body.inputs[0].users)
    if counted and not all(
        v.is_constant and v.constant is True for v in (condition, body.outputs[0])
    ):
        raise ValueError("a loop with a number of trips and a condition cannot be written as code")
    return counted


STATEMENTS = {
    "prim::If": CodeWriter.branch, "prim::Loop": CodeWriter.loop,
    "prim::TupleUnpack": CodeWriter.unpack, "prim::ListUnpack": CodeWriter.unpack,
    "prim::SetAttr": CodeWriter.set_attribute, "prim::fork": CodeWriter.fork,
    "prim::ModuleContainerIndex": CodeWriter.container_index,
    "prim::Enter": CodeWriter.enter, "prim::Exit": CodeWriter.exit,
}  # fmt: skip
