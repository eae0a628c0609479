"""A linear map's graph as torch has it, for those who look at it.

One node does what torch has up to four for: rows made flat, the weight transposed, the product, and
rows made as they were. `taken_apart` makes them when a user asks for the node. Other nodes lead to
it already, so it stays, as the last of the four.
"""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._ops.table.recording import RowNode
from flambeau.autograd.graph import Node


class Shaping(RowNode):
    """Gives gradients the shape that something had before it was changed."""

    __slots__ = ()

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradient in that shape."""
        return (ops.reshape(grad, self.values),)


class ViewBackward0(Shaping):
    """Rows, or what was made of them, in another shape."""

    __slots__ = ()
    title = __qualname__


class UnsafeViewBackward0(Shaping):
    """The same by another name."""

    __slots__ = ()
    title = __qualname__


class UnsqueezeBackward0(Shaping):
    """A vector made a row."""

    __slots__ = ()
    title = __qualname__


class SqueezeBackward4(Shaping):
    """A row made a vector."""

    __slots__ = ()
    title = __qualname__


class TBackward0(RowNode):
    """The weight, transposed."""

    __slots__ = ()
    title = __qualname__

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradient, transposed as well."""
        return (ops.t(grad),)


class Product(RowNode):
    """The product of rows and a transposed weight. `values`: the node that was taken apart, which
    still does the work, and the shape of its result."""

    __slots__ = ()

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """Gradients of the rows and the transposed weight, after that of the bias."""
        whole, shape = self.values
        of_input, of_weight, of_bias = whole.apply(ops.reshape(grad, shape))
        if of_input is not None:
            *outer, width = of_input.shape
            of_input = ops.reshape(of_input, (math.prod(outer), width))
        of_weight = None if of_weight is None else ops.t(of_weight)
        return (of_bias, of_input, of_weight)[3 - len(self.edges) :]

    def release(self) -> None:
        """Forget what the node that does the work has saved."""
        super().release()
        self.values[0].release()


class AddmmBackward0(Product):
    """With a bias."""

    __slots__ = ()
    title = __qualname__


class MmBackward0(Product):
    """Without one."""

    __slots__ = ()
    title = __qualname__


def taken_apart(node: Any) -> Node:
    """The node of a linear map as users see it."""
    shape, weight_shape = node.metas[0][0], node.metas[1][0]
    result_shape = (*shape[:-1], weight_shape[0])
    flat = len(shape) == 2
    biased = node.title in ("AddmmBackward0", "ViewBackward0")
    as_row = len(shape) == 1 and not biased
    whole = _twin(node)
    of_input, of_weight, of_bias = node.edges
    if of_weight is not None:
        of_weight = _node(TBackward0, of_weight, node, 3 if as_row else 2)
    if of_input is not None and not flat:
        kind = UnsqueezeBackward0 if as_row else ViewBackward0
        of_input = _node(kind, of_input, node, 2 if as_row else 3, shape)
    whole.edges = of_input, of_weight, of_bias
    product = node if flat else _node(Product, None, node, 1)
    product.__class__ = AddmmBackward0 if biased else MmBackward0
    product.edges = (of_bias, of_input, of_weight) if biased else (of_input, of_weight)
    product.values = whole, result_shape
    product.saved, product.versions = whole.saved, whole.versions
    if not flat:
        node.__class__ = _front(biased, len(shape))
        node.edges, node.saved = (product,), ()
        node.values = math.prod(shape[:-1]), weight_shape[0]
    return node  # type: ignore[no-any-return]


def _front(biased: bool, rank: int) -> type[Shaping]:
    if biased:
        return ViewBackward0
    return SqueezeBackward4 if rank == 1 else UnsafeViewBackward0


def _twin(node: Any) -> Any:
    """A node that does the same."""
    twin = object.__new__(type(node))
    twin.saved, twin.versions, twin.metas = node.saved, node.versions, node.metas
    twin.values, twin.hooks, twin.sequence_number = node.values, None, node.sequence_number
    return twin


def _node(kind: type[RowNode], edge: Any, front: Any, place: int, values: Any = None) -> Any:
    """A node behind another one, before all that was recorded earlier: numbers are whole."""
    node = object.__new__(kind)
    node.edges, node.hooks, node.saved, node.versions = (edge,), None, (), ()
    node.values = values
    node.__dict__.update(front.__dict__)  # what anomaly mode has noted
    node.sequence_number = front.sequence_number - place / 4
    return node
