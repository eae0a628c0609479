"""Tensors to test with: `make_tensor`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor


@dataclass(frozen=True)
class Range:
    """What a dtype holds, and what is drawn unless the caller says otherwise."""

    lowest: float
    highest: float  # not drawn itself
    low: float
    high: float


def _range_of(element: dt.dtype) -> Range:
    if element is dt.bool_:
        return Range(0, 2, 0, 2)
    if element.is_floating_point or element.is_complex:
        info = dt.finfo(element)
        return Range(info.min, info.max, -9, 9)
    integers = dt.iinfo(element)
    # Bounds of `randint` are int64, whose greatest value it cannot draw.
    highest = integers.max if element is dt.int64 else integers.max + 1
    return Range(integers.min, highest, -9, 10)


def _bounds(element: dt.dtype, low: float | None, high: float | None) -> tuple[Any, Any]:
    """Where values lie: the caller's bounds or the dtype's, within what the dtype holds."""
    allowed = _range_of(element)
    low = allowed.low if low is None else low
    high = allowed.high if high is None else high
    is_inexact = element.is_floating_point or element.is_complex
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and is_inexact and element.itemsize > 1:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < allowed.lowest or low >= allowed.highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {element} "
            f"only supports [{allowed.lowest}, {allowed.highest})"
        )
    low, high = (min(max(bound, allowed.lowest), allowed.highest) for bound in (low, high))
    return (low, high) if is_inexact else (math.ceil(low), math.ceil(high))


def _uniform(shape: Any, element: dt.dtype, low: float, high: float, device: Any) -> Tensor:
    """Uniform values; the parts of complex ones, and float8 by way of float32."""
    drawn = ops.empty(shape, dtype=dt.float32 if element.itemsize == 1 else element,
                      device=device)  # fmt: skip
    target = ops.view_as_real(drawn) if element.is_complex else drawn
    if high - low >= dt.finfo(target.dtype).max:
        # The range of `uniform_` itself must not overflow.
        target.uniform_(low / 2, high / 2).mul_(2)
    else:
        target.uniform_(low, high)
    return drawn.to(element)


def make_tensor(
    *shape: Any,
    dtype: dt.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random values, uniform on [low, high).

    Args:
        low, high: by default -9 and 9 for floating point and complex dtypes (of each part), -9 and
            10 for integers, 0 and 2 for booleans; never beyond what the dtype holds.
        noncontiguous: every second element of a larger tensor, if there is more than one.
        exclude_zero: zeros become 1, or the smallest normal number of a floating point dtype.

    Raises:
        ValueError: `low >= high`, bounds that are NaN or out of range, `requires_grad` with
            integers, or both `noncontiguous` and `memory_format`.
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    is_inexact = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not is_inexact:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    every_second = noncontiguous and math.prod(shape) > 1
    if every_second:
        shape = (*shape[:-1], 2 * shape[-1])
    first, last = _bounds(dtype, low, high)
    if is_inexact:
        result: Any = _uniform(shape, dtype, first, last, device)
    else:
        result = ops.randint(first, last, shape, dtype=dtype, device=device)
    if every_second:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = dt.finfo(dtype).tiny if is_inexact else 1
    if is_inexact and dtype.itemsize > 1:
        result.requires_grad = requires_grad
    return result  # type: ignore[no-any-return]
