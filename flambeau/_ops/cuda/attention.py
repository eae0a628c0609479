"""Attention on GPUs: cuDNN's engines for half types without a mask, which keep the scores on the
chip; else products through cuBLASLt, with the rows of the scores between them.

Scores are float32 (float64 for that type), whatever the type of queries and keys is. The backward
pass computes them again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.attention_backends import Permitted
from flambeau._core.cudnn_settings import Cudnn
from flambeau._ops.cuda.products import FLOAT32, LEFT, RIGHT, as_array, multiply
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.launching.memory_formats import are_in_rows
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import address, preserved_strides
from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Wishes
from flambeau._runtime.cuda.libraries.cudnn_attention import Attention, Forward, forward
from flambeau._runtime.cuda.libraries.finding import MissingLibrary
from flambeau._runtime.cuda.libraries.matrices import Array, contiguous
from flambeau._runtime.cuda.libraries.workspaces import capturing
from flambeau._runtime.cuda.memory import Current
from flambeau._tensor import device_array
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
    return _blocked(queries, keys) if capturing() else _kept(queries, keys, Current.device)


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


def at_once(query: Any, key: Any, value: Any, is_causal: bool, scale: float,
            strides: tuple[int, ...] | None) -> Any:  # fmt: skip
    """The weighted values and the logarithms of sums by one kernel; None where there is none."""
    width, letter = query.shape[3], query.dtype.char
    fits = letter in "eE" and width % 8 == 0 and width <= WIDEST and value.shape[3] == width
    if not fits or not Cudnn.enabled or "cudnn" not in Permitted.names:
        return None
    places = [address(array) for array in (query, key, value)]
    low = (places[0] | places[1] | places[2]) & 15
    key_of_plan = (letter, query.shape, query.strides, key.shape, key.strides, value.strides,
                   strides, is_causal, low, Current.device)  # fmt: skip
    plan = PLANS.get(key_of_plan, PLANS)
    out = contiguous(query.shape) if strides is None else Array(query.shape, strides)
    if plan is PLANS:
        arrays = [as_array(array) for array in (query, key, value)]
        asked = Attention("float16" if letter == "e" else "bfloat16", arrays[0], arrays[1],
                          arrays[2], out, is_causal)  # fmt: skip
        plan = PLANS[key_of_plan] = None if low else _planned(asked)
    if plan is None:
        return None
    result = device_array.empty(out.shape, out.strides, query.dtype, Current.device)
    sums = device_array.empty(query.shape[:3], contiguous(query.shape[:3]).strides, FLOAT32,
                              Current.device)  # fmt: skip
    plan.run(places[0], places[1], places[2], address(result), address(sums), scale)
    return result, sums


def _planned(asked: Attention) -> Forward | None:
    try:
        return forward(asked, Wishes())
    except (Unsupported, MissingLibrary):
        return None


# ---- rows


def _usable(query: Any, *others: Any) -> bool:
    return (
        query.dtype.char in "fdeE"
        and query.size
        and all(isinstance(other, device_array.DeviceArray) and other.size for other in others)
    )


@on_gpu("_attention")
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
    try:
        scores = scores_of(wrap(query), wrap(key), mask, is_causal, scale)
        log_sums = ops.logsumexp(scores, [-1])
        if mask is None:
            weights = ops.softmax(scores, -1)
        else:
            weights = ops._attention_weights(scores, ops.unsqueeze(log_sums, -1))
        weights = weights.to(wrap(query).dtype)
        return times(weights, wrap(value), strides=strides)._data, log_sums._data
    except Unfit:
        return NotImplemented


@on_gpu("_attention_backward")
def attention_backward(grad: Any, query: Any, key: Any, value: Any, attn_mask: Any,
                       is_causal: bool, scale: float, out: Any,
                       log_sums: Any) -> Any:  # fmt: skip
    """Gradients of query, key and value from weights computed again."""
    if not _usable(query, key, value, grad):
        return NotImplemented
    mask = None if attn_mask is None else wrap(attn_mask)
    q, k, v, g = wrap(query), wrap(key), wrap(value), wrap(grad)
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
