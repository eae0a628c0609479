"""Convolution with what follows it: normalisation by fixed statistics, a residual, relu.

    y = relu(batch_norm(conv2d(x)) + residual)     →     one convolution

The normalisation goes into the convolution's weights, the rest is done where its kernel writes the
result. Weights that are constants, as in frozen modules, are folded and packed once, and again when
they have changed after all: writes are counted, and of those that are not (through `.data` and
NumPy) samples tell. Others may be trained or loaded anew between two calls, and are folded by every
call, unless they are many beside the numbers of the image. Where gradients are wanted, and in
training, the operators run as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.modes import grad as grad_mode
from flambeau._ops.conv.choice import PackedWeight
from flambeau._ops.conv.convolution import convolved
from flambeau._ops.conv.shapes import expand_ints
from flambeau._ops.launching.epilogue import NOTHING, Epilogue
from flambeau._ops.launching.memory_formats import is_images_of_pixels
from flambeau._ops.launching.windows import window_count
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.pointwise import wants_grad
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.graph import version_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value, captured
from flambeau.jit.optimise import facts, faults
from flambeau.jit.optimise.subgraphs import extracted, replace_by_call, runner
from flambeau.jit.passes.effects import fills

CONVOLUTIONS = ("aten::conv2d", "aten::_convolution")
SUMS = ("aten::add", "aten::add_")
SAMPLED = 64
"""Numbers of a constant that are compared with what they were when it was packed."""
BOUNDED: dict[str, Callable[..., tuple[Any, Any]]] = {
    "relu": lambda: (0, None),
    "relu6": lambda: (0, 6),
    "hardtanh": lambda low, high: (low, high),
    "clamp": lambda low, high: (low, high),
    "clamp_min": lambda low: (low, None),
}
"""Activations that keep numbers between two bounds: what these are, by the other arguments."""


@dataclass(slots=True)
class Chain:
    """A convolution and what follows it."""

    convolution: Node
    norm: Node | None = None
    sum: Node | None = None
    residual: Value | None = None
    bounds: tuple[float, float] = (-inf, inf)
    nodes: list[Node] = field(default_factory=list)


def rewrite(block: Block) -> None:
    """Put calls in the place of the chains of a block and of those within it."""
    for node in list(block):
        for inner in node.blocks:
            rewrite(inner)
        if node.kind in CONVOLUTIONS and not fills(node) and node.block is block:
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
    """What follows a convolution, each the only user of the one before it.

    A convolution alone is one too if its weight is a constant, which can be packed.
    """
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
    bounds = None if node is None else _bounds(node, chain.nodes[-1].output)
    if bounds is not None:
        assert node is not None
        chain.bounds = bounds
        chain.nodes.append(node)
    gains = len(chain.nodes) > 1 or convolution.inputs[1].is_constant
    return chain if gains and _nothing_written(chain) else None


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


def _bounds(node: Node, value: Value) -> tuple[float, float] | None:
    """Between which numbers an activation keeps a value; None if it does something else."""
    name = node.kind.removeprefix("aten::").removesuffix("_")
    if name not in BOUNDED or node.inputs[0] is not value:
        return None
    others = node.inputs[1:]
    if not all(other.is_constant for other in others):
        return None
    bounds = BOUNDED[name](*[other.constant for other in others])
    if not all(bound is None or type(bound) in (int, float) for bound in bounds):
        return None
    low = -inf if bounds[0] is None else float(bounds[0])
    high = inf if bounds[1] is None else float(bounds[1])
    return (low, high) if low <= high and bounds != (None, None) else None


def _only_user(node: Node) -> Node | None:
    if len(node.output.users) != 1:
        return None
    ((user, _),) = node.output.users
    if not isinstance(user, Node) or user.block is not node.block or fills(user):
        return None
    return user


def _nothing_written(chain: Chain) -> bool:
    """Whether all other nodes between the first and the last only compute."""
    node: Node | None = chain.convolution
    while node is not chain.nodes[-1]:
        assert node is not None
        ours = node in chain.nodes or node.kind == "flambeau::Call"
        if not ours and not facts.is_pure(node):
            return False
        node = node.after
    return True


@dataclass(frozen=True, slots=True)
class Folded:
    """Weight and bias with the normalisation in them."""

    weight: np.ndarray
    bias: np.ndarray | None
    packed: PackedWeight | None

    def convolved(self, x: np.ndarray, numbers: Sequence[Any],
                  after: Epilogue = NOTHING) -> np.ndarray:  # fmt: skip
        """The convolution; `numbers` are stride, padding, dilation and groups."""
        stride, padding, dilation, groups = numbers
        return convolved(x, self.weight, self.bias, stride, padding, dilation, False, (0, 0),
                         groups, self.packed, after)  # fmt: skip


class ConvolutionChain:
    """A chain as one callable. `graph` holds its nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        first = next(node for node in graph if node.kind in CONVOLUTIONS)
        self.chain = _copied_chain(first)
        self.operators: Callable[..., Any] | None = None
        self.folded: Folded | None = None
        self.state: list[Any] | None = None
        self.places = {value: k for k, value in enumerate(graph.inputs)}
        inputs = self.chain.convolution.inputs
        if self.chain.convolution.kind == "aten::_convolution":
            inputs = [*inputs[:6], inputs[8]]
        self.inputs = list(inputs)
        norm = [] if self.chain.norm is None else self.chain.norm.inputs[1:5]
        self.written = _written_last(self.chain)
        self.is_fixed = all(value.is_constant for value in (*inputs[1:3], *norm))

    def plain(self, *values: Any) -> Any:
        """The operators, one by one."""
        if self.operators is None:
            self.operators = runner(self.graph)
        return self.operators(*values)

    def __call__(self, *values: Any) -> Any:
        """The result of the last node."""
        if modes.watch.interferes() or (grad_mode.enabled and wants_grad(values)):
            return self.plain(*values)
        try:
            result = self._together(values)
        except Exception as error:
            return faults.plainly("images", error, self.plain, *values)
        if result is None:
            return self.plain(*values)
        result._version_count = self.written
        return result

    def _together(self, values: Sequence[Any]) -> Tensor | None:
        """All nodes in one convolution; None where that does not hold for the arguments."""
        x, weight, bias, stride, padding, dilation, groups = self._arguments(values)
        residual = None if self.chain.residual is None else self._of(self.chain.residual, values)
        norm = self._norm(values)
        tensors = [t for t in (x, weight, bias, residual, *norm[:4]) if t is not None]
        if not all(isinstance(t, Tensor) and t._data.dtype == np.float32 for t in tensors):
            return None
        if x._data.ndim != 4 or (self.chain.norm is not None and norm[2] is None):
            return None
        if isinstance(padding, str):
            return None
        folded = self._folded(weight, bias, norm, groups, x._data.size)
        if folded is None:
            return None
        numbers = [expand_ints("stride", stride, 2), expand_ints("padding", padding, 2),
                   expand_ints("dilation", dilation, 2), groups]  # fmt: skip
        if residual is None:
            return wrap(folded.convolved(x._data, numbers, Epilogue(None, *self.chain.bounds)))
        if _is_added_in_place(x._data, folded.weight, residual._data, numbers):
            after = Epilogue(residual._data, *self.chain.bounds)
            return wrap(folded.convolved(x._data, numbers, after))
        return self._finish(wrap(folded.convolved(x._data, numbers)), residual)

    def _finish(self, result: Tensor, residual: Tensor) -> Tensor:
        """What follows a convolution that could not take it along."""
        assert self.chain.sum is not None
        if self.chain.sum.kind == "aten::add_":
            result.add_(residual)  # type: ignore[attr-defined]
        elif self.chain.sum.inputs[0] is self.chain.residual:
            result = ops.add(residual, result)
        else:
            result = ops.add(result, residual)
        low, high = self.chain.bounds
        if (low, high) == (-inf, inf):
            return result
        return ops.clamp(result, low, high)  # type: ignore[no-any-return]

    def _of(self, value: Value, values: Sequence[Any]) -> Any:
        return value.constant if value.is_constant else values[self.places[value]]

    def _arguments(self, values: Sequence[Any]) -> list[Any]:
        return [self._argument(value, values) for value in self.inputs]

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

    def _folded(self, weight: Tensor, bias: Any, norm: Sequence[Any], groups: int,
                numbers: int) -> Folded | None:  # fmt: skip
        """Weight and bias for an input of so many numbers; None where folding is not worth it."""
        tensors = [t for t in (weight, bias, *norm[:4]) if t is not None]
        state = [_state(t) for t in tensors] if self.is_fixed else None
        if self.folded is not None and state == self.state:
            return self.folded
        arrays: list[Any] = [None if t is None else t._data for t in (weight, bias, *norm[:4])]
        if self.chain.norm is not None:
            if not self.is_fixed and weight._data.size > numbers:
                return None
            arrays = list(fold_norm(*arrays, eps=norm[4]))
        if not self.is_fixed:
            return Folded(arrays[0], arrays[1], None)
        self.folded = Folded(arrays[0], arrays[1], PackedWeight(arrays[0], groups))
        self.state = state
        return self.folded

    def __repr__(self) -> str:
        return "<convolution chain>"


def _written_last(chain: Chain) -> int:
    """How often a result has been written to when it leaves the chain: `add_`, `relu_`."""
    count = 0
    for node in chain.nodes:
        count = count + 1 if facts.writes(node) else 0
    return count


def _state(tensor: Tensor) -> tuple[int, bytes]:
    """What tells that a tensor was written to: the count of writes, and some numbers of it."""
    numbers = tensor._data.reshape(-1)
    return version_of(tensor), numbers[:: 1 + numbers.size // SAMPLED].tobytes()


def _is_added_in_place(x: np.ndarray, weight: np.ndarray, residual: np.ndarray,
                       numbers: Sequence[Any]) -> bool:  # fmt: skip
    """Whether a residual lies as the result does: of its shape, and row-major."""
    if is_images_of_pixels(x) or is_images_of_pixels(weight) or not residual.flags.c_contiguous:
        return False
    sizes = map(window_count, x.shape[2:], weight.shape[2:], *numbers[:3])
    return residual.shape == (len(x), len(weight), *sizes)


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
