"""What can be done once weights are constants: dropout goes, and what follows a convolution with
constants, as batch normalization, goes into its weight and bias.
"""

from __future__ import annotations

from typing import Any

from flambeau._core import promotion
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.passes.dead_code import remove_dead_code
from flambeau.jit.passes.effects import draws, fills

DIMENSIONS = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}
"""Convolutions, and the dimensions of their results."""
CONVOLUTIONS = frozenset((*DIMENSIONS, "aten::_convolution"))
FOLDED_INTO = CONVOLUTIONS | {"aten::linear"}
"""Layers that batch normalization is folded into: their weight's first dimension is the output."""

SUMS = {"aten::add": 1, "aten::sub": -1}
PRODUCTS = frozenset(("aten::mul", "aten::div"))
SHAPE = frozenset(("aten::dim", "aten::size", "prim::dtype", "prim::device"))
"""What is asked of a tensor that does not depend on its values."""


def optimize_frozen_graph(graph: Graph, optimize_numerics: bool = True) -> None:
    """Improve the graph of a frozen method. optimize_numerics: also where results are rounded
    differently.
    """
    remove_dropout(graph)
    while optimize_numerics and _fold_once(graph):
        pass
    remove_dead_code(graph)


def settle_dimensions(graph: Graph) -> None:
    """`conv2d(…).dim()` is 4, so that checks of the number of dimensions can go; as in torch, an
    image without a batch is not thought of.
    """
    for node in graph.walk():
        made = node.inputs[0].node if node.kind == "aten::dim" else None
        if made is not None and made.kind in DIMENSIONS:
            with node.graph.inserting(node):
                node.output.replace_by(node.graph.constant(DIMENSIONS[made.kind]))


def remove_dropout(graph: Graph) -> None:
    """Dropout that does not train gives its input."""
    for node in graph.walk():
        if _is_dropout(node) and _is_constant(node.inputs[2], False):
            node.output.replace_by(node.inputs[0])


def _is_dropout(node: Node) -> bool:
    """Whether the node gives its input, or numbers in its place: not their mask, too."""
    plain = node.kind.removesuffix("_")
    return plain.endswith("dropout") and draws(plain) == "train" and len(node.outputs) == 1


def _fold_once(graph: Graph) -> bool:
    """Fold all that follows a layer right away; whether there was anything."""
    found = False
    for node in list(graph.walk()):
        layer = node.inputs[0].node if node.inputs else None
        if layer is None or not _can_change(layer, node):
            continue
        folded = _folded(layer, node)
        if folded is not None:
            _replace(layer, node, *folded)
            found = True
    return found


def _folded(layer: Node, node: Node) -> tuple[Tensor, Tensor] | None:
    """The weight and bias with which a layer gives what a node makes of its result."""
    weight, bias = layer.inputs[1].constant, layer.inputs[2].constant
    if node.kind == "aten::batch_norm":
        return _with_norm(weight, bias, node)
    if layer.kind not in CONVOLUTIONS or node.kind not in (*SUMS, *PRODUCTS):
        return None
    other = _per_channel(node.inputs[1], weight)
    if other is None:
        return None
    if bias is None:
        bias = weight.new_zeros(len(weight))
    if node.kind in PRODUCTS:
        by = other if node.kind == "aten::mul" else 1 / other
        return weight * _beside(by, weight), bias * by
    if len(node.inputs) == 3 and not _is_constant(node.inputs[2], 1):
        return None
    return weight, bias + SUMS[node.kind] * other


def _with_norm(weight: Any, bias: Any, norm: Node) -> tuple[Tensor, Tensor] | None:
    """Batch normalization in the layer before it:

    w' = w * g / sqrt(variance + eps),  b' = (b - mean) * g / sqrt(variance + eps) + shift
    """
    parts = [*norm.inputs[1:3], norm.named("running_mean"), norm.named("running_var")]
    settings = [norm.named("training"), norm.named("eps")]
    if not all(value.is_constant for value in (*parts, *settings)):
        return None
    gain, shift, mean, variance = (value.constant for value in parts)
    training, eps = (value.constant for value in settings)
    if training is not False or mean is None or variance is None:
        return None
    scale = (variance + eps).rsqrt()
    if gain is not None:
        scale = scale * gain
    offset = -mean * scale if bias is None else (bias - mean) * scale
    if shift is not None:
        offset = offset + shift
    return weight * _beside(scale, weight), offset


def _is_constant(value: Value, wanted: Any) -> bool:
    if not value.is_constant:
        return False
    return type(value.constant) is type(wanted) and bool(value.constant == wanted)


def _can_change(layer: Node, node: Node) -> bool:
    """Whether a layer has constant weights, and others ask only for the shape of its result."""
    if layer.kind not in FOLDED_INTO or layer.block is not node.block:
        return False
    if layer.kind == "aten::_convolution" and not _is_constant(layer.inputs[6], False):
        return False  # transposed: the weight's second dimension is the output
    others = [user for user, _ in layer.output.users if user is not node]
    if not all(isinstance(user, Node) and user.kind in SHAPE for user in others):
        return False
    if fills(layer) or fills(node):
        return False
    weight, bias = layer.inputs[1:3]
    return weight.is_constant and isinstance(weight.constant, Tensor) and bias.is_constant


def _per_channel(value: Value, weight: Any) -> Any:
    """A constant as one number for each output channel; None if it is anything else."""
    other: Any = value.constant if value.is_constant else None
    channels = len(weight)
    if not weight.is_floating_point():
        return None
    if isinstance(other, (int, float)):
        return weight.new_full((channels,), other)
    if not isinstance(other, Tensor):
        return None
    shape = [1] * (weight.dim() - other.ndim) + list(other.shape)
    expected = [1, channels, *[1] * (weight.dim() - 2)]
    if any(size not in (1, wanted) for size, wanted in zip(shape, expected, strict=False)):
        return None
    if len(shape) != len(expected) or _promoted(other, weight) != weight.dtype:
        return None
    per_channel: Any = other
    return per_channel.reshape(-1).to(weight.dtype).expand(channels)


def _promoted(other: Any, weight: Any) -> Any:
    """The type of their sum; a single number does not change that of a convolution's result."""
    if other.dim() == 0 and not other.is_complex():
        return weight.dtype
    return promotion.promote_types(other.dtype, weight.dtype)


def _beside(per_channel: Any, weight: Any) -> Tensor:
    """One number for each output channel, in the shape in which it multiplies a weight."""
    return per_channel.reshape([-1] + [1] * (weight.dim() - 1))


def _replace(layer: Node, node: Node, weight: Any, bias: Any) -> None:
    dtype = layer.inputs[1].constant.dtype
    graph = layer.graph
    with graph.inserting(layer):
        layer.set_input(1, graph.constant(weight.to(dtype)))
        layer.set_input(2, graph.constant(bias.to(dtype)))
    node.output.replace_by(layer.output)
    node.destroy()
