"""`DiGraph`: a graph of names, in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class DiGraph:
    """Nodes with attributes, and edges between them.

    >>> from flambeau.package._digraph import DiGraph
    >>> graph = DiGraph()
    >>> graph.add_edge("a", "b")
    >>> graph.add_edge("b", "c")
    >>> graph.first_path("c")
    ['a', 'b', 'c']
    """

    def __init__(self) -> None:
        self._nodes: dict[Any, dict[str, Any]] = {}
        self._next: dict[Any, dict[Any, None]] = {}
        self._before: dict[Any, dict[Any, None]] = {}

    def add_node(self, n: Any, **kwargs: Any) -> None:
        """Add a node, or attributes to one that is there."""
        if n not in self._nodes:
            self._nodes[n] = {}
            self._next[n] = {}
            self._before[n] = {}
        self._nodes[n].update(kwargs)

    def add_edge(self, u: Any, v: Any) -> None:
        """Add an edge, and the nodes at its ends where they are missing."""
        self.add_node(u)
        self.add_node(v)
        self._next[u][v] = None
        self._before[v][u] = None

    def successors(self, n: Any) -> Iterator[Any]:
        """The nodes that edges of `n` lead to. ValueError if there is no such node."""
        self._check(n)
        return iter(self._next[n])

    def predecessors(self, n: Any) -> Iterator[Any]:
        """The nodes whose edges lead to `n`. ValueError if there is no such node."""
        self._check(n)
        return iter(self._before[n])

    def _check(self, n: Any) -> None:
        if n not in self._nodes:
            raise ValueError(f"The node {n} is not in the digraph.")

    @property
    def edges(self) -> Iterator[tuple[Any, Any]]:
        """All edges, as pairs."""
        return ((u, v) for u, following in self._next.items() for v in following)

    @property
    def nodes(self) -> dict[Any, dict[str, Any]]:
        """All nodes with their attributes."""
        return self._nodes

    def __iter__(self) -> Iterator[Any]:
        return iter(self._nodes)

    def __contains__(self, n: Any) -> bool:
        return n in self._nodes

    def forward_transitive_closure(self, src: Any) -> set[Any]:
        """All nodes that can be reached from `src`, and itself."""
        return self._closure(src, self.successors)

    def backward_transitive_closure(self, src: Any) -> set[Any]:
        """All nodes from which `src` can be reached, and itself."""
        return self._closure(src, self.predecessors)

    def _closure(self, src: Any, neighbours: Any) -> set[Any]:
        found = {src}
        waiting = [src]
        while waiting:
            fresh = [node for node in neighbours(waiting.pop()) if node not in found]
            found.update(fresh)
            waiting.extend(fresh)
        return found

    def all_paths(self, src: Any, dst: Any) -> DiGraph:
        """The part of the graph that paths from `src` to `dst` run through."""
        between = self.forward_transitive_closure(src) & self.backward_transitive_closure(dst)
        result = DiGraph()
        for u, v in self.edges:
            if u in between and v in between:
                result.add_edge(u, v)
        return result

    def first_path(self, dst: Any) -> list[Any]:
        """The path that brought `dst` into the graph."""
        path = [dst]
        while True:
            earlier = [node for node in self.predecessors(path[-1]) if node not in path]
            if not earlier:
                return path[::-1]
            path.append(earlier[0])

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        edges = "\n".join(f'"{u}" -> "{v}";' for u, v in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"
