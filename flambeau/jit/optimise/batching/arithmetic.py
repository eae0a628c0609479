"""Rules of elementwise operators, products and reductions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.optimise.batching.program import (
    Batched,
    NotBatchable,
    Rounds,
    Rule,
)
from flambeau.jit.optimise.batching.rules import (
    RULES,
    moved,
    plain_only,
    rows_first,
    rule,
    tensor_of,
    whole,
)

# ---- elementwise


POINTWISE = """
add sub mul div rsub remainder fmod pow maximum minimum fmax fmin atan2 hypot where lerp addcmul
addcdiv clamp clamp_min clamp_max neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square
reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid relu relu6 elu selu
celu gelu silu mish softplus leaky_relu hardtanh hardsigmoid hardswish log_sigmoid hardshrink
softshrink threshold prelu erf erfc erfinv lgamma digamma floor ceil round trunc frac eq ne lt le gt
ge isnan isinf isfinite logical_and logical_or logical_xor logical_not bitwise_and bitwise_or
bitwise_xor bitwise_not __and__ __or__ __xor__ floor_divide true_divide xlogy logaddexp nan_to_num
deg2rad rad2deg copysign heaviside clone contiguous detach to type_as float double zeros_like
ones_like full_like masked_fill logit sinc multiply subtract divide negative absolute
""".split()


@rule(*[name for name in POINTWISE if name != "prelu"])
def pointwise(plain: Rule, rounds: int, *values: Any) -> Any:
    """Ranks of rounds are brought together; then all broadcasts as in one round."""
    if any(isinstance(value, Rounds) for value in values):
        values = _with_tensors(values)
    ranks = [v.rank if isinstance(v, Batched) else v._data.ndim if isinstance(v, Tensor) else -1
             for v in values]  # fmt: skip
    _check_types(values, ranks)
    rank = max(ranks)
    return Batched(plain(*[rows_first(v, rank) if isinstance(v, Batched) else v for v in values]))


def _with_tensors(values: Sequence[Any]) -> tuple[Any, ...]:
    """Integers of the rounds as tensors of the type beside them, which a number would not change
    either.
    """
    tensors = [whole(v) for v in values if isinstance(v, (Batched, Tensor))]
    types = {tensor._data.dtype for tensor in tensors}
    if len(types) != 1:
        raise NotBatchable("arithmetic of the index")
    dtype = types.pop()
    if dtype.name not in ("float32", "float64", "int64"):
        raise NotBatchable("the index beside another type")
    return tuple([Batched(wrap(v.numbers.astype(dtype))) if isinstance(v, Rounds) else v
                  for v in values])  # fmt: skip


def _check_types(values: Sequence[Any], ranks: Sequence[int]) -> None:
    """Tensors without dims give way to others in promotion: in a batch they have one."""
    types = set()
    for value in values:
        if isinstance(value, (Batched, Tensor)):
            tensor = value.tensor if isinstance(value, Batched) else value
            types.add(tensor._data.dtype)
    if len(types) > 1 and 0 in ranks:
        raise NotBatchable("types that are promoted by dims")
    alone = [rank for value, rank in zip(values, ranks, strict=True) if isinstance(value, Batched)]
    numbers = any(isinstance(v, (int, float, complex)) for v in values)
    if 0 in alone and numbers and any(t.kind in "biu" for t in types):
        raise NotBatchable("integers without dims beside numbers")


def plain_integer(values: Sequence[Any]) -> bool:
    """Whether all values are integers or arrays of them."""
    return all(isinstance(v, np.ndarray) or type(v) is int for v in values)


def _integer_rule(function: Callable[..., Any]) -> Rule:
    def apply(plain: Rule, rounds: int, *values: Any) -> Any:
        if any(isinstance(value, (Batched, Tensor)) for value in values):
            return pointwise(plain, rounds, *values)
        given = [v.numbers if isinstance(v, Rounds) else v for v in values]
        if not plain_integer(given):
            raise NotBatchable("arithmetic of the index")
        return Rounds(np.broadcast_to(function(*given), (rounds,)).astype(np.int64))

    return apply


for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
    RULES[f"aten::{_name}"] = _integer_rule(_function)


def _checked(function: Callable[..., Any]) -> Rule:
    """Division by a number that is not 0, rounded down as in Python."""

    def divide(left: Any, right: Any) -> Any:
        if np.any(np.equal(right, 0)):
            raise ZeroDivisionError
        return function(left, right)

    return _integer_rule(divide)


RULES["aten::floordiv"] = _checked(operator.floordiv)
RULES["aten::remainder"] = _checked(operator.mod)
RULES["aten::neg"] = _integer_rule(operator.neg)
RULES["aten::__derive_index"] = _integer_rule(lambda index, start, step: start + index * step)


# ---- products


@rule("matmul", "mm", "mv", "dot")
def matmul(plain: Rule, rounds: int, left: Any, right: Any) -> Any:
    """Products of vectors and matrices: missing dims are added and taken away again."""
    ranks = [v.rank if isinstance(v, Batched) else v.dim() for v in (left, right)]
    if min(ranks) == 0 or max(ranks) > 2:
        raise NotBatchable("products of other things than vectors and matrices")
    if not isinstance(right, Batched):  # rows of all rounds, times one matrix
        return Batched(ops.matmul(left.tensor, right))
    a = _as_matrices(left, -2) if ranks[0] == 1 else whole(left)
    b = _as_matrices(right, -1) if ranks[1] == 1 else whole(right)
    result = ops.matmul(a, b)
    if ranks[1] == 1:
        result = result.squeeze(-1)
    if ranks[0] == 1:
        result = result.squeeze(-1 if ranks[1] == 1 else -2)
    return Batched(result)


def _as_matrices(value: Any, dim: int) -> Any:
    return whole(value).unsqueeze(dim)


@rule("linear")
def linear(plain: Rule, rounds: int, x: Any, weight: Any, bias: Any) -> Any:
    """One product with the same weights."""
    plain_only(weight, bias)
    return Batched(plain(tensor_of(x), weight, bias))


@rule("addmm")
def addmm(plain: Rule, rounds: int, bias: Any, left: Any, right: Any, beta: Any,
          alpha: Any) -> Any:  # fmt: skip
    """A product and what is added to it."""
    plain_only(beta, alpha)
    if beta != 1 or alpha != 1:
        raise NotBatchable("factors of addmm")
    product = matmul(ops.mm, rounds, left, right)
    return pointwise(ops.add, rounds, product, bias)


@rule("bmm")
def bmm(plain: Rule, rounds: int, left: Any, right: Any) -> Any:
    """Batches of products in every round."""
    return Batched(ops.matmul(whole(left), whole(right)))


# ---- reductions


@rule("amax", "amin", "all", "any", "argmax", "argmin", "logsumexp", "var", "std", "norm")
def reduction(plain: Rule, rounds: int, x: Any, *rest: Any) -> Any:
    """Over dims of each round."""
    plain_only(*rest)
    if x.rank == 0 or len(rest) < 2:
        raise NotBatchable("a reduction of everything")
    return Batched(plain(tensor_of(x), _reduced(rest[0], x.rank), *rest[1:]))


def _reduced(dims: Any, rank: int) -> Any:
    """The dims of a reduction; without any, all of the round."""
    if type(dims) is int:
        return moved(dims, rank)
    if not isinstance(dims, (list, tuple)):
        raise NotBatchable("a reduction without dims")
    return [moved(dim, rank) for dim in dims] or list(range(1, rank + 1))


def _whole_rule(name: str) -> Rule:
    """`x.sum()`, `x.sum(dims)`: a reduction whose dims may be left out."""
    function = getattr(ops, name)

    def apply(plain: Rule, rounds: int, x: Any, *rest: Any) -> Any:
        if len(rest) != 1 or x.rank == 0:
            return reduction(plain, rounds, x, *rest)
        return Batched(function(tensor_of(x).flatten(1), 1, dtype=rest[0]))  # type: ignore[attr-defined]

    return apply


for _name in ("sum", "mean", "prod"):
    RULES[f"aten::{_name}"] = _whole_rule(_name)


@rule("max", "min", "sort", "median", "mode")
def extreme(plain: Rule, rounds: int, x: Any, *rest: Any) -> Any:
    """Values and indices along a dim; the larger of two tensors."""
    if len(rest) == 1 and isinstance(rest[0], (Batched, Tensor)):
        return pointwise(plain, rounds, x, *rest)
    plain_only(*rest)
    if x.rank == 0 or len(rest) != 2:
        raise NotBatchable("an extreme of everything")
    return [Batched(part) for part in plain(tensor_of(x), moved(rest[0], x.rank), rest[1])]


@rule("softmax", "log_softmax", "cumsum", "cumprod")
def along_dim(plain: Rule, rounds: int, x: Any, dim: Any, *rest: Any) -> Any:
    """Along a dim of each round."""
    plain_only(dim, *rest)
    return Batched(plain(tensor_of(x), moved(dim, x.rank), *rest))


@rule("layer_norm", "rms_norm")
def layer_norm(plain: Rule, rounds: int, x: Any, shape: Any, *rest: Any) -> Any:
    """Over the last dims of each round."""
    plain_only(shape, *rest)
    if len(shape) > x.rank:
        raise NotBatchable("more dims than a round has")
    return Batched(plain(tensor_of(x), shape, *rest))
