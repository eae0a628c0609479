"""A module's attributes as constants of its methods.

An attribute stays one if a method assigns to it, writes to it in place, or hands it to code that
is not known, and if it is an object of a script class. All others become constants, and the frozen
module has only what stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.ir.values import ScriptObject
from flambeau.jit.passes.alias import AliasInfo
from flambeau.jit.passes.common import eliminate_common
from flambeau.jit.passes.constants import (
    pool_constants,
    propagate_constants,
    propagate_immutable_constants,
)
from flambeau.jit.passes.frozen import settle_dimensions
from flambeau.jit.passes.inlining import inline
from flambeau.jit.passes.peepholes import peephole
from flambeau.jit.passes.tuples import lower_simple_tuples

Path = tuple[str, ...]


def freeze_module(module: Any, preserved: Sequence[str] = ()) -> Any:
    """A copy of a compiled module in which attributes are constants.

    preserved: methods that are kept beside `forward`, and attributes that stay, those of
        submodules with their path: "block.weight".

    Raises:
        RuntimeError: the module has no attribute of that name.
    """
    methods = [name for name in ("forward", *preserved) if name in module._type.methods]
    graphs = {name: _inlined(module._type.methods[name]) for name in methods}
    frozen = _Freezer(module, graphs)
    frozen.kept |= {
        _known_path(module, name) for name in preserved if name not in module._type.methods
    }
    return frozen.module()


def _known_path(module: Any, name: str) -> Path:
    *places, last = name.split(".")
    type = module._type
    for place in (*places, last):
        known = isinstance(type, T.ClassType) and place in type.attributes
        if not known:
            raise RuntimeError(f"Unknown name: {name}")
        type = type.attributes[place].type
    return (*places, last)


def _inlined(function: Function) -> Graph:
    graph = function.graph.copy()
    inline(graph)
    graph.erase_facts()
    return graph


@dataclass
class _Freezer:
    """Paths lead from the module to what it holds: `("blocks", "0", "weight")`."""

    root: Any
    graphs: dict[str, Graph]
    kept: set[Path] = field(default_factory=set)

    def module(self) -> Any:
        """The frozen module."""
        for graph in self.graphs.values():
            self._settle_mode(graph)
        for graph in self.graphs.values():
            self._keep_assigned(graph)
        for graph in self.graphs.values():
            self._keep_written(graph)
        frozen = _Kept(self.root, self.kept).module(())
        for name, graph in self.graphs.items():
            self._fold(graph)
            self._retype(graph, frozen)
            _simplify(graph)
            _add_method(frozen, self.root._type.methods[name], graph)
        return frozen

    def value_at(self, path: Path) -> Any:
        """What an attribute is; tensors without history."""
        value: Any = self.root
        for name in path:
            value = getattr(value, name)
        if isinstance(value, Tensor):
            return value.detach()  # type: ignore[attr-defined]
        return value

    def paths(self, graph: Graph, known: dict[Value, Path]) -> Iterator[tuple[Node, Path]]:
        """The nodes that read or set attributes of known modules, and the attributes' paths."""
        for node in graph.walk():
            inner = node.attributes.get("Subgraph")
            if inner is not None:
                pairs = zip(inner.inputs, node.inputs, strict=True)
                yield from self.paths(inner, {a: known[b] for a, b in pairs if b in known})
            if node.kind not in ("prim::GetAttr", "prim::SetAttr") or node.inputs[0] not in known:
                continue
            path = (*known[node.inputs[0]], node.attributes["name"])
            if node.kind == "prim::GetAttr" and _is_module(node.output.type):
                known[node.output] = path
            yield node, path

    def _settle_mode(self, graph: Graph) -> None:
        """Leave out what is done in training only, as counting batches."""
        for node, path in list(self.paths(graph, {graph.inputs[0]: ()})):
            if path[-1] == "training" and node.kind == "prim::GetAttr":
                with node.graph.inserting(node):
                    node.output.replace_by(node.graph.constant(self.value_at(path)))
        propagate_immutable_constants(graph)

    def _keep_assigned(self, graph: Graph) -> None:
        for node, path in self.paths(graph, {graph.inputs[0]: ()}):
            if node.kind == "prim::SetAttr" or not self._may_be_constant(path, node):
                self.kept.add(path)

    def _may_be_constant(self, path: Path, node: Node) -> bool:
        if _is_module(node.output.type):
            users = (user for user, _ in node.output.users)
            return all(isinstance(user, Node) and user.kind in READERS for user in users)
        return not isinstance(self.value_at(path), ScriptObject)

    def _keep_written(self, graph: Graph) -> None:
        """Attributes that are written to in place; whether they are is seen once they are
        constants, as nothing else is then the same thing.
        """
        trial = graph.copy()
        constants = self._fold(trial)
        alias = AliasInfo(trial)
        for value, path in constants.items():
            if value.users and alias.has_writers(value, deep=True):
                self.kept.add(path)

    def _fold(self, graph: Graph) -> dict[Value, Path]:
        """Replace what may be by constants; where those came from."""
        found: dict[Value, Path] = {}
        for node, path in list(self.paths(graph, {graph.inputs[0]: ()})):
            if node.kind == "prim::SetAttr" or path in self.kept or _is_module(node.output.type):
                continue
            with node.graph.inserting(node):
                made = node.graph.constant(self.value_at(path), node.output.type)
            made.name = node.output.name
            node.output.replace_by(made)
            found[made] = path
        return found

    def _retype(self, graph: Graph, frozen: Any) -> None:
        graph.inputs[0].type = frozen._type
        for node, path in self.paths(graph, {graph.inputs[0]: ()}):
            if node.kind == "prim::GetAttr" and node.output.users and _is_module(node.output.type):
                value: Any = frozen
                for name in path:
                    value = getattr(value, name, None)
                node.output.type = getattr(value, "_type", node.output.type)


READERS = frozenset(("prim::GetAttr", "prim::SetAttr", "prim::fork"))
"""What a module may be used by if its attributes become constants."""


def _is_module(type: T.Type) -> bool:
    return isinstance(type, T.ClassType) and type.is_module


@dataclass
class _Kept:
    """Makes modules that have only what stays."""

    root: Any
    paths: set[Path]

    def module(self, place: Path) -> Any:
        """The module at a path."""
        from flambeau.jit.modules.script_module import RecursiveScriptModule

        original = self.root
        for name in place:
            original = getattr(original, name)
        old: T.ClassType = original._type
        assert old.unit is not None
        type = old.unit.add_class(old.qualified_name, is_module=True)
        values = {}
        for name, attribute in old.attributes.items():
            path = (*place, name)
            below = any(kept[: len(path)] == path for kept in self.paths)
            if not below:
                continue
            value = getattr(original, name)
            if _is_module(attribute.type) and path not in self.paths:
                value = self.module(path)
            type.add(name, getattr(value, "_type", attribute.type), attribute.kind)
            values[name] = value
        return RecursiveScriptModule.build(type, values)


def _simplify(graph: Graph) -> None:
    for _ in range(2):  # what one finds out lets another find out more
        peephole(graph)
        settle_dimensions(graph)
        propagate_constants(graph)
        lower_simple_tuples(graph)
    eliminate_common(graph)
    pool_constants(graph)


def _add_method(module: Any, original: Function, graph: Graph) -> None:
    type: T.ClassType = module._type
    schema = original.schema
    own = replace(schema.arguments[0], type=type)
    schema = replace(schema, arguments=(own, *schema.arguments[1:]))
    name = original.name
    assert type.unit is not None
    made = Function(f"{type.qualified_name}.{name}", type.unit, graph=graph, schema=schema)
    type.methods[name] = made
