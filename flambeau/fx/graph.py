"""`torch.fx.graph`: the steps of a function, in order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from flambeau.fx.code_generation import INFIX, CodeGen, PythonCode, Writer
from flambeau.fx.namespace import Namespace, snake_case
from flambeau.fx.node import Node, Target, map_arg

if TYPE_CHECKING:
    from flambeau.fx.graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

_Namespace = Namespace
_snake_case = snake_case
magic_methods = {name: form for name, form in INFIX.items() if name not in {"and_", "or_"}} | {
    "and": INFIX["and_"],
    "or": INFIX["or_"],
}
reflectable_magic_methods = {
    name: INFIX[name]
    for name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift")
} | {"and": INFIX["and_"], "or": INFIX["or_"], "xor": INFIX["xor"], "getitem": INFIX["getitem"]}


class _node_list:  # noqa: N801
    """The nodes of a graph; nodes may be added and erased while it is walked."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._count

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._ring, self.direction)
        while node is not self.graph._ring:
            following = getattr(node, self.direction)
            if not node._erased:
                yield node
            node = getattr(node, self.direction) if not node._erased else following

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """Steps in order, each a Node; from these comes the code of a GraphModule.

    owning_module: the module whose attributes `get_attr` and `call_module` speak of.
    tracer_cls, tracer_extras: who made the graph, kept for those who make one again.
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: Any = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._owning_module, self._codegen = owning_module, CodeGen()
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._graph_namespace, self._count = Namespace(), 0
        self._ring = Node(self, "", "root", "", (), {})  # before the first step, after the last
        self._insert: Callable[[Node], Any] = self._ring.prepend

    @property
    def owning_module(self) -> GraphModule | None:
        """The module whose graph this is, if one has it."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """All nodes in order; `reversed` goes backwards."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The step that returns."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> Any:
        """Nodes of a kind, and with `target` of one target, in order."""
        if op == "call_function" and target is None:
            raise AssertionError("target must be specified for call_function")
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    # ---- making nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a step at the place where steps are inserted: at the end, unless told otherwise."""
        args, kwargs = args or (), kwargs or {}
        candidate = name if name is not None else self._target_to_str(target)
        unique = self._graph_namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(unique, node)
        self._insert(node)
        self._count += 1
        return node

    def _target_to_str(self, target: Target) -> str:
        name = target if isinstance(target, str) else target.__name__
        if isinstance(target, str) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input; without a default it has to be given."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a step that takes an attribute of the module, such as `layer.weight`."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the step that returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of another graph's node; its arguments go through `arg_transform`."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Add copies of all nodes of a graph that are not in `val_map`; return its output's value.

        return_output_node: a pair of that value and the node of the other graph.
        """
        steps = [step for step in g.nodes if step not in val_map]
        kinds = [step.op for step in steps]
        end = kinds.index("output") if "output" in kinds else len(steps)
        for step in steps[:end]:
            val_map[step] = self.node_copy(step, val_map.__getitem__)
        if end == len(steps):
            return None
        value = map_arg(steps[end].args[0], val_map.__getitem__)
        return (value, steps[end]) if return_output_node else value

    # ---- changing

    def erase_node(self, to_erase: Node) -> None:
        """Take a step away, which nobody may use.

        Raises:
            RuntimeError: somebody uses it, or it is of another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._prev._next, to_erase._next._prev = to_erase._next, to_erase._prev
        to_erase._erased = True  # it keeps its neighbours: a walk that stands on it goes on
        self._count -= 1
        to_erase._update_args_kwargs((), {})

    def inserting_before(self, n: Node | None = None) -> Any:
        """While the block runs, or from now on, steps are added in front of a node."""
        node = self._ring._next if n is None else n
        return _InsertPoint(self, node.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """While the block runs, or from now on, steps are added behind a node."""
        node = self._ring if n is None else n
        return _InsertPoint(self, node.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take away every step that nobody uses and that does nothing else; return whether any."""
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            impure = is_impure_node(node) if is_impure_node is not None else node.is_impure()
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Check that each step uses earlier ones of this graph, and that targets are there.

        Raises:
            RuntimeError: it is not so.
        """
        seen: set[Node] = set()
        names: set[str] = set()

        def check(used: Node, node: Node) -> Node:
            if used.graph is not self:
                raise RuntimeError(
                    f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was "
                    "used as an argument! If you are copying nodes from another graph, make sure "
                    f"to use ``arg_transform`` on node_copy() to remap values\n{self}"
                )
            if used not in seen:
                raise RuntimeError(
                    f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                    f"Please check that Nodes in the graph are topologically ordered\n{self}"
                )
            return used

        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            map_arg((node.args, node.kwargs), partial(check, node=node))
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        self._lint_targets()

    def _lint_targets(self) -> None:
        if self.owning_module is None:
            return
        for node in self.nodes:
            if node.op not in {"get_attr", "call_module"}:
                continue
            found: Any = self.owning_module
            for part in str(node.target).split("."):
                if not hasattr(found, part):
                    raise RuntimeError(
                        f"Node {node} target {node.target} references nonexistent attribute "
                        f"{part} of {type(found).__name__}"
                    )
                found = getattr(found, part)

    # ---- text and code

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the source."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """What a call's arguments are for the placeholders."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the output's value is for the caller."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, *, verbose: bool = False) -> PythonCode:
        """The source of a function; `root_module` is the name by which it knows the module.

        verbose: comments say where the program made the steps.
        """
        namespace = Namespace()
        for node in self.nodes:
            namespace.associate_name_with_obj(node.name, node)
        return Writer(self, root_module, namespace, verbose).write(self._codegen)

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Print nodes as a table."""
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [head, *(
            tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes
        )]  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        rows.insert(1, tuple("-" * width for width in widths))
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        made._codegen = copy.deepcopy(self._codegen)
        values: dict[Node, Node] = {}
        found = made.graph_copy(self, values, return_output_node=True)
        if found is not None:
            value, old = found
            output = made.output(value, old.type)
            output.meta = copy.copy(old.meta)
        memo.update({id(old): new for old, new in values.items()})
        memo[id(self)] = made
        return made


class _InsertPoint:
    """The place where steps are added, until the block ends."""

    def __init__(self, graph: Graph, insert: Callable[[Node], Any]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before
