"""What the operators of a group save for backward, and which arguments their results lead to.

A fused group must not keep more, or less, than its operators do. An argument that they save is
checked for writes when backward runs, as they would check it. One that they do not save may be
written to freely; what they have computed from it and saved is then stored by the forward kernels.
A result that they save is not stored again: its own memory is read, and checked for writes, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import AliasBackward0, Node, SavedResult, short_title


@dataclass(slots=True)
class Saved:
    """What the recorded operators of a group have saved.

    arguments: positions of the group's arguments. arrays: all others, results of the group among
    them. titles: by result, the operator that it came from, as errors name it.
    """

    arguments: set[int] = field(default_factory=set)
    arrays: list[np.ndarray] = field(default_factory=list)
    titles: dict[int, str] = field(default_factory=dict)


def saved_by(results: Sequence[Any], arguments: dict[int, Tensor],
             ends: Sequence[Any] | None = None) -> Saved:  # fmt: skip
    """What the nodes behind results have saved, or behind some `ends` of them; `arguments` are
    leaves by their positions."""
    positions = {id(tensor): position for position, tensor in arguments.items()}
    numbers = {id(r._data): k for k, r in enumerate(results) if isinstance(r, Tensor)}
    found = Saved()
    for kept in _kept(nodes_behind(results if ends is None else ends)):
        if isinstance(kept, Tensor):
            owner = kept if kept._base is None else kept._base
            if id(owner) in positions:
                found.arguments.add(positions[id(owner)])
                continue
        array = kept._data if isinstance(kept, Tensor) else kept.data
        found.arrays.append(array)
        if id(array) in numbers:
            number = numbers[id(array)]
            node = results[number]._node
            source = getattr(node, "source", node)
            found.titles[number] = "" if source is None else short_title(source)
    return found


def nodes_behind(results: Sequence[Any], end: Sequence[Node] = ()) -> list[Node]:
    """All nodes that gradients of results pass, each once, up to those at the end: of the same
    operators in the same order."""
    waiting = [r._node for r in results if isinstance(r, Tensor) and r._node is not None]
    seen: dict[Node, None] = {}
    while waiting:
        node = waiting.pop()
        if node in seen or node in end:
            continue
        seen[node] = None
        waiting += [edge for edge in node.edges if isinstance(edge, Node)]
    return list(seen)


def _kept(nodes: Sequence[Node]) -> Iterator[Tensor | SavedResult]:
    """All that nodes have saved: inputs and results."""
    waiting = [kept for node in nodes for kept in node.saved or ()]
    while waiting:
        kept = waiting.pop()
        if isinstance(kept, (list, tuple)):
            waiting += kept
        elif isinstance(kept, (Tensor, SavedResult)):
            yield kept


def reached(result: Any, arguments: dict[int, Tensor]) -> frozenset[int]:
    """The positions of the arguments that a result's gradient flows to."""
    positions = {id(tensor): position for position, tensor in arguments.items()}
    edges = [edge for node in nodes_behind([result]) for edge in node.edges]
    return frozenset(positions[id(edge)] for edge in edges if id(edge) in positions)


# ---- gradients of gradients after arguments have been written to


@dataclass(frozen=True, slots=True)
class Slot:
    """Something that a node has saved: the node's number among `nodes_behind`, and which of its
    saved values it is."""

    node: int
    position: int


def slots_of(results: Sequence[Any]) -> list[tuple[Slot, np.ndarray]]:
    """All arrays that the nodes behind results have saved, with where they did."""
    found = []
    for number, node in enumerate(nodes_behind(results)):
        for position, kept in enumerate(node.saved or ()):
            if isinstance(kept, (Tensor, SavedResult)):
                array = kept._data if isinstance(kept, Tensor) else kept.data
                found.append((Slot(number, position), array))
    return found


def put_back(results: Sequence[Any], end: Sequence[Node], arrays: dict[Slot, np.ndarray]) -> None:
    """Let operators that have run again have saved what they had saved before."""
    nodes = nodes_behind(results, end)
    for slot, array in arrays.items():
        kept = nodes[slot.node].saved[slot.position]
        if isinstance(kept, Tensor):
            kept._data = array
        else:
            kept.data = array


def with_history(tensor: Tensor, edge: Any) -> Tensor:
    """A tensor over the same memory, with the history that an argument had before any write."""
    found: Tensor = tensor.detach()  # type: ignore[attr-defined]
    found._node, found._requires_grad = AliasBackward0(edge), True
    return found


def gradients(results: Sequence[Tensor], grads: Sequence[Any],
              wanted: Sequence[Tensor]) -> tuple[Any, ...]:  # fmt: skip
    """The gradients at some tensors of results recorded anew, from those of the results, None where
    a result has none; they can be differentiated again where that is asked for."""
    from flambeau.autograd import grad

    given = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None]
    return tuple(grad([r for r, _ in given], wanted, [g for _, g in given],
                      create_graph=bool(modes.grad.enabled), allow_unused=True))  # fmt: skip
