"""`torch.fx.passes.split_module`: one graph as several submodules, called one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, map_arg
from flambeau.nn.module import Module

__all__ = ["split_module"]


@dataclass
class Part:
    """The nodes of one submodule, what it takes from others, and what others take from it."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[Node, None] = field(default_factory=dict)
    outputs: dict[Node, None] = field(default_factory=dict)
    before: set[str] = field(default_factory=set)
    """Parts that have to run first."""


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    partition_affix: str | None = None,
) -> GraphModule:
    """A module with a submodule `submod_<key>` for each key that `split_callback` gives nodes.

    qualname_map: takes, for each path of a submodule in the result, its path before.
    keep_original_order: parts run in the order of their first nodes.

    Raises:
        RuntimeError: parts need one another in a circle.
    """
    affix = f"{partition_affix}_" if partition_affix else ""
    parts: dict[str, Part] = {}
    part_of: dict[Node, Part] = {}
    for node in m.graph.nodes:
        if node.op in {"placeholder", "get_attr", "output"}:
            continue
        key = str(split_callback(node))
        part = parts.setdefault(key, Part(f"submod_{affix}{key}"))
        part.nodes.append(node)
        part_of[node] = part
    _connect(m.graph, part_of)
    order = list(parts.values()) if keep_original_order else _sorted(list(parts.values()))
    held: dict[str, Any] = {
        part.name: _made(part, root_m, qualname_map, bool(keep_original_node_name))
        for part in order
    }
    return GraphModule(held | _attributes(m), _main(m.graph, order))


def _connect(graph: Graph, part_of: dict[Node, Part]) -> None:
    """Who takes what from whom; attributes are asked for where they are used."""
    for node in graph.nodes:
        user = part_of.get(node)
        for used in node.all_input_nodes:
            maker = part_of.get(used)
            if maker is user and maker is not None:
                continue
            if maker is not None:
                maker.outputs.setdefault(used)
            if user is not None and used.op != "get_attr":
                user.inputs.setdefault(used)
                if maker is not None:
                    user.before.add(maker.name)


def _sorted(parts: list[Part]) -> list[Part]:
    done: list[Part] = []
    waiting = list(parts)
    while waiting:
        names = {part.name for part in done}
        ready = [part for part in waiting if part.before <= names]
        if not ready:
            raise RuntimeError("cycle exists between partitions!")
        done.append(ready[0])
        waiting.remove(ready[0])
    return done


def _made(
    part: Part, root: Module, qualname_map: dict[str, str] | None, keep_names: bool
) -> GraphModule:
    graph = Graph()
    values: dict[Node, Node] = {}
    held: dict[str, Any] = {}
    for used in part.inputs:
        values[used] = graph.placeholder(used.name, used.type)
        values[used].meta = dict(used.meta)
    for node in part.nodes:
        for used in node.all_input_nodes:
            if used.op == "get_attr" and used not in values:
                values[used] = _attribute(graph, used, root, held)
        target = node.target
        if node.op == "call_module":
            target = str(node.target).replace(".", "_")
            held[target] = root.get_submodule(str(node.target))
            if qualname_map is not None:
                qualname_map[f"{part.name}.{target}"] = str(node.target)
        args = map_arg(node.args, values.__getitem__)
        kwargs = map_arg(node.kwargs, values.__getitem__)
        name = node.name if keep_names else None
        values[node] = graph.create_node(node.op, target, args, kwargs, name, node.type)
        values[node].meta = dict(node.meta)
    results = tuple(values[node] for node in part.outputs)
    if results:
        graph.output(results[0] if len(results) == 1 else results)
    return GraphModule(held, graph, part.name)


def _attribute(graph: Graph, node: Node, root: Any, held: dict[str, Any]) -> Node:
    target = str(node.target).replace(".", "_")
    value = root
    for step in str(node.target).split("."):
        value = getattr(value, step)
    held[target] = value
    return graph.get_attr(target)


def _attributes(m: GraphModule) -> dict[str, Any]:
    """What the outer graph returns directly, without a part."""
    held: dict[str, Any] = {}
    for node in m.graph.output_node().all_input_nodes:
        if node.op == "get_attr":
            value: Any = m
            for step in str(node.target).split("."):
                value = getattr(value, step)
            held[str(node.target)] = value
    return held


def _main(old: Graph, order: list[Part]) -> Graph:
    graph = Graph()
    values: dict[Node, Node] = {}
    direct = set(old.output_node().all_input_nodes)
    for node in old.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and node in direct):
            values[node] = graph.node_copy(node)
    for part in order:
        call = graph.call_module(part.name, tuple(values[node] for node in part.inputs))
        outputs = list(part.outputs)
        for i, node in enumerate(outputs):
            values[node] = _item(graph, call, i) if len(outputs) > 1 else call
    graph.output(map_arg(old.output_node().args[0], values.__getitem__))
    return graph


def _item(graph: Graph, call: Node, index: int) -> Node:
    import operator

    return graph.call_function(operator.getitem, (call, index))
