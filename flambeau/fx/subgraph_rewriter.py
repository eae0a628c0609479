"""`torch.fx.subgraph_rewriter`: find a pattern in a graph, and put something else in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from flambeau.fx._symbolic_trace import symbolic_trace
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.matching import InternalMatch, find_matches
from flambeau.fx.node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Program = Callable[..., Any] | GraphModule | Graph
Filter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """The node where a pattern was found, and which node stands for which of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """The same, and the nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Program, replacement: Program) -> list[Match]:
    """Replace every place where a pattern is found; places do not overlap.

    Both are functions or modules, which are traced, with the same inputs.
    """
    replaced = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(one.anchor, one.nodes_map) for one in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Program,
    replacement: Program | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same, at places that all filters accept; numbers may differ with `ignore_literals`."""
    wanted = _graph_of(pattern)
    made = None if replacement is None else _graph_of(replacement)
    done: list[ReplacedPatterns] = []
    changed: dict[Node, Node] = {}
    for match in find_matches(wanted, gm.graph, ignore_literals):
        if not all(ask(match, gm.graph, wanted) for ask in match_filters or ()):
            continue
        put = made if replacement_callback is None else replacement_callback(
            match, gm.graph, wanted
        )  # fmt: skip
        if put is None:
            raise AssertionError("Must provide either a replacement or a replacement callback")
        done.append(_replace(gm.graph, match, put, changed))
    _take_attributes(gm, replacement)
    gm.recompile()
    return done


def _graph_of(program: Program) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace(
    graph: Graph, match: InternalMatch, put: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [changed.get(node, node) for node in match.placeholder_nodes]
    places = [node for node in put.nodes if node.op == "placeholder"]
    if len(inputs) != len(places):
        raise AssertionError(f"the pattern has {len(inputs)} inputs, the replacement {len(places)}")
    values = dict(zip(places, inputs, strict=True))
    first = _first_place(graph, match, inputs)
    count = set(graph.nodes)
    with graph.inserting_before(first):
        result = graph.graph_copy(put, values)
    results = result if isinstance(result, tuple | list) else (result,)
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        changed[old] = new
    for node in reversed(match.nodes):
        if not node.users:
            graph.erase_node(node)
    added = [node for node in graph.nodes if node not in count]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _first_place(graph: Graph, match: InternalMatch, inputs: list[Node]) -> Node:
    """Where the new nodes go: behind their inputs, in front of those who use the old ones."""
    order = {node: i for i, node in enumerate(graph.nodes)}
    last_input = max((node for node in inputs if isinstance(node, Node)), key=order.__getitem__,
                     default=None)  # fmt: skip
    inside = set(match.nodes)
    first = next(node for node in graph.nodes if node in inside)
    if last_input is None or order[last_input] < order[first]:
        return first
    return last_input.next


def _take_attributes(gm: GraphModule, replacement: Program | None) -> None:
    """Modules and parameters that the replacement brings along; unused ones go."""
    gm.delete_all_unused_submodules()
    if not isinstance(replacement, GraphModule):
        return
    from flambeau.fx.graph_module import _copy_attribute

    for node in gm.graph.nodes:
        if node.op not in {"call_module", "get_attr"}:
            continue
        if _leads_nowhere(gm, str(node.target)):
            _copy_attribute(replacement, gm, str(node.target))


def _leads_nowhere(module: Any, path: str) -> bool:
    for part in path.split("."):
        if not hasattr(module, part):
            return True
        module = getattr(module, part)
    return False
