"""Operators on elements by themselves: parts stay parts, and linear ones keep terms."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.op import BY_NAME
from flambeau.distributed.placements import NormPartial, Partial, Placement, Replicate, Shard
from flambeau.distributed.tensor.dtensor import DTensor
from flambeau.distributed.tensor.rules.call import Call, Choice

LIKE_POINTWISE = frozenset(
    "clone detach alias copy _to_copy zeros_like ones_like empty_like full_like rand_like "
    "randn_like bernoulli normal uniform zero fill threshold_backward native_dropout "
    "native_dropout_backward gelu where masked_fill lerp".split()
)
"""Operators that are no pointwise rows, and treat elements by themselves all the same."""
SCALES = frozenset(("mul", "div"))
KEEPS_TERMS = frozenset(("detach", "alias", "_to_copy", "zero"))
SUMS = frozenset(("add", "sub"))
TURNS = {"max": "min", "min": "max", "sum": "sum", "avg": "avg"}


def is_pointwise(call: Call) -> bool:
    """Whether an operator treats elements by themselves."""
    if call.base in LIKE_POINTWISE:
        return True
    return any(op.kind == "pointwise" for op in BY_NAME.get(call.base, ()))


def pointwise(call: Call) -> list[Choice]:
    """Copies, terms where the operator is linear, and the parts that one of the tensors has."""
    choices = [*_terms(call), call.everywhere()]
    ndim = len(call.outputs[0].shape)
    dims = set()
    for place in range(len(call.tensors)):
        placement = call.placement(place)
        if isinstance(placement, Shard):
            dims.add(placement.dim + ndim - len(call.shape(place)))
    for dim in sorted(dims):
        if dim >= 0 and call.outputs[0].shape[dim] > 1:
            choices.append(divided(call, dim))
    return choices


def divided(call: Call, dim: int) -> Choice:
    """Results in parts along a dim; what has not this dim, or one element there, is copied."""
    whole = call.outputs[0].shape
    inputs = [_own(call.shape(place), whole, dim) for place in range(len(call.tensors))]
    return Choice(tuple(inputs), (Shard(dim),) * len(call.outputs))


def _own(shape: Any, whole: Any, dim: int) -> Placement:
    own = dim - len(whole) + len(shape)
    if own < 0 or shape[own] != whole[dim]:
        return Replicate()
    return Shard(own)


def _terms(call: Call) -> list[Choice]:
    """Choices by which terms stay terms."""
    found = []
    for kind in call.kinds():
        if isinstance(kind, Partial) and not isinstance(kind, NormPartial):
            found += _terms_of(call, kind)
    return found


def _terms_of(call: Call, kind: Partial) -> list[Choice]:
    count = len(call.tensors)
    is_linear = kind.reduce_op in ("sum", "avg")
    if call.base in KEEPS_TERMS or (call.base == "fill" and count == 1):
        return [Choice((kind,), (kind,))] if count == 1 else []
    if call.base == "neg" and kind.reduce_op in TURNS:
        turned = Partial(TURNS[kind.reduce_op])
        return [Choice((kind,), (kind if is_linear else turned,))]
    if not is_linear or _has_mode(call):
        return []
    if call.base in (*SUMS, "copy") and count == 2:  # noqa: PLR2004
        return [Choice((kind, kind), (kind,))]
    if call.base not in SCALES or not isinstance(call.args[0], DTensor):
        return []
    if count == 1:
        return [Choice((kind,), (kind,))]
    if any(isinstance(call.placement(place), Shard) for place in range(count)):
        return []
    first = Choice((kind, Replicate()), (kind,))
    return [first] if call.base == "div" else [first, Choice((Replicate(), kind), (kind,))]


def _has_mode(call: Call) -> bool:
    """Whether a division rounds."""
    return call.argument("rounding_mode") is not None
