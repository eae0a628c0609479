"""Where in a graph a smaller graph is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flambeau.fx.graph import Graph
from flambeau.fx.node import Node

ANYWHERE = ("placeholder", "output")


@dataclass
class InternalMatch:
    """One place: which node stands for which of the pattern.

    anchors: the nodes of the pattern from which it was found: those that it returns.
    """

    anchors: list[Node]
    graph: Graph
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that a replacement takes away, in the order of their graph."""
        found = {found for made, found in self.nodes_map.items() if made.op not in ANYWHERE}
        return [node for node in self.graph.nodes if node in found]


def find_matches(pattern: Graph, graph: Graph, ignore_literals: bool) -> Iterator[InternalMatch]:
    """Every place where the pattern is found, from the end of the graph; none overlap."""
    returned = pattern.output_node().all_input_nodes
    taken: set[Node] = set()
    found: list[InternalMatch] = []
    for node in reversed(list(graph.nodes)):
        match = _match_at(node, returned, pattern, ignore_literals)
        if match is None or taken & set(match.nodes) or _is_used_elsewhere(match):
            continue
        taken.update(match.nodes)
        found.append(match)
    order = {node: i for i, node in enumerate(graph.nodes)}
    yield from sorted(found, key=lambda match: order[match.returning_nodes[0]])


def _match_at(
    node: Node, returned: list[Node], pattern: Graph, ignore_literals: bool
) -> InternalMatch | None:
    """The match whose first result is a node; the other results are found from what they share."""
    if not returned:
        return None
    match = InternalMatch(returned, node.graph)
    if not _agree(returned[0], node, match.nodes_map, ignore_literals):
        return None
    for other in returned[1:]:
        if other not in match.nodes_map and not _extend(other, match, ignore_literals):
            return None
    match.returning_nodes = [match.nodes_map[one] for one in returned]
    inputs = [one for one in pattern.nodes if one.op == "placeholder"]
    match.placeholder_nodes = [match.nodes_map[one] for one in inputs if one in match.nodes_map]
    return match


def _extend(wanted: Node, match: InternalMatch, ignore_literals: bool) -> bool:
    """Find a further result among those who use what is matched already."""
    for inside in list(match.nodes_map.values()):
        for user in inside.users if isinstance(inside, Node) else ():
            trial = dict(match.nodes_map)
            if _agree(wanted, user, trial, ignore_literals):
                match.nodes_map = trial
                return True
    return False


def _agree(wanted: Node, node: Any, found: dict[Node, Node], ignore_literals: bool) -> bool:
    """Whether a node, and what it uses, is what the pattern wants; fills `found`."""
    if wanted in found:
        return found[wanted] is node
    if wanted.op == "placeholder":
        found[wanted] = node
        return True
    if not isinstance(node, Node) or node in found.values():
        return False
    if wanted.op != node.op or wanted.target != node.target:
        return False
    found[wanted] = node
    pairs = (wanted.args, node.args), (wanted.kwargs, node.kwargs)
    if all(_same(ours, theirs, found, ignore_literals) for ours, theirs in pairs):
        return True
    del found[wanted]
    return False


def _same(wanted: Any, value: Any, found: dict[Node, Node], ignore_literals: bool) -> bool:
    if isinstance(wanted, Node):
        return _agree(wanted, value, found, ignore_literals)
    if isinstance(wanted, tuple | list):
        if not isinstance(value, tuple | list) or len(wanted) != len(value):
            return False
        pairs = zip(wanted, value, strict=True)
        return all(_same(a, b, found, ignore_literals) for a, b in pairs)
    if isinstance(wanted, dict):
        if not isinstance(value, dict) or set(wanted) != set(value):
            return False
        return all(_same(a, value[key], found, ignore_literals) for key, a in wanted.items())
    if isinstance(value, Node):
        return False
    return ignore_literals or (type(wanted) is type(value) and wanted == value)


def _is_used_elsewhere(match: InternalMatch) -> bool:
    """Whether a value inside, which is no result, has users outside: it cannot be taken away."""
    inside = set(match.nodes)
    hidden = inside - set(match.returning_nodes)
    return any(user not in inside for node in hidden for user in node.users)
