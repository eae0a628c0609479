"""From a graph to the text of a Python function that calls its operators one after the other.

    def f(v0, v1):
        v2 = mul(v0, v1)
        if v3:
            ...

Nothing of a program is pasted into the text: variables are numbered, operators and constants other
than small numbers stand in the function's scope. Blocks that lie deeper than Python allows become
functions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value, captured
from flambeau.jit.operators import calls
from flambeau.jit.operators.forms import Given, call_text
from flambeau.jit.operators.registry import SCOPE
from flambeau.jit.operators.sizes import estimate_of, growth_of
from flambeau.jit.operators.work import work_of
from flambeau.jit.run.contexts import Entered
from flambeau.jit.run.node_text import NODES, check_class

DEEPEST = 15
"""Blocks within each other in one Python function, which allows 20 loops."""


class Writer:
    """Writes the functions of one graph: `lines`, their `scope`, and the node of each line."""

    def __init__(self, resolve: Callable[[Any], Any]) -> None:
        self.resolve = resolve  # gives what stands in the scope for a function that is called
        self.lines: list[str] = []
        self.nodes: list[Node | None] = []
        self.scope: dict[str, Any] = dict(SCOPE)
        self.known: dict[int, str] = {}
        self.names: dict[Value, str] = {}
        self.depth = 0
        self.node: Node | None = None
        self.later: list[Callable[[], None]] = []
        self.meter: str | None = None
        self.checked: set[Value] = set()  # objects whose class is known for sure

    def write(self, graph: Graph, name: str = "f") -> None:
        """Write a graph as a function, and then what it had to leave to others."""
        parameters = [self.name(value) for value in graph.inputs]
        self.function(name, parameters, graph.block, graph.inputs[:1])
        while self.later:
            self.later.pop()()

    def function(self, name: str, parameters: list[str], block: Block,
                 checked: Sequence[Value] = ()) -> None:  # fmt: skip
        """Write one function. checked: parameters whose class is looked at first."""
        self.put(f"def {name}({', '.join(parameters)}):", 0)
        self.depth = 1
        if self.meter is not None:
            self.put(f"{self.meter}.enter()")
            self.put("try:")
            self.depth += 1
        for value in checked:
            check_class(self, value)
            self.checked.add(value)
        with self.leaving_blocks(block):
            self.body(block)
            self.put(f"return {self.listed(block.outputs)}")
        if self.meter is not None:
            self.depth -= 1
            self.put("finally:")
            self.put(f" {self.meter}.leave()")

    @contextmanager
    def leaving_blocks(self, *blocks: Block) -> Iterator[None]:
        """Around a function's body: `with` blocks in it are left if an error ends it."""
        if not any(node.kind == "prim::Enter" for block in blocks for node in block.walk()):
            yield
            return
        self.put(f"entered = {self.bind(Entered, 'Entered')}()")
        self.put("try:")
        self.depth += 1
        yield
        self.depth -= 1
        self.put("finally:")
        self.put(" entered.leave_all()")

    def listed(self, values: Sequence[Value]) -> str:
        """One value by itself, several as a tuple."""
        return ", ".join(self.text(value) for value in values) or "None"

    # ---- names

    def put(self, text: str, depth: int | None = None) -> None:
        """One line."""
        self.lines.append(" " * (self.depth if depth is None else depth) + text)
        self.nodes.append(self.node)

    def name(self, value: Value) -> str:
        """The variable of a value."""
        found = self.names.get(value)
        if found is None:
            found = self.names[value] = f"v{len(self.names)}"
        return found

    def bind(self, thing: Any, hint: str = "c") -> str:
        """A name for an object in the functions' scope."""
        found = self.known.get(id(thing))
        if found is None:
            hint = hint if hint.isidentifier() and hint.isascii() else "f"
            found = self.known[id(thing)] = f"{hint}_{len(self.known)}"
            self.scope[found] = thing
        return found

    def text(self, value: Value) -> str:
        """A value in the text: its variable, or a constant."""
        if value in self.names:
            return self.names[value]
        if value.is_constant and not isinstance(value.type, T.FunctionType):
            if type(value.constant) is int and value.type == T.STRING:  # of an archive that lies
                return self.bind(value.constant)
            return self.constant(value.constant)
        return self.name(value)

    def constant(self, value: Any) -> str:
        """A constant: a literal if it is small and plain, else a name in the scope."""
        if value is None or value is True or value is False:
            return str(value)
        if type(value) is int and abs(value) < 2**63:
            return str(value) if value >= 0 else f"({value})"
        return self.bind(value)

    def given(self, value: Value) -> Given:
        """A value as an argument of an operator."""
        if value.is_constant and value not in self.names:
            return Given(self.text(value), True, value.constant)
        return Given(self.text(value))

    # ---- blocks

    def body(self, block: Block) -> None:
        """The nodes of a block."""
        for node in block:
            self.node = node
            special = NODES.get(node.kind)
            if special is not None:
                special(self, node)
            else:
                self.operator(node)
        self.node = None

    def assign(self, node: Node, text: str) -> None:
        """`results = text`."""
        targets = [self.name(value) for value in node.outputs]
        if not targets:
            self.put(text)
        else:
            self.put(f"{', '.join(targets)} = {text}")

    def operator(self, node: Node) -> None:
        """A call of an operator."""
        schema = node.schema or _fitting(node)
        form = calls.find(schema) or calls.refusing(schema)
        text = call_text(form, [self.given(v) for v in node.inputs], self.bind)
        if self.meter is not None:
            self.measured(node, schema)
        writes = schema.returns and schema.returns[0].written
        if form.piece and writes and node.outputs:
            self.put(text)
            self.assign(node, self.text(node.inputs[0]))
        else:
            self.assign(node, text)
        if self.meter is not None and not any(result.alias for result in schema.returns):
            self.put(f"{self.meter}.made({', '.join(self.name(v) for v in node.outputs)})")

    def measured(self, node: Node, schema: Any) -> None:
        """Count the work of an operator, and ask for the memory of its result, before it runs."""
        inputs = ", ".join(self.text(value) for value in node.inputs)
        work = work_of(schema)
        if work is None:
            self.put(f"{self.meter}.tick()")
        else:
            self.put(f"{self.meter}.work({self.bind(work, 'work')}, {inputs})")
        for method, estimate in (("room", estimate_of(schema)), ("grow", growth_of(schema))):
            if estimate is not None:
                self.put(f"{self.meter}.{method}({self.bind(estimate, 'size')}, {inputs})")

    def spill(self, node: Node) -> bool:
        """Leave a node with blocks to a function of its own, if it lies too deep."""
        if self.depth < DEEPEST:
            return False
        free = captured([node])
        name = f"inner_{len(self.nodes)}"
        arguments = ", ".join(self.text(value) for value in free)
        self.assign(node, f"{name}({arguments})")
        names = {value: self.name(value) for value in free}
        self.later.append(lambda: self.spilled(node, name, names))
        return True

    def spilled(self, node: Node, name: str, names: dict[Value, str]) -> None:
        saved, self.names = self.names, dict(names)
        taken = len(saved)
        self.put(f"def {name}({', '.join(names.values())}):", 0)
        self.depth = 1
        for index in range(taken):  # numbers go on where they were
            self.names.setdefault(Value(T.NONE, None, None), f"v{index}")
        self.node = node
        with self.leaving_blocks(*node.blocks):
            NODES[node.kind](self, node)
            self.put(f"return {self.listed(node.outputs)}")
        self.names = saved


def _fitting(node: Node) -> Any:
    """The schema of a node that was made without one."""
    from flambeau.jit.passes.schemas import fitting_schema

    found = fitting_schema(node)
    if found is None:
        raise RuntimeError(f"Unknown builtin op: {node.kind}")
    return found
