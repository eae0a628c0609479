"""Places in the graph as users name them: `torch.autograd.graph.GradientEdge`."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import AccumulateGrad, Node, output_node, public_edge
from flambeau.autograd.history import Nowhere, edge_of


class Token(NamedTuple):
    """What the engine knows of the tensor that a GradientEdge stands for."""

    edge: Any
    shape: tuple[int, ...]
    dtype: Any


class GradientEdge(NamedTuple):
    """A place in the graph that gradients flow through: an output of a node.

    Stands for a tensor in `backward` and `grad`, and does not keep its memory. `ownership_token`
    keeps the node alive: it is a `Token`.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> y = x * 2
    >>> edge = torch.autograd.graph.get_gradient_edge(y)
    >>> torch.autograd.grad((y ** 2).sum(), edge)
    (tensor([4.]),)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where gradients of a tensor flow through: its node, or the AccumulateGrad of a leaf.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not "
                           "require gradients")  # fmt: skip
    edge = edge_of(tensor)
    if type(edge) is Nowhere:
        raise AssertionError("Expected gradient function to be set")
    token = Token(edge, tensor._data.shape, tensor._data.dtype)
    return GradientEdge(*public_edge(edge), token)


def inner_edge(edge: GradientEdge) -> Any:
    """A public edge as the engine knows it."""
    if isinstance(edge.node, AccumulateGrad):
        return edge.node if edge.node.until else edge.node.variable
    if edge.ownership_token is not None:
        return edge.ownership_token.edge
    if edge.node.single():
        return edge.node
    shown = edge.node.shown
    return output_node(edge.node, edge.output_nr if shown is None else shown[edge.output_nr])
