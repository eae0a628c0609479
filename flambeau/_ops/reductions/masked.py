"""`torch.masked`: reductions and normalisations of the elements that a bool mask lets through.

Each puts the value that changes nothing (0 for sums, 1 for products, -inf for maxima) in place of
the elements whose mask is False, and calls the plain operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.table.dims import wrap_dims
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite

_INFINITY = float("inf")


# ---- masks and fill values


def _broadcast_mask(input: Any, mask: Any) -> Any:
    if mask._data.ndim > input._data.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher "
                         "than of the input)")  # fmt: skip
    if mask._data.dtype.kind != "b":
        mask = mask.bool()
    return mask if mask._data.shape == input._data.shape else mask.expand(input._data.shape)


def _lowest(dtype: dt.dtype) -> Any:
    if dtype is dt.bool_:
        return False
    return dt.iinfo(dtype).min if dtype in dt.INTEGERS else -_INFINITY


def _highest(dtype: dt.dtype) -> Any:
    if dtype is dt.bool_:
        return True
    return dt.iinfo(dtype).max if dtype in dt.INTEGERS else _INFINITY


def _fill(input: Any, mask: Any, value: Any) -> Any:
    """The input with `value` (a number, or a function of the type) where the mask is False."""
    if mask is None:
        return input
    if callable(value):
        value = value(input.dtype)
    return ops.masked_fill(input, ops.logical_not(_broadcast_mask(input, mask)), value)


def _dims(input: Any, dim: Any) -> tuple[int, ...]:
    """All dims for None; a dim given twice is an error."""
    if isinstance(dim, (tuple, list)):
        ndim = input._data.ndim
        wrapped = [d % ndim if ndim else 0 for d in dim]
        for d in wrapped:
            if wrapped.count(d) > 1:
                raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
    return wrap_dims(dim, input._data.ndim)


def _summed_type(input: Any, dtype: Any) -> dt.dtype:
    """Small integers and bools add up and multiply in int64."""
    if dtype is not None:
        return dtype  # type: ignore[no-any-return]
    return dt.int64 if input._data.dtype.kind in "biu" else input.dtype  # type: ignore[no-any-return]


def _masked(schema: str) -> Callable[..., Any]:
    return composite(schema, namespace="masked", method=False)


_TAIL = "*, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) -> Tensor"


# ---- reductions


@_masked(f"sum(Tensor input, int[1]? dim=None, {_TAIL}")
def sum(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
        mask: Any = None) -> Any:  # fmt: skip
    """The sum of the elements that the mask lets through."""
    wanted = _summed_type(input, dtype)
    return ops.sum(_fill(input, mask, 0), _dims(input, dim), keepdim, dtype=wanted)


@_masked(f"prod(Tensor input, int[1]? dim=None, {_TAIL}")
def prod(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Any = None) -> Any:  # fmt: skip
    """The product of the elements that the mask lets through."""
    wanted = _summed_type(input, dtype)
    result = _fill(input, mask, 1).to(wanted)
    kept = None if wanted.is_floating_point else wanted  # autocast may choose among floats
    dims = _dims(input, dim)
    if not input._data.ndim and dim not in (None, (), []):
        dims = (0,)  # a product of one element, and no longer the input itself
    for d in sorted(dims, reverse=True):
        result = ops.prod(result, d, keepdim, dtype=kept)
    return result


@_masked(f"mean(Tensor input, int[1]? dim=None, {_TAIL}")
def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Any = None) -> Any:  # fmt: skip
    """The average of the elements that the mask lets through."""
    which = "Input" if dtype is None else "Optional"
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"mean(): Could not infer output dtype. {which} dtype must be either a "
                         f"floating point or complex dtype. Got: {dtype}")  # fmt: skip
    if mask is None:
        return ops.mean(input, _dims(input, dim), keepdim, dtype=dtype)
    total = ops.masked.sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def _count(input: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    ones = ops.ones_like(input, dtype=dt.int64)
    return ops.masked.sum(ones, dim, keepdim=keepdim, mask=mask)


@_masked(f"amax(Tensor input, int[1]? dim=None, {_TAIL}")
def amax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Any = None) -> Any:  # fmt: skip
    """The largest of the elements that the mask lets through."""
    result = ops.amax(_fill(input, mask, _lowest), _dims(input, dim), keepdim)
    return result.to(dtype or input.dtype)


@_masked(f"amin(Tensor input, int[1]? dim=None, {_TAIL}")
def amin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Any = None) -> Any:  # fmt: skip
    """The smallest of the elements that the mask lets through."""
    result = ops.amin(_fill(input, mask, _highest), _dims(input, dim), keepdim)
    return result.to(dtype or input.dtype)


@_masked(f"argmax(Tensor input, int? dim=None, {_TAIL}")
def argmax(input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Any = None) -> Any:  # fmt: skip
    """The index of the largest element that the mask lets through, in the input's type."""
    return ops.argmax(_fill(input, mask, _lowest), dim, keepdim).to(dtype or input.dtype)


@_masked(f"argmin(Tensor input, int? dim=None, {_TAIL}")
def argmin(input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None,
           mask: Any = None) -> Any:  # fmt: skip
    """The index of the smallest element that the mask lets through, in the input's type."""
    return ops.argmin(_fill(input, mask, _highest), dim, keepdim).to(dtype or input.dtype)


@_masked(f"median(Tensor input, int dim=-1, {_TAIL}")
def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None,
           mask: Any = None) -> Any:  # fmt: skip
    """The median of the elements that the mask lets through."""
    wanted = dtype or input.dtype
    is_float = input.dtype.is_floating_point
    source = input if is_float else input.to(dt.float32)
    result = ops.nanmedian(_fill(source, mask, float("nan")), dim, keepdim)[0]
    if is_float:
        return result
    if np.isnan(result._data).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating "
                         "point")  # fmt: skip
    return result.to(wanted)


@_masked(f"logsumexp(Tensor input, int[1]? dim=None, {_TAIL}")
def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
              mask: Any = None) -> Any:  # fmt: skip
    """The log of the sum of exponentials of the elements that the mask lets through."""
    wanted = dtype or input.dtype
    filled = _fill(input.to(wanted), mask, _lowest)
    return ops.logsumexp(filled, _dims(input, dim), keepdim).to(wanted)


@_masked(f"norm(Tensor input, float? ord=2.0, int[1]? dim=None, {_TAIL}")
def norm(input: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Any = None) -> Any:  # fmt: skip
    """The vector norm of the elements that the mask lets through."""
    neutral = _INFINITY if ord == -_INFINITY else 0
    dims = _dims(input, dim)
    return ops.linalg.vector_norm(_fill(input, mask, neutral), ord, dims, keepdim, dtype=dtype)


_SPREAD = ("(Tensor input, int[1]? dim=None, bool? unbiased=None, *, Scalar? correction=None, "
           "bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) -> Tensor")  # fmt: skip


@_masked(f"var{_SPREAD}")
def var(input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: Any = None,
        keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:  # fmt: skip
    """The variance of the elements that the mask lets through."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = dt.float32
    if unbiased is not None:
        correction = int(unbiased)
    correction = 1 if correction is None else correction
    if mask is None:
        source, dims = input.to(dtype), _dims(input, dim)
        return ops.var(source, dims, correction=correction, keepdim=keepdim).to(dtype)
    return _variance(input, dim, correction, keepdim, dtype, mask)


def _variance(input: Any, dim: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    count = _count(input, dim, True, mask)
    total = ops.masked.sum(input, dim, keepdim=True, dtype=dtype, mask=mask)
    centered = input - total / count
    squares = centered * (ops.conj(centered) if dtype.is_complex else centered)
    spread = ops.masked.sum(squares, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    if not keepdim:
        count = count.reshape(spread._data.shape)
    return (spread / ops.clamp(count - correction, min=0)).to(dtype)


@_masked(f"std{_SPREAD}")
def std(input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: Any = None,
        keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:  # fmt: skip
    """The standard deviation of the elements that the mask lets through."""
    variance = ops.masked.var(input, dim, unbiased, correction=correction, keepdim=keepdim,
                              dtype=dtype, mask=mask)  # fmt: skip
    return ops.sqrt(variance)


# ---- of the input's shape

_ALONG = "(Tensor input, int dim, *, ScalarType? dtype=None, Tensor? mask=None) -> Tensor"


@_masked(f"softmax{_ALONG}")
def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The softmax of the elements that the mask lets through; 0 elsewhere."""
    filled = _fill(input.to(dtype or input.dtype), mask, _lowest)
    return ops.softmax(filled, dim)


@_masked(f"log_softmax{_ALONG}")
def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The log of `softmax`."""
    filled = _fill(input.to(dtype or input.dtype), mask, _lowest)
    return ops.log_softmax(filled, dim)


@_masked(f"softmin{_ALONG}")
def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The softmax of the negated elements."""
    filled = _fill(input.to(dtype or input.dtype), mask, _highest)
    return ops.softmax(-filled, dim)


@_masked(f"cumsum{_ALONG}")
def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running sums of the elements that the mask lets through."""
    return ops.cumsum(_fill(input, mask, 0), dim, dtype=dtype or input.dtype)


@_masked(f"cumprod{_ALONG}")
def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running products of the elements that the mask lets through."""
    return ops.cumprod(_fill(input, mask, 1), dim, dtype=dtype or input.dtype)


@_masked(
    "normalize(Tensor input, float ord, int dim, *, float eps=1e-12, "
    "ScalarType? dtype=None, Tensor? mask=None) -> Tensor"
)
def normalize(input: Any, ord: Any, dim: int, *, eps: float = 1e-12, dtype: Any = None,
              mask: Any = None) -> Any:  # fmt: skip
    """The elements that the mask lets through divided by their norm along a dim; 0 elsewhere."""
    source = input.to(dtype or input.dtype)
    length = ops.masked.norm(source, ord, dim, keepdim=True, mask=mask)
    return _fill(source, mask, 0) / ops.clamp(length, min=eps)


@_masked(
    "logaddexp(Tensor input, Tensor other, *, ScalarType? dtype=None, "
    "Tensor? input_mask=None, Tensor? other_mask=None) -> Tensor"
)
def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None,
              other_mask: Any = None) -> Any:  # fmt: skip
    """log(exp(input) + exp(other)), where masked elements count as -inf."""
    left, right = _fill(input, input_mask, _lowest), _fill(other, other_mask, _lowest)
    return ops.logaddexp(left, right).to(dtype or input.dtype)
