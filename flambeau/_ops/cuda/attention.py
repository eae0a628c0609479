"""Attention on GPUs: cuDNN's engines for half types without a mask, which keep the scores on the
chip; else products through cuBLASLt, with the rows of the scores between them.

Scores are float32 (float64 for that type), whatever the type of queries and keys is. The backward
pass computes them again, in both ways.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.attention_backends import Permitted
from flambeau._core.cudnn_settings import Cudnn
from flambeau._core.layout import is_dense
from flambeau._core.settings import Determinism
from flambeau._ops.cuda import products
from flambeau._ops.cuda.products import FLOAT32, LEFT, RIGHT, as_array, multiply
from flambeau._ops.cuda.repeating import kept, repeated, told
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.launching.memory_formats import are_in_rows
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import address, preserved_strides
from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Wishes
from flambeau._runtime.cuda.libraries.cudnn_attention import (
    Attention,
    Backward,
    Forward,
    Slopes,
    backward,
    forward,
)
from flambeau._runtime.cuda.libraries.finding import MissingLibrary
from flambeau._runtime.cuda.libraries.foreign import LibraryError
from flambeau._runtime.cuda.libraries.matrices import Array, contiguous
from flambeau._runtime.cuda.libraries.workspaces import capturing
from flambeau._runtime.cuda.memory import Current
from flambeau._tensor import device_array
from flambeau._tensor.device_array import laid_out
from flambeau._tensor.tensor import wrap


class Unfit(Exception):
    """A product that the library does not compute."""


def times(left: Any, right: Any, **how: Any) -> Any:
    """A product, as a tensor. Raises Unfit where there is none."""
    found = multiply(left._data, right._data, **how)
    if found is NotImplemented:
        raise Unfit
    return wrap(found)


def blocked(queries: int, keys: int) -> Any:
    """[L, S] on the current device: whether the key comes behind the query. Kept, but for what is
    computed when a graph is replayed."""
    if capturing():
        return _blocked(queries, keys)
    return wrap(kept(lambda: _kept(queries, keys, Current.device)._data))


@lru_cache(16)
def _kept(queries: int, keys: int, device: int) -> Any:
    return _blocked(queries, keys)


def _blocked(queries: int, keys: int) -> Any:
    place = device_array.CUDA[Current.device]
    return ops.triu(ops.ones((queries, keys), dtype=dt.bool_, device=place), 1)


def scores_of(query: Any, key: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    """`query @ key.T * scale` with the masks: [B, H, L, S], at least in single precision."""
    scores = times(query, key, alpha=scale, turned=RIGHT, widened=True)
    if is_causal:
        later = blocked(query._data.shape[2], key._data.shape[2])
        scores = ops.masked_fill(scores, later, -math.inf)
    if mask is None:
        return scores
    if mask._data.dtype.kind == "b":
        return ops.masked_fill(scores, ops.logical_not(mask), -math.inf)
    return ops.add(scores, mask.to(scores.dtype))


def weights_again(query: Any, key: Any, mask: Any, is_causal: bool, scale: float,
                  log_sums: Any) -> Any:  # fmt: skip
    """The weights of the keys, from the logarithms of the sums. Where nothing is added to scores,
    blocked keys are left out at once."""
    sums = ops.unsqueeze(log_sums, -1)
    by_bool = mask is not None and mask._data.dtype.kind == "b"
    if is_causal == by_bool or (mask is not None and not by_bool):
        scores = scores_of(query, key, mask, is_causal, scale)
        return ops._attention_weights(scores, sums)
    if is_causal:
        hidden = blocked(query._data.shape[2], key._data.shape[2])
    else:
        hidden = ops.logical_not(mask)
    return ops._attention_open_weights(scores_of(query, key, None, False, scale), sums, hidden)


# ---- through cuDNN

WIDEST = 128
"""The head size up to which cuDNN's engines keep scores on the chip."""
PLANS: dict[Any, Any] = {}
"""All that a plan depends on -> the plan; None where there is no engine."""
REFUSED: dict[str, int] = {}
"""What the library has said instead of computing gradients -> how often."""
NAMES = {"e": "float16", "E": "bfloat16"}


def fits_engines(query: Any, value: Any) -> bool:
    """Whether cuDNN may be asked for attention of these types and sizes."""
    width, letter = query.shape[3], query.dtype.char
    fits = letter in NAMES and width % 8 == 0 and width <= WIDEST and value.shape[3] == width
    return fits and Cudnn.enabled and "cudnn" in Permitted.names


def at_once(query: Any, key: Any, value: Any, is_causal: bool, scale: float,
            strides: tuple[int, ...] | None) -> Any:  # fmt: skip
    """The weighted values and the logarithms of sums by one kernel; None where there is none."""
    if not fits_engines(query, value):
        return None
    letter = query.dtype.char
    places = [address(array) for array in (query, key, value)]
    low = (places[0] | places[1] | places[2]) & 15
    key_of_plan = (letter, query.shape, query.strides, key.shape, key.strides, value.strides,
                   strides, is_causal, low, Current.device)  # fmt: skip
    plan = PLANS.get(key_of_plan, PLANS)
    out = contiguous(query.shape) if strides is None else Array(query.shape, strides)
    if plan is PLANS:
        arrays = [as_array(array) for array in (query, key, value)]
        asked = Attention(NAMES[letter], arrays[0], arrays[1], arrays[2], out, is_causal)
        plan = PLANS[key_of_plan] = None if low else _planned(asked)
    if plan is None:
        return None
    result = device_array.empty(out.shape, out.strides, query.dtype, Current.device)
    sums = device_array.empty(query.shape[:3], contiguous(query.shape[:3]).strides, FLOAT32,
                              Current.device)  # fmt: skip
    told(plan.run, (query, key, value, result, sums), scale)
    return result, sums


def _planned(asked: Attention) -> Forward | None:
    try:
        return forward(asked, Wishes())
    except (Unsupported, MissingLibrary):
        return None


def slopes_at_once(grad: Any, query: Any, key: Any, value: Any, is_causal: bool, scale: float,
                   out: Any, log_sums: Any) -> Any:  # fmt: skip
    """The gradients of query, key and value by cuDNN's engine; None where there is none, or where
    the order of sums has to be the same in every run."""
    if not fits_engines(query, value) or Determinism.enabled:
        return None
    if grad.strides[3] != grad.itemsize or address(grad) & 15:
        grad = device_array.contiguous(grad)
    given = query, key, value, out, log_sums, grad
    places = [address(array) for array in given]
    low = (places[0] | places[1] | places[2] | places[3] | places[5]) & 15
    together = _are_slices(places[:3], query, key, value)
    key_of_plan = ("slopes", query.dtype.char, query.shape, key.shape, is_causal, low, together,
                   log_sums.flags.c_contiguous, Current.device,
                   *[array.strides for array in given])  # fmt: skip
    plan = PLANS.get(key_of_plan, PLANS)
    results = _like_slices(query, places[1] - places[0]) if together else [
        device_array.like(array, Current.device) if _is_dense(array)
        else device_array.empty(array.shape, contiguous(array.shape).strides, array.dtype,
                                Current.device)
        for array in (query, key, value)
    ]  # fmt: skip
    if plan is PLANS:
        arrays = [as_array(array) for array in (query, key, value, out, grad, *results)]
        q, k, v, o, g, *slopes = arrays
        asked = Attention(NAMES[query.dtype.char], q, k, v, o, is_causal)
        in_rows = all(array.strides[-1] == 1 for array in arrays)
        settled = not low and in_rows and log_sums.flags.c_contiguous
        plan = _slopes_planned(Slopes(asked, g, *slopes)) if settled else None
        PLANS[key_of_plan] = plan
    if plan is None:
        return None
    along = device_array.empty(log_sums.shape, contiguous(log_sums.shape).strides, FLOAT32,
                               Current.device)  # fmt: skip
    sums = device_array.empty(query.shape, contiguous(query.shape).strides, FLOAT32, Current.device)
    try:
        told(lambda *at: plan.run(*at[:8], at[8:], scale), (*given, along, sums, *results))
    except LibraryError as error:
        PLANS[key_of_plan] = None
        _refused(error)
        return None
    return tuple(results)


def _slopes_planned(asked: Slopes) -> Backward | None:
    try:
        return backward(asked, Wishes())
    except (Unsupported, MissingLibrary, LibraryError) as error:
        _refused(error)
        return None


def _refused(error: Exception) -> None:
    REFUSED[str(error)] = REFUSED.get(str(error), 0) + 1


def _is_dense(data: Any) -> bool:
    return is_dense(data.shape, as_array(data).strides)


def _are_slices(places: list[int], query: Any, key: Any, value: Any) -> bool:
    """Whether queries, keys and values are three slices of one dense array, at even distances:
    what a projection to all of them leaves."""
    step = places[1] - places[0]
    if not (step > 0 and step == places[2] - places[1] and query.shape == key.shape
            and query.strides == key.strides == value.strides):  # fmt: skip
        return False
    return is_dense((3, *query.shape), (step // query.itemsize, *as_array(query).strides))


def _like_slices(query: Any, step: int) -> list[Any]:
    """Three slices of a new array that lie as those of another do, `step` bytes apart."""
    strides = (step // query.itemsize, *as_array(query).strides)
    joint = device_array.empty((3, *query.shape), strides, query.dtype, Current.device)
    return [joint[0], joint[1], joint[2]]


# ---- rows


def packed(data: Any) -> Any:
    """[B, H, L, E] whose batch is one for the library: the array itself, or a row-major copy, which
    is one launch where several products for each of its matrices would be more."""
    batch, heads = data.shape[:2]
    even = data.strides[0] == heads * data.strides[1]
    return data if even or min(batch, heads) <= FEW else device_array.contiguous(data)


FEW = 2
"""Launches of a product that are no more than one and a copy."""


def settings() -> tuple[Any, ...]:
    """What attention depends on besides its operands."""
    return Cudnn.enabled, "cudnn" in Permitted.names, *products.settings()


def _usable(query: Any, *others: Any) -> bool:
    return (
        query.dtype.char in "fdeE"
        and query.size
        and all(isinstance(other, device_array.DeviceArray) and other.size for other in others)
    )


@on_gpu("_attention")
@partial(repeated, state=settings)
def attention(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool,
              scale: float) -> Any:  # fmt: skip
    """[B, H, L, E] by [B, H, S, E]: the weighted values, and the log of each row's sum."""
    if not _usable(query, key, value):
        return NotImplemented
    mask = None if attn_mask is None else wrap(attn_mask)
    shape = *query.shape[:3], value.shape[3]
    strides = None
    if shape == query.shape and are_in_rows(query, key, value, attn_mask):
        strides = preserved_strides(query)
    if mask is None:
        found = at_once(query, key, value, is_causal, scale, strides)
        if found is not None:
            return found
    query, key, value = packed(query), packed(key), packed(value)
    try:
        scores = scores_of(wrap(query), wrap(key), mask, is_causal, scale)
        log_sums = ops.logsumexp(scores, [-1])
        if mask is None:
            weights = ops.softmax(scores, -1)
        else:
            weights = ops._attention_weights(scores, ops.unsqueeze(log_sums, -1))
        weights = weights.to(wrap(query).dtype)
        result = times(weights, wrap(value))._data
        return result if strides is None else laid_out(result, strides), log_sums._data
    except Unfit:
        return NotImplemented


@on_gpu("_attention_backward")
@partial(repeated, state=settings)
def attention_backward(grad: Any, query: Any, key: Any, value: Any, attn_mask: Any,
                       is_causal: bool, scale: float, out: Any,
                       log_sums: Any) -> Any:  # fmt: skip
    """Gradients of query, key and value from weights computed again."""
    if not _usable(query, key, value, grad):
        return NotImplemented
    if attn_mask is None:
        found = slopes_at_once(grad, query, key, value, is_causal, scale, out, log_sums)
        if found is not None:
            return found
    mask = None if attn_mask is None else wrap(attn_mask)
    q, k, v, g = (wrap(packed(array)) for array in (query, key, value, grad))
    try:
        weights = weights_again(q, k, mask, is_causal, scale, wrap(log_sums))
        wide = weights.dtype
        along = ops.sum(ops.mul(g.to(wide), wrap(out).to(wide)), [-1], True)
        products = times(g, v, turned=RIGHT, widened=True)
        slope = ops._attention_slope(weights, products, along).to(q.dtype)
        of_value = times(weights.to(q.dtype), g, turned=LEFT)
        return (times(slope, k, alpha=scale)._data, times(slope, q, alpha=scale, turned=LEFT)._data,
                of_value._data)  # fmt: skip
    except Unfit:
        return NotImplemented
