"""One round is run, forward and backward, and what it computes is noted.

As in `fusion/tracing.py`; what comes to it are products with matrices that stay the same, and
parts of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr
from flambeau._compiler.fuse import down
from flambeau._core import modes
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.graph import Node
from flambeau.autograd.history import edge_of
from flambeau.jit.optimise.fusion import rules
from flambeau.jit.optimise.fusion.symbols import NotFusible, Parts, Source, Whole, parameter
from flambeau.jit.optimise.fusion.tracing import Computed, Tracer
from flambeau.jit.optimise.scans.rounds import Product


class Multiplied:
    """The rows at `source` times a matrix, or times the matrix transposed (`back`)."""

    __slots__ = ("back", "level", "number", "place", "source")

    def __init__(self, number: int, back: bool, source: Source, place: int, level: int) -> None:
        self.number = number
        self.back = back
        self.source = source
        self.place = place
        self.level = level


class RoundTracer(Tracer):
    """What has been noted of a round. `slopes`: where the gradients of products lie."""

    def __init__(self, compute: np.dtype[Any], rank: int) -> None:
        super().__init__(compute)
        self.rank = rank
        self.special = SPECIAL
        self.matrices: dict[int, np.ndarray] = {}
        self.operands: dict[int, Source] = {}
        self.slopes: dict[int, Source] = {}

    def call(self, plain: Any, values: Sequence[Any], result: Any) -> None:
        """No operator runs between the kernels of a round."""
        raise NotFusible("an operator of a round that is neither pointwise nor a product")

    def product(self, product: Product, rows: Tensor, matrix: Tensor) -> Tensor:
        """A product of the round: a new place, behind which gradients find `ProductBackward`."""
        data = matrix._data.T if product.turned else matrix._data
        if product.vector and rows._data.ndim != 1:
            raise NotFusible("a matrix of which rounds multiply columns")
        if rows._data.ndim != self.rank or data.ndim != 2 or data.dtype != self.compute:
            raise NotFusible("a product of other things than matrices of one type")
        self.matrices[product.number] = data
        source, result = self._multiplied(product.number, rows, False)
        self.operands[product.number] = source
        if modes.grad.enabled and (rows.requires_grad or matrix.requires_grad):
            node = ProductBackward(edge_of(rows), edge_of(matrix))
            node.versions = ()
            node.tracer, node.number = self, product.number
            result._node, result._requires_grad = node, True
        return result

    def slope(self, number: int, grad: Tensor, wanted: bool) -> Tensor | None:
        """The gradient of a product's rows from that of the product, if it is wanted; the matrix's
        is computed of all rounds together.
        """
        if not wanted:
            self.slopes[number] = self.fresh(self.symbol(grad))
            return None
        self.slopes[number], result = self._multiplied(number, grad, True)
        return result

    @property
    def filled(self) -> set[int]:
        """The places that kernels of the phase at hand fill with symbols."""
        return {step.place for step in self.steps if isinstance(step, Computed)}

    def _multiplied(self, number: int, rows: Tensor, back: bool) -> tuple[Source, Tensor]:
        symbol = self.symbol(rows)
        if not isinstance(symbol, (Whole, Parts)) or symbol.dtype != self.compute:
            raise NotFusible("a product of something else than rows of the round")
        matrix = self.matrices[number].T if back else self.matrices[number]
        if rows._data.shape[-1] != matrix.shape[0]:
            raise NotFusible("a product of other sizes: the loop says so")
        source = self.fresh(symbol) if back else self.placed(symbol)  # slopes of all rounds
        level = self.levels[source.place]
        place = self.place(level)
        self.steps.append(Multiplied(number, back, source, place, level))  # type: ignore[arg-type]
        result = wrap(np.zeros((*rows._data.shape[:-1], matrix.shape[1]), self.compute))
        self.source(result, place)
        return source, result

    def fresh(self, symbol: Any) -> Source:
        """A place that a kernel fills with a symbol's values, even where they lie somewhere."""
        if not isinstance(symbol, (Whole, Parts)):
            raise NotFusible("a result that is a number")
        expr = getattr(symbol, "expr", None)
        if not (isinstance(expr, Expr) and expr.op == "parameter"):
            return self.placed(symbol)
        known = self.sources[expr.args[0]]
        if known.dim is None and known.place in self.filled:
            return known
        level = self.level(symbol)
        place = self.place(level + 1)
        self.steps.append(Computed(place, symbol, level))
        source = Source(place, symbol.shape)
        self.sources[source.name] = source
        return source


class ProductBackward(Node):
    """Notes the product that the gradient of a product's rows is."""

    __slots__ = ("number", "tracer")
    title = "ProductBackward"
    tracer: RoundTracer
    number: int
    sequence_number: int

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradient of the rows."""
        return (self.tracer.slope(self.number, grad, self.edges[0] is not None), None)


# ---- rules


def slice_(tracer: Tracer, result: Any, x: Any, dim: int, start: Any, end: Any,
           step: int) -> bool:  # fmt: skip
    """A part that follows each other."""
    symbol = tracer.symbol(x)
    if step != 1:
        return False
    dim %= len(symbol.shape)
    first = slice(start, end).indices(symbol.shape[dim])[0]
    tracer.note(result, rules.piece(tracer, symbol, dim, first, result._data.shape[dim]))
    return True


def slice_backward(tracer: Tracer, result: Any, grad: Any, sizes: Any, dim: int, start: Any,
                   end: Any, step: int) -> bool:  # fmt: skip
    """The gradient of a part, between zeros."""
    symbol, shape = tracer.symbol(grad), result._data.shape
    dim %= len(shape)
    if symbol.shape == shape:
        tracer.note(result, symbol)
        return True
    if step != 1 or (isinstance(symbol, Parts) and symbol.dim != dim):
        return False
    first = slice(start, end).indices(shape[dim])[0]
    inner = symbol.parts if isinstance(symbol, Parts) else [symbol]
    behind = shape[dim] - first - symbol.shape[dim]
    parts = [*_zeros(shape, dim, first, symbol.dtype), *inner,
             *_zeros(shape, dim, behind, symbol.dtype)]  # fmt: skip
    tracer.note(result, Parts(parts, dim))
    return True


def _zeros(shape: tuple[int, ...], dim: int, size: int, dtype: Any) -> list[Whole]:
    """A part that is 0, if it has elements."""
    own = (*shape[:dim], size, *shape[dim + 1 :])
    return [Whole(0.0, own, dtype)] if size else []


def sum_(tracer: Tracer, result: Any, x: Any, dims: Any = None, keepdim: bool = False,
         dtype: Any = None) -> bool:  # fmt: skip
    """Over rows, of a symbol that consists of parts too: it is placed first. A sum over columns as
    well is noted as one over rows; its shape tells.
    """
    symbol = tracer.symbol(x)
    if isinstance(symbol, Parts):
        source = tracer.placed(symbol)
        symbol = Whole(parameter(source.name), symbol.shape, symbol.dtype)
        tracer.note(x, symbol)
    listed = [dims] if isinstance(dims, int) else list(dims or range(x._data.ndim))
    if x._data.ndim == len(listed) and dtype is None and isinstance(symbol, Whole):
        tracer.note(result, Whole(down(symbol.expr), result._data.shape, symbol.dtype))
        return True
    return rules.sum_(tracer, result, x, dims, keepdim, dtype)


SPECIAL = {"slice": slice_, "slice_backward": slice_backward, "sum": sum_}
