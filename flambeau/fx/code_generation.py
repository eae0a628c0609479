"""From a graph to the Python source of its `forward`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import flambeau._core.device as places
from flambeau._core.dtype import dtype
from flambeau._core.layout import layout, memory_format
from flambeau.fx.namespace import ILLEGAL, Namespace
from flambeau.fx.node import Node, map_arg
from flambeau.fx.qualified_names import function_name, type_name

if TYPE_CHECKING:
    from flambeau.fx.graph import Graph

INFIX = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}",
    "mul": "{} * {}", "sub": "{} - {}", "truediv": "{} / {}", "floordiv": "{} // {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}  # fmt: skip
IN_PLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """Source text, and the names that it uses from outside."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


def standard_globals() -> dict[str, Any]:
    """What every generated function finds bound."""
    import importlib

    return {
        "inf": math.inf,
        "nan": math.nan,
        "NoneType": type(None),
        "torch": importlib.import_module("flambeau"),
        "device": places.device,
        "pytree": importlib.import_module("flambeau.utils._pytree"),
    }


class CodeGen:
    """Writes the source of a graph. Subclasses may write another head, input or output."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The statement that returns."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """What is handed to the placeholders of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns for the output of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further names for the generated code."""
        return []


@dataclass
class Writer:
    """The state of writing one function."""

    graph: Graph
    root: str
    namespace: Namespace
    verbose: bool = False
    told: str = "at first nothing"
    globals: dict[str, Any] = field(default_factory=standard_globals)
    free: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    returns: str = ""

    def write(self, codegen: CodeGen) -> PythonCode:
        """All of it."""
        self.globals.update(codegen.additional_globals())
        last_uses = _last_uses(self.graph)
        for node in self.graph.nodes:
            line = self._statement(node, codegen)
            if line is not None:
                self._tell_where(node)
                self.body.append(f"{line}{self._deletion(node, last_uses)}")
        head = codegen.gen_fn_def(self.free, self.returns)
        body = "\n".join(f"    {line}" if line else "" for line in self.body or ["pass"])
        return PythonCode(f"\n\n\n{head}\n{body}\n    ", self.globals)

    def _tell_where(self, node: Node) -> None:
        """A comment with the line of the program, where that is another one than before."""
        if not self.verbose or node.op in {"placeholder", "output"}:
            return
        trace = node.stack_trace or ""
        if trace == self.told:
            return
        self.told = trace
        lines = trace.strip().splitlines()
        place = lines[-2].strip() if len(lines) > 1 else ""
        comment = f"# {place}" if place else "# No stacktrace found for following nodes"
        self.body += ["", comment] if self.body else [comment]

    def _deletion(self, node: Node, last_uses: dict[Node, list[Node]]) -> str:
        """Drop references that no later step needs, so that memory is free early."""
        if node.op in {"placeholder", "output"}:
            return ""
        names = [repr(used) for used in last_uses.get(node, [])]
        if not node.users:
            names.append(repr(node))
        return f";  {' = '.join(names)} = None" if names else ""

    def _statement(self, node: Node, codegen: CodeGen) -> str | None:
        if node.op == "placeholder":
            return self._input(node)
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type(node.type)}"
            return codegen.generate_output(Value(self, node.args[0]))
        if node.op == "call_function":
            return self._function(node)
        return f"{self._typed(node)} = {self._expression(node)}"

    def _typed(self, node: Node) -> str:
        kind = f" : {self.type(node.type)}" if node.type is not None else ""
        return f"{node!r}{kind}"

    def _input(self, node: Node) -> str | None:
        target = str(node.target)
        kind = f" : {self.type(node.type)}" if node.type is not None else ""
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.free.append(f"{target}{kind}{default}")
        plain = target.replace("*", "")
        return f"{node!r} = {plain}" if plain != repr(node) else None

    def _expression(self, node: Node) -> str:
        if node.op == "get_attr":
            return attribute_path(self.root, str(node.target))
        if node.op == "call_module":
            path = attribute_path(self.root, str(node.target))
            return f"{path}({self._arguments(node.args, node.kwargs)})"
        receiver = self.value(node.args[0])
        return f"{receiver}.{node.target}({self._arguments(node.args[1:], node.kwargs)})"

    def _function(self, node: Node) -> str:
        target: Any = node.target
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            if name in INFIX:
                words = map(self.value, node.args)
                return f"{self._typed(node)} = {INFIX[name].format(*words)}"
            if name in IN_PLACE:
                first, *rest = map(self.value, node.args)
                return f"{IN_PLACE[name].format(first, *rest)};  {self._typed(node)} = {first}"
        if target is getattr and _is_plain_attribute(node):
            return f"{self._typed(node)} = {self.value(node.args[0])}.{node.args[1]}"
        called = self.name_of(function_name(target), target)
        return f"{self._typed(node)} = {called}({self._arguments(node.args, node.kwargs)})"

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        by_name = [f"{key} = {self.value(value)}" for key, value in kwargs.items()]
        return ", ".join([*map(self.value, args), *by_name])

    def value(self, value: Any) -> str:
        """An argument as source."""
        return repr(Value(self, value))

    def name_of(self, dotted: str, obj: Any) -> str:
        """How generated code speaks of an object: by a path from torch, or as a global."""
        if dotted.startswith("torch.") and not dotted.startswith("torch._dynamo"):
            return dotted
        wanted = "_operator_" + obj.__name__ if dotted.startswith("_operator.") else dotted
        name = ILLEGAL.sub("_", wanted)
        if self.globals.get(name, obj) is not obj:
            name = self.namespace.create_name(name, obj)
        self.globals[name] = obj
        return name

    def type(self, kind: Any) -> str:
        """A type as an annotation."""
        if kind is None or kind == ():
            return "()" if kind == () else "None"
        arguments = getattr(kind, "__args__", None)
        if arguments and hasattr(kind, "__origin__"):
            inside = ", ".join(map(self.type, arguments))
            return f"{self.type(kind.__origin__)}[{inside}]"
        if kind is ...:
            return "..."
        return self.name_of(type_name(kind), kind)


class Value:
    """Something whose `repr` is source for it."""

    def __init__(self, writer: Writer, value: Any) -> None:
        self.writer, self.value = writer, value

    def __repr__(self) -> str:
        value, tell = self.value, self.writer.value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            name = self.writer.name_of(type_name(type(value)), type(value))
            return f"{name}({', '.join(map(tell, value))})"
        if isinstance(value, tuple):
            return f"({', '.join(map(tell, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(tell, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {tell(item)}" for key, item in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({tell(value.start)}, {tell(value.stop)}, {tell(value.step)})"
        if callable(value) and not isinstance(value, Node | type | dtype | layout | memory_format):
            return self.writer.name_of(function_name(value), value)
        if isinstance(value, type):
            return self.writer.type(value)
        return repr(value)


def _is_plain_attribute(node: Node) -> bool:
    if len(node.args) != 2 or not isinstance(node.args[1], str):
        return False
    return node.args[1].isidentifier()


def attribute_path(root: str, dotted: str) -> str:
    """`self.layers.weight`; a name that is none in Python is asked for by `getattr`."""
    path = root
    for part in dotted.split("."):
        path = f"{path}.{part}" if part.isidentifier() else f'getattr({path}, "{part}")'
    return path


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For each step the nodes that none after it uses."""
    seen: dict[Node, Node] = {}
    last: dict[Node, list[Node]] = {}

    def note(used: Node, user: Node) -> Node:
        if used not in seen:
            seen[used] = user
            last.setdefault(user, []).append(used)
        return used

    for node in reversed(graph.nodes):
        map_arg((node.args, node.kwargs), partial(note, user=node))
    return last
