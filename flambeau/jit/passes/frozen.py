"""What can be done once weights are constants: dropout goes, batch normalization is folded."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.passes.dead_code import remove_dead_code

DROPOUTS = frozenset(("aten::dropout", "aten::dropout_", "aten::feature_dropout",
                      "aten::feature_dropout_", "aten::alpha_dropout",
                      "aten::feature_alpha_dropout"))  # fmt: skip
FOLDED_INTO = frozenset(("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::linear"))
"""Layers that batch normalization is folded into: their weight's first dimension is the output."""

SHAPE = frozenset(("aten::dim", "aten::size", "prim::dtype", "prim::device"))
"""What is asked of a tensor that does not depend on its values."""


def optimize_frozen_graph(graph: Graph, optimize_numerics: bool = True) -> None:
    """Improve the graph of a frozen method. optimize_numerics: also where results are rounded
    differently.
    """
    remove_dropout(graph)
    if optimize_numerics:
        fold_batch_norm(graph)
    remove_dead_code(graph)


def remove_dropout(graph: Graph) -> None:
    """Dropout that does not train gives its input."""
    for node in graph.walk():
        if node.kind in DROPOUTS and _is_constant(node.inputs[2], False):
            node.output.replace_by(node.inputs[0])


def fold_batch_norm(graph: Graph) -> None:
    """Put batch normalization into the convolution or linear layer before it, if its weights are
    constants and others ask only for the shape of the layer's result:

        w' = w * g / sqrt(variance + eps),  b' = (b - mean) * g / sqrt(variance + eps) + shift
    """
    for node in graph.walk():
        layer = node.inputs[0].node if node.kind == "aten::batch_norm" else None
        if layer is not None and layer.kind in FOLDED_INTO and _can_fold(layer, node):
            _fold(layer, node)


def _is_constant(value: Value, wanted: Any) -> bool:
    return value.is_constant and value.constant is wanted


def _can_fold(layer: Node, norm: Node) -> bool:
    others = [user for user, _ in layer.output.users if user is not norm]
    if not all(isinstance(user, Node) and user.kind in SHAPE for user in others):
        return False
    if not _is_constant(norm.named("training"), False):
        return False
    needed = [layer.inputs[1], norm.named("running_mean"), norm.named("running_var")]
    if not all(isinstance(value.constant, Tensor) for value in needed):
        return False
    return all(v.is_constant for v in (layer.inputs[2], *norm.inputs[1:3], norm.named("eps")))


def _fold(layer: Node, norm: Node) -> None:
    weight, bias = layer.inputs[1].constant, layer.inputs[2].constant
    gain, shift = norm.inputs[1].constant, norm.inputs[2].constant
    mean, variance = norm.named("running_mean").constant, norm.named("running_var").constant
    scale = (variance + norm.named("eps").constant).rsqrt()
    if gain is not None:
        scale = scale * gain
    folded = weight * scale.reshape([-1] + [1] * (weight.dim() - 1))
    offset = -mean * scale if bias is None else (bias - mean) * scale
    if shift is not None:
        offset = offset + shift
    graph = layer.graph
    with graph.inserting(layer):
        layer.set_input(1, graph.constant(folded.to(weight.dtype)))
        layer.set_input(2, graph.constant(offset.to(weight.dtype)))
    norm.output.replace_by(layer.output)
