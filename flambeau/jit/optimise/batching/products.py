"""Rules of products."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.jit.optimise.batching.program import Call
from flambeau.jit.optimise.batching.rules import plain_only, rank_of, rows_first, rule, whole
from flambeau.jit.optimise.batching.values import Batched, NotBatchable

LARGEST_RANK = 2


@rule("matmul", "mm", "mv", "dot")
def matmul(call: Call, **given: Any) -> Any:
    """Products of vectors and matrices."""
    if len(given) != 2:  # noqa: PLR2004
        raise NotBatchable("a product of another type")
    return Batched(product(*given.values()))


def product(left: Any, right: Any) -> Any:
    """A product of vectors and matrices: missing dims are added and taken away again."""
    ranks = [rank_of(left), rank_of(right)]
    if min(ranks) < 1 or max(ranks) > LARGEST_RANK:
        raise NotBatchable("products of other things than vectors and matrices")
    if not isinstance(right, Batched):  # rows, perhaps of all rounds, times one matrix
        return ops.matmul(whole(left), right)
    a = whole(left).unsqueeze(-2) if ranks[0] == 1 else whole(left)
    b = whole(right).unsqueeze(-1) if ranks[1] == 1 else whole(right)
    result = ops.matmul(a, b)
    if ranks[1] == 1:
        result = result.squeeze(-1)
    if ranks[0] == 1:
        result = result.squeeze(-1 if ranks[1] == 1 else -2)
    return result


@rule("linear")
def linear(call: Call, input: Any, weight: Any, bias: Any) -> Any:
    """One product with the same weights."""
    plain_only(weight, bias)
    if not rank_of(input):
        raise NotBatchable("a product of other things than vectors and matrices")
    return Batched(call.again(input=whole(input)))


@rule("addmm")
def addmm(call: Call, self: Any, mat1: Any, mat2: Any, **given: Any) -> Any:
    """A product and what is added to it."""
    if given != {"beta": 1, "alpha": 1}:
        raise NotBatchable("factors of addmm")
    multiplied = product(mat1, mat2)
    return Batched(ops.add(multiplied, rows_first(self, LARGEST_RANK)))


@rule("bmm")
def bmm(call: Call, self: Any, mat2: Any, **given: Any) -> Any:
    """Batches of products in every round."""
    if given:
        raise NotBatchable("a product of another type")
    return Batched(ops.matmul(whole(self), whole(mat2)))
