"""What the rounds of a loop save for backward, of tensors that they have not made themselves.

A program may write to such a tensor between the loop and `backward`, which is then refused. A batch
that saves a copy of what rounds take would not notice; one that saves more than the operators of a
round would refuse too much. So the first round is asked what it has saved, and a node behind each
result refuses what the rounds would refuse, in their words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor
from flambeau.autograd import graph
from flambeau.autograd.changed import changed_error
from flambeau.autograd.graph import Node, next_sequence_number, version_of
from flambeau.autograd.history import edge_of, view_of
from flambeau.jit.optimise import sharing


@dataclass(frozen=True, slots=True)
class Kept:
    """What a round saves of the value in a place: itself, or a part of it, which is a view.

    learns: whether it has a history, which errors name.
    """

    place: int
    shape: tuple[int, ...]
    is_part: bool
    learns: bool

    def error(self, tensor: Tensor, version: int) -> RuntimeError:
        """What a round says of a write to the tensor."""
        if not self.is_part:
            return graph.modified_error(tensor, version)
        if not self.learns:
            array = np.empty(self.shape, tensor._data.dtype)
            return changed_error(array, version_of(tensor), version, "", 0)
        steps = (0,) * len(self.shape)
        part = view_of(tensor, np.lib.stride_tricks.as_strided(tensor._data, self.shape, steps))
        part._view_version = -1  # it was made before the write, and recorded
        part._creation = ""
        return graph.modified_error(part, version)


def saved_since(start: int, results: Sequence[Tensor], values: Mapping[int, Any]) -> list[Kept]:
    """What nodes behind results, made since a sequence number, have saved of the values of some
    places; the last node first.
    """
    owners = owners_of(values)
    nodes = sorted(_made_since(start, results), key=lambda node: -node._sequence_nr())
    found: dict[int, Kept] = {}
    for node in nodes:
        for tensor in node.saved or ():
            if isinstance(tensor, Tensor) and id(owner_of(tensor)) in owners:
                place = owners[id(owner_of(tensor))]
                kept = Kept(
                    place, tensor._data.shape, tensor._root is not None, tensor.requires_grad
                )
                found.setdefault(place, kept)
    return list(found.values())


def owners_of(values: Mapping[int, Any]) -> dict[int, int]:
    """The first place at which a memory's owner, by its id, is met in the values of places."""
    owners: dict[int, int] = {}
    for place, value in sorted(values.items()):
        if not isinstance(value, (Tensor, list, tuple)):
            continue  # what a round takes of a module has a place of its own
        for tensor in sharing.tensors_in(value):
            owners.setdefault(id(owner_of(tensor)), place)
    return owners


def owner_of(tensor: Tensor) -> Tensor:
    """The tensor whose memory a tensor lies in."""
    return tensor if tensor._root is None else tensor._root


def _made_since(start: int, results: Sequence[Tensor]) -> list[Any]:
    waiting = [edge_of(result) for result in results]
    seen: dict[Node, None] = {}
    while waiting:
        node = waiting.pop()
        made = isinstance(node, Node) and node._sequence_nr() > start
        if made and node not in seen:
            seen[node] = None
            waiting += node.edges
    return list(seen)


class RoundsBackward(Node):
    """Passes the gradient of what all rounds have computed on, if what they have saved is as it
    was."""

    __slots__ = ("kept",)
    composed = True  # of nodes that lead to fewer places each
    kept: tuple[Kept, ...]  # one for each saved tensor
    sequence_number: int

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradient of the batch."""
        if self.saved is None:
            raise RuntimeError(graph.FREED)
        for tensor, version, kept in zip(self.saved, self.versions, self.kept, strict=True):
            if version_of(tensor) != version:
                raise kept.error(tensor, version)
        return (grad,)


class StackedRounds(RoundsBackward):
    """Behind a stack."""

    __slots__ = ()
    title = "StackBackward0"


class JoinedRounds(RoundsBackward):
    """Behind a `cat`."""

    __slots__ = ()
    title = "CatBackward0"


def recorded(tensor: Tensor, node: RoundsBackward, kept: Sequence[Kept],
             values: Sequence[Any]) -> Tensor:  # fmt: skip
    """A copy of what rounds have computed, with a node that knows what they have saved."""
    result = sharing.copied(tensor.detach())  # type: ignore[attr-defined]
    if not tensor.requires_grad:
        return result
    pairs = list(_saved(kept, values))
    node.edges, node.hooks = (edge_of(tensor),), None
    node.sequence_number = next_sequence_number()  # after those of its edges
    node.saved = tuple([saved for saved, _ in pairs])
    node.versions = tuple([version_of(saved) for saved, _ in pairs])
    node.kept = tuple([one for _, one in pairs])
    result._node, result._requires_grad = node, True
    return result


def _saved(kept: Sequence[Kept], values: Sequence[Any]) -> Iterator[tuple[Tensor, Kept]]:
    for one in kept:
        value = values[one.place]
        if isinstance(value, Tensor):
            yield value, one
            continue
        for tensor in reversed(list(sharing.tensors_in(value))):  # the last round's comes first
            yield tensor, replace(one, is_part=False)
