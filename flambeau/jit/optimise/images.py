"""Convolution with what follows it: normalisation by fixed statistics, a residual, relu.

    y = relu(batch_norm(conv2d(x)) + residual)     →     one convolution, and one pass over y

The normalisation goes into the convolution's weights. These are folded when they are first needed
and again when one of the tensors has been written to, so that the model may still be trained or
loaded anew. Where gradients are wanted, and in training, the operators run as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flambeau._compiler.expr import maximum, parameter
from flambeau._core import modes
from flambeau._core.modes import grad as grad_mode
from flambeau._ops.namespace import ops
from flambeau._ops.pointwise import wants_grad
from flambeau._runtime import choice
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.graph import version_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.optimise import facts
from flambeau.jit.optimise.subgraphs import captured, extracted, replace_by_call, runner

CONVOLUTIONS = ("aten::conv2d", "aten::_convolution")
SUMS = ("aten::add", "aten::add_")
RELUS = ("aten::relu", "aten::relu_")


@dataclass(slots=True)
class Chain:
    """A convolution and what follows it."""

    convolution: Node
    norm: Node | None = None
    sum: Node | None = None
    residual: Value | None = None
    relu: Node | None = None
    nodes: list[Node] = field(default_factory=list)


def rewrite(block: Block) -> None:
    """Put calls in the place of the chains of a block and of those within it."""
    for node in list(block):
        for inner in node.blocks:
            rewrite(inner)
        if node.kind in CONVOLUTIONS and node.block is block:
            chain = _chain(node)
            if chain is not None:
                _replace(chain)


def _replace(chain: Chain) -> None:
    last = chain.nodes[-1]
    inputs = captured(chain.nodes)
    graph = extracted(chain.nodes, inputs, [last.output])
    point = last.after
    assert point is not None
    replace_by_call(chain.nodes, point, inputs, [last.output], ConvolutionChain(graph))


def _chain(convolution: Node) -> Chain | None:
    """What follows a convolution, each the only user of the one before it."""
    if convolution.kind == "aten::_convolution" and convolution.inputs[6].constant is not False:
        return None  # transposed
    chain = Chain(convolution, nodes=[convolution])
    node = _only_user(convolution)
    if node is not None and _is_fixed_norm(node, convolution.output):
        chain.norm = node
        chain.nodes.append(node)
        node = _only_user(node)
    other = None if node is None else _residual(node, chain.nodes[-1].output)
    if other is not None:
        assert node is not None
        chain.sum, chain.residual = node, other
        chain.nodes.append(node)
        node = _only_user(node)
    if node is not None and node.kind in RELUS:
        chain.relu = node
        chain.nodes.append(node)
    return chain if len(chain.nodes) > 1 and _nothing_written(chain) else None


def _is_fixed_norm(node: Node, value: Value) -> bool:
    """Whether a node normalises a value by statistics that stay."""
    if node.kind != "aten::batch_norm" or node.inputs[0] is not value:
        return False
    return node.inputs[5].constant is False


def _residual(node: Node, value: Value) -> Value | None:
    """The tensor that a node adds to a value; None if it does something else."""
    if node.kind not in SUMS or node.inputs[2].constant != 1:
        return None
    left, right = node.inputs[:2]
    if value is right and node.kind == "aten::add":
        left, right = right, left
    return right if value is left and value is not right and right.type == T.TENSOR else None


def _only_user(node: Node) -> Node | None:
    if len(node.output.users) != 1:
        return None
    user = node.output.users[0][0]
    return user if isinstance(user, Node) and user.block is node.block else None


def _nothing_written(chain: Chain) -> bool:
    """Whether all other nodes between the first and the last only compute."""
    node = chain.convolution.after
    while node is not chain.nodes[-1]:
        assert node is not None
        ours = node in chain.nodes or node.kind == "flambeau::Call"
        if not ours and not facts.is_pure(node):
            return False
        node = node.after
    return True


@dataclass(slots=True)
class Folded:
    """Weight and bias with the normalisation in them, and what they were made of."""

    sources: tuple[Any, ...]
    versions: tuple[int, ...]
    weight: Tensor
    bias: Tensor | None

    def holds(self, sources: Sequence[Any]) -> bool:
        """Whether they were made of these tensors, and none was written to since."""
        return all(a is b and (a is None or version_of(a) == version)
                   for a, b, version in zip(sources, self.sources, self.versions,
                                            strict=True))  # fmt: skip


class ConvolutionChain:
    """A chain as one callable. `graph` holds its nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        first = next(node for node in graph if node.kind in CONVOLUTIONS)
        self.chain = _copied_chain(first)
        self.operators: Callable[..., Any] | None = None
        self.folded: Folded | None = None
        self.places = {value: k for k, value in enumerate(graph.inputs)}

    def plain(self, *values: Any) -> Any:
        """The operators, one by one."""
        if self.operators is None:
            self.operators = runner(self.graph)
        return self.operators(*values)

    def __call__(self, *values: Any) -> Any:
        """The result of the last node."""
        if modes.watch.interferes() or (grad_mode.enabled and wants_grad(values)):
            return self.plain(*values)
        x, weight, bias, stride, padding, dilation, groups = self._arguments(values)
        residual = None if self.chain.residual is None else self._of(self.chain.residual, values)
        norm = self._norm(values)
        tensors = [t for t in (x, weight, bias, residual, *norm[:4]) if t is not None]
        if not all(isinstance(t, Tensor) and t._data.dtype == np.float32 for t in tensors):
            return self.plain(*values)
        if x._data.ndim != 4 or (self.chain.norm is not None and norm[2] is None):
            return self.plain(*values)
        folded = self._fold(weight, bias, norm)
        result = ops.conv2d(x, folded.weight, folded.bias, stride, padding, dilation, groups)
        return self._finish(result, residual, values)

    def _of(self, value: Value, values: Sequence[Any]) -> Any:
        return value.constant if value.is_constant else values[self.places[value]]

    def _arguments(self, values: Sequence[Any]) -> list[Any]:
        inputs = self.chain.convolution.inputs
        if self.chain.convolution.kind == "aten::_convolution":
            inputs = [*inputs[:6], inputs[8]]
        return [self._argument(value, values) for value in inputs]

    def _argument(self, value: Value, values: Sequence[Any]) -> Any:
        made = value.node
        if made is not None and made.kind == "prim::ListConstruct":
            return [self._argument(item, values) for item in made.inputs]
        return self._of(value, values)

    def _norm(self, values: Sequence[Any]) -> list[Any]:
        """weight, bias, mean, variance and eps of the normalisation."""
        if self.chain.norm is None:
            return [None, None, None, None, 0.0]
        inputs = self.chain.norm.inputs
        return [self._of(value, values) for value in (*inputs[1:5], inputs[7])]

    def _fold(self, weight: Tensor, bias: Any, norm: Sequence[Any]) -> Folded:
        sources = (weight, bias, *norm[:4])
        if self.folded is None or not self.folded.holds(sources):
            versions = tuple([0 if t is None else version_of(t) for t in sources])
            self.folded = Folded(sources, versions, weight, bias)
            if self.chain.norm is not None:
                arrays: list[Any] = [None if t is None else t._data for t in sources]
                made = fold_norm(*arrays, eps=norm[4])
                self.folded.weight, self.folded.bias = wrap(made[0]), wrap(made[1])
        return self.folded

    def _finish(self, result: Tensor, residual: Any, values: Sequence[Any]) -> Tensor:
        """Residual and relu, in place."""
        data = result._data
        relu = self.chain.relu is not None
        if not relu and residual is None:
            return result
        key = (residual is not None, relu)
        operands = [data] if residual is None else [data, residual._data]
        fits = operands[-1].shape == data.shape and choice.available()
        if fits and _finisher(key).run(operands, (data,)) is not None:
            return result
        if residual is not None:
            result = result + residual
        return ops.relu(result) if relu else result  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return "<convolution chain>"


def _copied_chain(first: Node) -> Chain:
    """The chain of a graph that holds one and its constants alone."""
    found = _chain(first)
    assert found is not None
    return found


def fold_norm(weight: np.ndarray, bias: Any, factor: Any, shift: Any, mean: np.ndarray,
              variance: np.ndarray, *, eps: float) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(weight [O, ...], bias [O]) of a convolution that normalises its result by fixed statistics:
    `(x - mean) / sqrt(variance + eps) * factor + shift`.
    """
    scale = 1 / np.sqrt(variance.astype(np.float64) + eps)
    if factor is not None:
        scale = scale * factor
    moved = -mean if bias is None else bias - mean
    moved = moved * scale if shift is None else moved * scale + shift
    factors = scale.astype(weight.dtype).reshape(-1, *[1] * (weight.ndim - 1))
    return weight * factors, moved.astype(weight.dtype)


FINISHERS: dict[Any, Any] = {}


def _finisher(key: tuple[bool, bool]) -> Any:
    """The kernel that adds a residual and takes what is above 0."""
    if key not in FINISHERS:
        from flambeau._ops.templates.loop_plans import Fusion

        added, relu = key
        x, names = parameter("x"), ["x"]
        if added:
            x, names = x + parameter("residual"), ["x", "residual"]
        x = maximum(0, x) if relu else x
        dtype = np.dtype(np.float32)
        FINISHERS[key] = Fusion("finish", [x], names, dtype, [dtype])
    return FINISHERS[key]
