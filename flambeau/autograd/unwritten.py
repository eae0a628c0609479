"""Results whose derivative nobody has written down: an error for who asks for it."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import Node, next_sequence_number


def not_implemented(name: str) -> NotImplementedError:
    """Torch's error for a derivative that nobody has written down."""
    return NotImplementedError(f"the derivative for '{name}' is not implemented.")


class Unwritten(Node):
    """A node without a formula."""

    __slots__ = ("missing", "title")

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """Say so."""
        raise not_implemented(self.missing)


def lead_nowhere(result: Tensor, edge: Any, title: str, name: str) -> None:
    """Record a result whose gradient by its input is not implemented."""
    node = Unwritten()
    node.title, node.missing = title, name
    node.sequence_number = next_sequence_number()
    node.edges, node.hooks, node.saved = (edge,), None, ()
    result._node, result._requires_grad = node, True
