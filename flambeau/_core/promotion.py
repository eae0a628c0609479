"""Type promotion: which type the result of an operator has.

Two types meet in the smallest type that holds both categories; tensors with dimensions count
more than zero-dim tensors, and those more than Python numbers, unless the category is higher.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from flambeau._core import dtype as dt

BOOL, INTEGER, FLOAT, COMPLEX = range(4)
_FLOAT_RANK = {dt.float16: 0, dt.bfloat16: 0, dt.float32: 1, dt.float64: 2}
_STORAGE_UNSIGNED = frozenset((dt.uint16, dt.uint32, dt.uint64))


@cache
def category(d: dt.dtype) -> int:
    """BOOL < INTEGER < FLOAT < COMPLEX."""
    if d.is_complex:
        return COMPLEX
    if d.is_floating_point:
        return FLOAT
    return BOOL if d is dt.bool_ else INTEGER


@cache
def promote_types(type1: Any, type2: Any) -> dt.dtype:
    """The smallest type that both can be converted to safely, by torch's table.

    >>> import flambeau as torch
    >>> torch.promote_types(torch.int64, torch.float16)
    torch.float16
    """
    type1, type2 = dt.as_dtype(type1), dt.as_dtype(type2)
    for position, value in enumerate((type1, type2), 1):
        if not isinstance(value, dt.dtype):
            raise TypeError(f"promote_types(): argument 'type{position}' (position {position}) "
                            f"must be torch.dtype, not {type(value).__name__}")  # fmt: skip
    if type1 is type2:
        return type1
    low, high = sorted((type1, type2), key=category)
    if "float8" in low.name or "float8" in high.name:
        if category(low) == FLOAT:
            raise RuntimeError(
                f"Promotion for Float8 Types is not supported, attempted to promote "
                f"{type1.scalar_name} and {type2.scalar_name}"
            )
        return high
    if category(high) == COMPLEX:
        return _promote_complex(low, high)
    if category(high) == FLOAT:
        return _promote_float(low, high)
    if category(low) == BOOL:
        return high
    return _promote_integers(type1, type2)


def _promote_complex(low: dt.dtype, high: dt.dtype) -> dt.dtype:
    """The complex type whose parts hold those of both."""
    return promote_types(low.to_real(), high.to_real()).to_complex()


def _promote_float(low: dt.dtype, high: dt.dtype) -> dt.dtype:
    if category(low) != FLOAT:
        return high
    if _FLOAT_RANK[low] == _FLOAT_RANK[high]:
        return dt.float32  # float16 with bfloat16
    return max(low, high, key=_FLOAT_RANK.__getitem__)


def _promote_integers(type1: dt.dtype, type2: dt.dtype) -> dt.dtype:
    if type1 in _STORAGE_UNSIGNED or type2 in _STORAGE_UNSIGNED:
        return _promote_storage_unsigned(type1, type2)
    if dt.uint8 not in (type1, type2):
        return max(type1, type2, key=lambda d: d.itemsize)
    signed = type1 if type2 is dt.uint8 else type2
    return dt.int16 if signed is dt.int8 else signed


def _promote_storage_unsigned(type1: dt.dtype, type2: dt.dtype) -> dt.dtype:
    if type1.is_signed or type2.is_signed:
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{type1.scalar_name} and {type2.scalar_name}"
        )
    return max(type1, type2, key=lambda d: d.itemsize)


def dtype_of_number(value: Any) -> dt.dtype:
    """The type that a Python number brings along: bool, int64, and the default types."""
    if isinstance(value, bool):
        return dt.bool_
    if isinstance(value, int):
        return dt.int64
    if isinstance(value, float):
        return dt.default_dtype()
    return dt.default_complex()


def combine(dimensioned: dt.dtype | None, zero_dim: dt.dtype | None,
            number: dt.dtype | None) -> dt.dtype:  # fmt: skip
    """Join the three groups of operands; each is the promoted type of its group, or None."""
    result = dimensioned
    for weaker in (zero_dim, number):
        result = _join_weaker(result, weaker)
    if result is None:
        raise RuntimeError("at least one operand is needed to promote types")
    return result


def _join_weaker(strong: dt.dtype | None, weak: dt.dtype | None) -> dt.dtype | None:
    if strong is None or weak is None:
        return strong or weak
    if category(weak) <= category(strong):
        return strong
    if category(strong) == FLOAT:  # a float meets a weak complex: keep the float's precision
        return strong.to_complex()
    return weak
