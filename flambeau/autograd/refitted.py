"""Results that were given memory of another shape or type while a graph holds them.

`x.data = other` leaves the history of `x` alone. Operators called from then on see the new memory,
and their gradients have its shape; the node that made `x` saved what belongs to the old one. So
what it had is kept beside the node, and gradients that are sent there are brought back to it: they
are summed where they are broadcast, and refused where they do not fit.

Backward looks here only while such results are alive.
"""

from __future__ import annotations

import weakref
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor, memory_of
from flambeau.autograd.graph import Node, tools
from flambeau.autograd.versions import version_of


class Refitted:
    """Nodes and outputs of nodes, with the shape and the type that their results had."""

    __slots__ = ("known", "refs")

    def __init__(self) -> None:
        self.known: dict[int, tuple[tuple[int, ...], Any]] = {}
        self.refs: dict[int, Any] = {}

    def add(self, edge: Node, shape: tuple[int, ...], dtype: Any) -> None:
        """Note what a result had when it was made; only the first time counts."""
        key = id(edge)
        if key in self.refs:
            return
        self.known[key] = shape, dtype
        self.refs[key] = weakref.ref(edge, lambda _: self._discard(key))
        modes.watch.nodes += 1

    def _discard(self, key: int) -> None:
        if self.refs.pop(key, None) is not None:
            del self.known[key]
            modes.watch.nodes -= 1

    def fitting(self, node: Node, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients that a node sends, as the results had the shape that get them."""
        found = list(grads)
        for position, (edge, part) in enumerate(zip(node.edges, grads, strict=False)):
            if part is not None and id(edge) in self.refs:
                found[position] = fitted(part, *self.known[id(edge)], node.name(), position)
        return tuple(found)


refitted = Refitted()


def fitted(grad: Tensor, shape: tuple[int, ...], dtype: Any, name: str, index: int) -> Tensor:
    """The gradient that a node called `name` gave, as a result with that shape and type gets it."""
    have = grad._data.shape
    if have != shape:
        if not _expands(shape, have):
            raise RuntimeError(
                f"Function {name} returned an invalid gradient at index {index} - got "
                f"{list(have)} but expected shape compatible with {list(shape)}"
            )
        grad = tools.sum_to_size(grad, shape)
    if grad._data.dtype != dtype:
        grad = tools.to_dtype(grad, dtype)
    return grad


def _expands(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether a shape can be broadcast to another."""
    if len(small) > len(large):
        return False
    return all(n in (1, m) for n, m in zip(small[::-1], large[::-1], strict=False))


def before_other_memory(tensor: Tensor, data: Any) -> None:
    """Call it before a tensor that a node made gets other memory, but keeps its history."""
    node = tensor._node
    if node is None:
        return
    if tensor._base is not None and tensor._view_version != version_of(tensor):
        return  # it gets a node for the memory that it has when it is next used
    own = memory_of(tensor)
    if own.shape != data.shape or own.dtype != data.dtype:
        refitted.add(node, own.shape, own.dtype)
