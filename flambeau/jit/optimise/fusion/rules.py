"""What operators are as expressions: pointwise rows by their bodies, those of the kind `rows` by
their formulas, others by a rule each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr
from flambeau._compiler.fuse import average, down, total
from flambeau._compiler.kernel_source import ASKS
from flambeau._core.tables import entering
from flambeau._ops.rows import formulas
from flambeau._tensor.tensor import Tensor
from flambeau.jit.optimise.fusion.symbols import NotFusible, Parts, Whole, parameter
from flambeau.jit.optimise.fusion.tracing import COMPUTED, Tracer

BOOL = np.dtype(bool)
Rule = Callable[..., bool]
RULES: dict[str, Rule] = {}


def apply(tracer: Tracer, op: Any, plain: Any, values: tuple[Any, ...], result: Any) -> None:
    """Note what an operator has computed."""
    if op.kind == "pointwise":
        if pointwise(tracer, op.body, values, result):
            return
        raise NotFusible(f"{op.full_name} of these types")
    if op.kind == "rows" and along_rows(tracer, op, values, result):
        return
    rule = tracer.special.get(op.name) or RULES.get(op.name)
    if rule is not None and _has_symbol(tracer, values[0]) and rule(tracer, result, *values):
        return
    if not op.between_kernels and op.kind != "rows":
        raise NotFusible(op.full_name)
    tracer.call(plain, values, result)


def _has_symbol(tracer: Tracer, value: Any) -> bool:
    """Whether an operand is known as more than a number, as a 0-d constant of the group is."""
    return not isinstance(value, Tensor) or isinstance(tracer.symbol(value), (Whole, Parts))


rule = entering(RULES)
"""Enter a rule: it notes the results and returns True, or False if it does not hold here."""


# ---- elementwise


def pointwise(tracer: Tracer, body: Callable[..., Any], values: Sequence[Any],
              result: Tensor) -> bool:  # fmt: skip
    """An expression of the operands' expressions; of parts, part by part."""
    operands = [tracer.symbol(v) if isinstance(v, Tensor) else v for v in values]
    symbols = [v for v in operands if isinstance(v, (Whole, Parts))]
    dtype = result._data.dtype
    if not symbols:
        return result._data.ndim == 0  # of constants alone
    types = {symbol.dtype for symbol in symbols}
    if not types <= {tracer.compute, BOOL} or dtype not in (tracer.compute, BOOL):
        return False
    if tracer.compute not in types and not _asks(dtype, body, operands):
        return False
    shape = result._data.shape
    parted = [symbol for symbol in symbols if isinstance(symbol, Parts)]
    if not parted:
        expr = body(*[v.expr if isinstance(v, Whole) else v for v in operands])
        tracer.note(result, Whole(joined_down(tracer, expr), shape, dtype))
        return True
    if len(parted) > 1:
        operands = _cut_alike(tracer, operands, parted)
        parted = [symbol for symbol in operands if isinstance(symbol, Parts)]
    return _by_parts(tracer, body, operands, parted[0], result)


def _asks(dtype: Any, body: Callable[..., Any], operands: Sequence[Any]) -> bool:
    """Whether an operator of masks alone is a question or a choice. Kernels compute with masks as
    with 0 and 1, so `a + b` of two of them would be 2."""
    expr = body(*[parameter("x") if isinstance(v, (Whole, Parts)) else v for v in operands])
    return bool(dtype == BOOL) and isinstance(expr, Expr) and (expr.op in ASKS)


def _cut_alike(tracer: Tracer, operands: Sequence[Any], parted: Sequence[Parts]) -> list[Any]:
    """The operands, with those that consist of parts cut at the same places."""
    dim, shape = parted[0].dim, parted[0].shape
    if any(symbol.dim != dim or symbol.shape != shape for symbol in parted):
        raise NotFusible("parts along several dims")
    edges = sorted({edge for symbol in parted for edge in accumulate(symbol.sizes)})
    cut = {id(symbol): _cut(tracer, symbol, edges) for symbol in parted}
    return [cut.get(id(operand), operand) for operand in operands]


def _cut(tracer: Tracer, symbol: Parts, edges: Sequence[int]) -> Parts:
    """The same parts, cut at more places; the last edge is the end."""
    made, start, dim = [], 0, symbol.dim
    ends = list(accumulate(symbol.sizes))
    for edge in edges:
        k = bisect_left(ends, edge)
        own, first = symbol.parts[k], ends[k - 1] if k else 0
        size = edge - start
        shape = (*own.shape[:dim], size, *own.shape[dim + 1 :])
        expr = tracer.part(own.expr, own.shape, dim, start - first, size)
        made.append(Whole(expr, shape, own.dtype))
        start = edge
    return Parts(made, dim)


def _by_parts(tracer: Tracer, body: Callable[..., Any], operands: Sequence[Any], like: Parts,
              result: Tensor) -> bool:  # fmt: skip
    shape = result._data.shape
    if like.shape != shape:
        return False
    made, start = [], 0
    for k, part in enumerate(like.parts):
        size = part.shape[like.dim]
        given = [_part_of(tracer, v, like, k, start, size) for v in operands]
        made.append(Whole(joined_down(tracer, body(*given)), part.shape, result._data.dtype))
        start += size
    tracer.note(result, Parts(made, like.dim))
    return True


def _part_of(tracer: Tracer, value: Any, like: Parts, k: int, start: int, size: int) -> Any:
    if isinstance(value, Parts):
        same = [p.shape for p in value.parts] == [p.shape for p in like.parts]
        if not same or value.dim != like.dim:
            raise NotFusible("parts of other sizes")
        return value.parts[k].expr
    if isinstance(value, Whole):
        return tracer.part(value.expr, like.shape, like.dim, start, size)
    return value


def joined_down(tracer: Tracer, expr: Any) -> Any:
    """`down(a) + down(b)` as `down(a + b)`, if they are sums over the same rows: such sums stand at
    the root of a formula."""
    if not isinstance(expr, Expr) or expr.op != "add":
        return expr
    left, right = expr.args
    if (
        not isinstance(left, Expr)
        or not isinstance(right, Expr)
        or not left.op == right.op == "down"
    ):
        return expr
    same = tracer.shape_of(left.args[0]) == tracer.shape_of(right.args[0])
    return down(left.args[0] + right.args[0]) if same else expr


@rule("_where")
def where(tracer: Tracer, result: Tensor, *values: Any) -> bool:
    """One of two by a condition."""
    return pointwise(tracer, lambda *v: Expr("where", *v), values, result)


@rule("masked_fill")
def masked_fill(tracer: Tracer, result: Tensor, x: Any, mask: Any, value: Any) -> bool:
    """A number where the mask is set."""
    return pointwise(tracer, lambda a, m, v: Expr("where", m, v, a), (x, mask, value), result)


@rule("clone")
def clone(tracer: Tracer, result: Tensor, x: Any, *rest: Any) -> bool:
    """The same values."""
    symbol = tracer.symbol(x)
    if not isinstance(symbol, (Whole, Parts)):
        return False
    tracer.note(result, symbol)
    return True


# ---- shapes


@rule("split")
def split(tracer: Tracer, result: Any, x: Any, size: Any, dim: int) -> bool:
    """Parts of an expression: of all that it is made of."""
    symbol = tracer.symbol(x)
    dim %= len(symbol.shape)
    start = 0
    for part in result:
        width = part._data.shape[dim]
        tracer.note(part, piece(tracer, symbol, dim, start, width))
        start += width
    return True


RULES["split_with_sizes"] = split


def piece(tracer: Tracer, symbol: Whole | Parts, dim: int, start: int, size: int) -> Any:
    """A part of what a tensor stands for."""
    if size == symbol.shape[dim]:
        return symbol
    if isinstance(symbol, Whole):
        shape = (*symbol.shape[:dim], size, *symbol.shape[dim + 1 :])
        return Whole(tracer.part(symbol.expr, symbol.shape, dim, start, size), shape, symbol.dtype)
    if dim != symbol.dim:
        raise NotFusible("parts along several dims")
    edges = sorted({*accumulate(symbol.sizes), start, start + size} - {0})
    ends = list(zip(edges, _cut(tracer, symbol, edges).parts, strict=True))
    inner = [part for end, part in ends if start < end <= start + size]
    return inner[0] if len(inner) == 1 else Parts(inner, dim)


@rule("cat")
def cat(tracer: Tracer, result: Any, tensors: Any, dim: int) -> bool:
    """A tensor of parts."""
    dim %= len(result._data.shape)
    symbols: list[Any] = []
    for tensor in tensors:
        symbol = tracer.symbol(tensor)
        inner = isinstance(symbol, Parts) and symbol.dim == dim
        symbols += symbol.parts if inner else [symbol]
    if not all(isinstance(symbol, Whole) for symbol in symbols):
        return False
    if len({s.dtype for s in symbols}) > 1 or any(reduces(s.expr) for s in symbols):
        return False
    tracer.note(result, Parts(symbols, dim))
    return True


def _same_but_ones(tracer: Tracer, result: Any, x: Any, *rest: Any) -> bool:
    """Another shape of sums over rows: dims of size 1 come or go."""
    symbol = tracer.symbol(x)
    shape = result._data.shape
    if not isinstance(symbol, Whole) or not isinstance(symbol.expr, Expr):
        return False
    without = [n for n in shape if n != 1]
    if symbol.expr.op != "down" or without != [n for n in symbol.shape if n != 1]:
        return False
    tracer.note(result, Whole(symbol.expr, shape, symbol.dtype))
    return True


RULES["view"] = RULES["reshape"] = RULES["squeeze"] = _same_but_ones


@rule("expand")
def expand(tracer: Tracer, result: Any, x: Any, *rest: Any) -> bool:
    """The same expression: it broadcasts where it is used."""
    symbol = tracer.symbol(x)
    if not isinstance(symbol, Whole) or not isinstance(symbol.expr, Expr) or reduces(symbol.expr):
        return False
    tracer.note(result, Whole(symbol.expr, result._data.shape, symbol.dtype))
    return True


# ---- reductions


@rule("sum")
def sum_(tracer: Tracer, result: Any, x: Any, dims: Any = None, keepdim: bool = False,
         dtype: Any = None) -> bool:  # fmt: skip
    """Over the first dims: a sum over rows; over the last, kept ones: one of each row."""
    return _reduced(tracer, result, x, dims, keepdim, dtype, total)


@rule("mean")
def mean(tracer: Tracer, result: Any, x: Any, dims: Any = None, keepdim: bool = False,
         dtype: Any = None) -> bool:  # fmt: skip
    """Over the last dim, which is kept."""
    return _reduced(tracer, result, x, dims, keepdim, dtype, average)


def _reduced(tracer: Tracer, result: Any, x: Any, dims: Any, keepdim: bool, dtype: Any,
             row: Callable[[Any], Any]) -> bool:  # fmt: skip
    symbol = tracer.symbol(x)
    if not isinstance(symbol, Whole) or dtype is not None or not dims or symbol.dtype == BOOL:
        return False
    if not tracer.covers(symbol):
        return False
    rank = len(symbol.shape)
    if not rank:
        return False
    listed = sorted(d % rank for d in (dims if isinstance(dims, (list, tuple)) else [dims]))
    if reduces(symbol.expr):
        return False
    if row is total and rank > 1 and listed == list(range(rank - 1)):
        tracer.note(result, Whole(down(symbol.expr), result._data.shape, symbol.dtype))
        return True
    if listed == [rank - 1] and keepdim and rank > 1:
        tracer.note(result, Whole(row(symbol.expr), result._data.shape, symbol.dtype))
        return True
    return False


def reduces(expr: Any) -> bool:
    """Whether an expression has a sum over rows in it."""
    from flambeau.jit.optimise.fusion.symbols import nodes_of

    return any(node.op == "down" for node in nodes_of(expr))


def along_rows(tracer: Tracer, op: Any, values: Sequence[Any], result: Any) -> bool:
    """A row of the kind `rows` along the last dim: its formula."""
    names = [a.name for a in op.schema.arguments]
    given = dict(zip(names, values, strict=False))
    if op.reduces:
        return False
    tensors = [given[a.name] for a in op.schema.arguments if a.is_tensor]
    symbols = [tracer.symbol(tensor) for tensor in tensors]
    shape, dtype = result._data.shape, result._data.dtype
    if not all(isinstance(s, Whole) and s.shape == shape and s.dtype == dtype for s in symbols):
        return False
    if dtype not in COMPUTED or not any(map(tracer.covers, symbols)):
        return False
    if len(shape) < 2 or given["dim"] % len(shape) != len(shape) - 1:
        return False
    tracer.note(result, Whole(op.formula.function(*[s.expr for s in symbols]), shape, dtype))
    return True


# ---- layer norm


@rule("native_layer_norm")
def layer_norm(tracer: Tracer, result: Any, x: Any, shape: Any, weight: Any, bias: Any,
               eps: float) -> bool:  # fmt: skip
    """Normalised rows, and their statistics."""
    symbol = tracer.symbol(x)
    found = _parameters(tracer, (weight, bias), tracer.compute)
    if not isinstance(symbol, Whole) or symbol.dtype != tracer.compute or found is None:
        return False
    if len(shape) != 1 or len(symbol.shape) < 2 or not tracer.covers(symbol):
        return False
    output, mean, rstd = formulas.layer_norm.function(symbol.expr, *found, eps)
    rows = result[1]._data.shape
    tracer.note(result[0], Whole(output, symbol.shape, symbol.dtype))
    for tensor, expr in ((result[1], mean), (result[2], rstd)):
        tracer.note(tensor, Whole(expr, rows, symbol.dtype))
        tracer.rows.add(id(expr))
    return True


def _parameters(tracer: Tracer, tensors: Sequence[Any], dtype: Any) -> Any:
    """Expressions of weights, None for those that are absent; None if one does not fit."""
    found = []
    for tensor in tensors:
        symbol = None if tensor is None else tracer.symbol(tensor)
        if symbol is not None and (not isinstance(symbol, Whole) or symbol.dtype != dtype):
            return None
        found.append(None if symbol is None else symbol.expr)
    return found


@rule("native_layer_norm_backward")
def layer_norm_backward(tracer: Tracer, result: Any, grad: Any, x: Any, shape: Any, mean: Any,
                        rstd: Any, weight: Any, bias: Any, mask: Any) -> bool:  # fmt: skip
    """The gradients of input, weight and bias."""
    found = _parameters(tracer, (grad, x, mean, rstd, weight), tracer.compute)
    if found is None or len(shape) != 1:
        return False
    if not (tracer.covers(tracer.symbol(grad)) and tracer.covers(tracer.symbol(x))):
        return False
    slope, expr, center, scale, factor = found
    slopes = formulas.layer_norm_backward.function(expr, slope, factor, center, scale)
    for tensor, made in zip(result, slopes, strict=True):
        if tensor is not None:
            tracer.note(tensor, Whole(made, tensor._data.shape, tracer.compute))
    return True
