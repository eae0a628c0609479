"""Attention: `scaled_dot_product_attention` and the function behind `nn.MultiheadAttention`.

The usual case (four dims, no dropout) is one kernel that goes over a few heads at a time. It keeps
only the logarithm of each row's sum; gradients compute the weights again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._core import dtype as dt
from flambeau._core.attention_backends import (
    Permitted,
    check_gpu_without_math,
    check_without_math,
)
from flambeau._ops.launching.memory_formats import are_in_rows, in_order_of
from flambeau._ops.launching.precision import narrow, widen
from flambeau._ops.products.blas import matmul
from flambeau._ops.table.binder import explained
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, internal, pointwise
from flambeau._ops.table.pointwise import broadcast_shape, wants_grad
from flambeau._runtime import choice
from flambeau._tensor.tensor import on_device_of, wrap

BLOCK = 1 << 18
"""Weights computed at a time: they stay in the cache."""
# ---- the kernel


def later_keys(queries: int, keys: int) -> np.ndarray:
    """[L, S]: True where the key comes behind the query."""
    return np.arange(keys) > np.arange(queries)[:, None]


def _joined(data: np.ndarray) -> np.ndarray:
    """[B, H, L, E] as [B * H, L, E] in the type to compute in."""
    batch, heads, length, width = data.shape
    return widen(data).reshape(batch * heads, length, width)


class Heads:
    """Queries, keys and values as [B * H, L, E], and the part of the mask of a few heads."""

    def __init__(self, query: np.ndarray, key: np.ndarray, value: np.ndarray,
                 mask: np.ndarray | None, is_causal: bool, scale: float) -> None:  # fmt: skip
        self.batch = query.shape[:2]
        self.query, self.key, self.value = _joined(query), _joined(key), _joined(value)
        self.scale = scale
        self.size = (query.shape[2], key.shape[2])
        self.mask = None if mask is None else np.broadcast_to(mask, (*self.batch, *self.size))
        self.blocked = mask is not None or is_causal or key.shape[2] == 0
        self.causal = later_keys(*self.size) if is_causal else None

    def blocks(self) -> Iterator[slice]:
        """A few heads at a time."""
        step = max(BLOCK // max(self.size[0] * self.size[1], 1), 1)
        for start in range(0, len(self.query), step):
            yield slice(start, start + step)

    def scores(self, heads: slice) -> np.ndarray:
        """`query @ key.T * scale` with the masks added."""
        scores = matmul(self.query[heads] * self.query.dtype.type(self.scale),
                           self.key[heads].swapaxes(1, 2))  # fmt: skip
        if self.causal is not None:
            scores[:, self.causal] = -np.inf
        if self.mask is not None:
            self._add_mask(scores, heads)
        return scores

    def _add_mask(self, scores: np.ndarray, heads: slice) -> None:
        for place, head in enumerate(range(len(self.query))[heads]):
            part = self.mask[divmod(head, self.batch[1])]  # type: ignore[index]
            if part.dtype.kind == "b":
                scores[place][~part] = -np.inf
            else:
                scores[place] += widen(part)


def _gradients(grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool,
               scale: float, result0: Any, result1: Any, wanted: Any) -> Any:  # fmt: skip
    if not wants_grad((grad, query, key, value)):
        return ops._attention_backward(
            grad, query, key, value, attn_mask, is_causal, scale, result0, result1
        )
    weights = ops._safe_softmax(_masked_scores(query, key, attn_mask, is_causal, scale), -1)
    of_weights = grad.matmul(value.transpose(-2, -1))
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * scale
    return (of_scores.matmul(key), of_scores.transpose(-2, -1).matmul(query),
            weights.transpose(-2, -1).matmul(grad))  # fmt: skip


def _parts(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float) -> Any:
    """Attention as products and a softmax: the weighted values, in place of both results."""
    scores = _masked_scores(query, key, attn_mask, is_causal, scale)
    found = ops.matmul(ops._safe_softmax(scores, -1), value)
    return found, found


@internal(
    "_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal,"
    " float scale) -> (Tensor, Tensor)",
    devices="attention",
    autocast="lower",
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    nondifferentiable=("result1",),
    decomposition=_parts,
    backward={("query", "key", "value"): _gradients},
)
def attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, attn_mask: np.ndarray | None,
              is_causal: bool, scale: float) -> Any:  # fmt: skip
    """[B, H, L, E] by [B, H, S, E]: the weighted values, and the log of each row's sum."""
    if choice.compiled("attention", query.size * key.shape[2]):
        from flambeau._ops.attention.launch import attend

        return attend(query, key, value, attn_mask, is_causal, scale)
    heads = Heads(query, key, value, attn_mask, is_causal, scale)
    result = np.empty((len(heads.query), heads.size[0], value.shape[3]), heads.query.dtype)
    log_sums = np.empty((len(heads.query), heads.size[0]), heads.query.dtype)
    for block in heads.blocks():
        weights = heads.scores(block)
        greatest = np.maximum.reduce(weights, 2, initial=-np.inf, keepdims=True)
        if heads.blocked:
            greatest[np.isneginf(greatest)] = 0  # rows without any key: their weights are all 0
        weights -= greatest
        np.exp(weights, out=weights)
        total = np.add.reduce(weights, 2, keepdims=True)
        part = result[block]
        matmul(weights, heads.value[block], out=part)
        part /= np.where(total == 0, 1, total) if heads.blocked else total
        np.add(np.log(total, out=total), greatest, out=log_sums[block][:, :, None])
    shape = (*query.shape[:3], value.shape[3])
    values = narrow(result, query.dtype).reshape(shape)
    if shape == query.shape and are_in_rows(query, key, value, attn_mask):
        values = in_order_of(values, query)
    return values, log_sums.reshape(query.shape[:3])


@internal(
    "_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value,"
    " Tensor? attn_mask, bool is_causal, float scale, Tensor out, Tensor log_sums)"
    " -> (Tensor, Tensor, Tensor)",
)
def attention_backward(grad: np.ndarray, query: np.ndarray, key: np.ndarray, value: np.ndarray,
                       attn_mask: np.ndarray | None, is_causal: bool, scale: float,
                       out: np.ndarray, log_sums: np.ndarray) -> Any:  # fmt: skip
    """Gradients of query, key and value from weights computed again."""
    if choice.compiled("attention", query.size * key.shape[2]):
        from flambeau._ops.attention import launch as template

        return template.attend_backward(
            grad, query, key, value, attn_mask, is_causal, scale, out, log_sums
        )
    heads = Heads(query, key, value, attn_mask, is_causal, scale)
    grads = widen(grad).reshape(len(heads.query), *grad.shape[2:])
    along = np.add.reduce(grads * widen(out).reshape(grads.shape), 2)
    sums = log_sums.reshape(len(heads.query), log_sums.shape[2])
    results = [np.empty_like(a) for a in (heads.query, heads.key, heads.value)]
    for block in heads.blocks():
        weights = heads.scores(block)
        weights -= np.where(np.isneginf(sums[block]), 0, sums[block])[:, :, None]
        np.exp(weights, out=weights)
        matmul(weights.swapaxes(1, 2), grads[block], out=results[2][block])
        slope = matmul(grads[block], heads.value[block].swapaxes(1, 2))
        slope -= along[block][:, :, None]
        slope *= weights
        slope *= slope.dtype.type(scale)
        matmul(slope, heads.key[block], out=results[0][block])
        matmul(slope.swapaxes(1, 2), heads.query[block], out=results[1][block])
    sources = (query, key, value)
    return tuple(
        narrow(r, source.dtype).reshape(source.shape)
        for r, source in zip(results, sources, strict=True)
    )


# ---- between the products, where they are not one kernel with them

BETWEEN: dict[str, Any] = {"dtypes": "float", "method": False, "function": False, "inplace": False}
LOWEST = -3e38
"""Below it lies the logarithm of the sum of a row in which every key is blocked."""


@pointwise("_attention_weights(Tensor scores, Tensor log_sums) -> Tensor", **BETWEEN)
def attention_weights(scores: Any, log_sums: Any) -> Any:
    """The weights of keys: all are 0 where every key is blocked."""
    return E.exp(scores - E.where(log_sums < LOWEST, 0, log_sums))


@pointwise("_attention_open_weights(Tensor scores, Tensor log_sums, Tensor blocked) -> Tensor",
           **BETWEEN)  # fmt: skip
def attention_open_weights(scores: Any, log_sums: Any, blocked: Any) -> Any:
    """The same from scores that hold no mask: blocked keys have a weight of 0."""
    weights = E.exp(scores - E.where(log_sums < LOWEST, 0, log_sums))
    return E.where(blocked, 0, weights)


@pointwise("_attention_slope(Tensor weights, Tensor products, Tensor along) -> Tensor", **BETWEEN)
def attention_slope(weights: Any, products: Any, along: Any) -> Any:
    """The gradient of the scores, from that of the weights and its sum along the row."""
    return weights * (products - along)


# ---- scaled_dot_product_attention


def _check_attention(query: Any, key: Any, value: Any, attn_mask: Any) -> None:
    ranks = [t._data.ndim for t in (query, key, value)]
    element = query._data.dtype
    if key._data.dtype != element or value._data.dtype != element:
        names = [t.dtype.c_name for t in (query, key, value)]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{names[0]} key.dtype: {names[1]} and value.dtype: {names[2]} instead."
        )
    kind = query._data.__class__
    if key._data.__class__ is not kind or value._data.__class__ is not kind:
        _check_places(query, key, value)
    if min(ranks) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{ranks[0]} key.dim: {ranks[1]} and value.dim: {ranks[2]} instead."
        )
    if attn_mask is None or attn_mask.dtype in (dt.bool_, dt.float32, query.dtype):
        return
    raise RuntimeError(
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
        f"attn_mask.dtype: {attn_mask.dtype.c_name} and  query.dtype: "
        f"{query.dtype.c_name} instead."
    )


def _check_places(query: Any, key: Any, value: Any) -> None:
    if not query.device == key.device == value.device:
        raise RuntimeError(
            f"Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device} key.device: {key.device} and value.device: {value.device} instead."
        )


def _repeated_heads(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """Grouped queries: each head of keys and values serves several heads of queries."""
    heads = [t.shape[-3] for t in (query, key, value)]
    if heads[0] == heads[1] == heads[2]:
        return key, value
    if heads[0] % heads[1] or heads[0] % heads[2]:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    return (key.repeat_interleave(heads[0] // heads[1], -3),
            value.repeat_interleave(heads[0] // heads[2], -3))  # fmt: skip


def _fits_kernel(query: Any, key: Any, value: Any, attn_mask: Any) -> bool:
    """Four dims of matching sizes, and a mask without gradient."""
    q, k, v = query._data, key._data, value._data
    if not q.ndim == k.ndim == v.ndim == 4 or q.dtype.kind not in "fV":
        return False
    if attn_mask is not None and wants_grad((attn_mask,)):
        return False
    return q.shape[:2] == k.shape[:2] == v.shape[:2] and (
        q.shape[3] == k.shape[3] == v.shape[3] and k.shape[2] == v.shape[2] and q.size > 0
    )


def _is_flash(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float) -> bool:
    """Whether torch has a kernel for these operands; it takes a mask that is causal as well."""
    if dropout_p or not _fits_kernel(query, key, value, attn_mask):
        return False
    mask = None if attn_mask is None else attn_mask._data
    if mask is not None and mask.ndim not in (2, 4):
        return False
    return are_in_rows(query._data, key._data, value._data, mask)


def _blocked(query: Any, key: Any) -> Any:
    """True where the key comes behind the query; of the queries' class, if they have one."""
    sizes = query._data.shape[-2], key._data.shape[-2]
    if hasattr(type(query), "__torch_dispatch__"):
        return ops.new_ones(query, sizes, dtype=dt.bool_).triu(1)
    return on_device_of(wrap(later_keys(*sizes)), query)


def _masked_scores(query: Any, key: Any, attn_mask: Any, is_causal: bool, scale: float) -> Any:
    root = math.sqrt(scale) if scale >= 0 else None
    if root is None:
        scores = (query * scale).matmul(key.transpose(-2, -1))
    else:
        scores = (query * root).matmul((key * root).transpose(-2, -1))
    if is_causal:
        blocked = _blocked(query, key)
        scores = ops.masked_fill(scores, blocked, float("-inf"))
    if attn_mask is None:
        return scores
    if attn_mask.dtype is dt.bool_:
        shape = broadcast_shape([scores._data.shape, attn_mask._data.shape])
        return ops.masked_fill(scores.expand(shape), ~attn_mask, float("-inf"))
    return scores + attn_mask.to(scores.dtype)


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value,"
    " Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *,"
    " float? scale=None, bool enable_gqa=False) -> Tensor",
    builtin=True,
    devices="attention",
    autocast="lower",
    method=False,
    namespace="nn.functional",
)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """`softmax(query @ key.T * scale + mask) @ value`: [*, L, E], [*, S, E], [*, S, V].

    `scale` is `1 / sqrt(E)` unless given. Masks: True takes part, or numbers that are added.

    >>> import flambeau as torch
    >>> q = torch.ones(2, 4, 5, 8)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).shape
    torch.Size([2, 4, 5, 8])
    """
    try:
        _check_attention(query, key, value, attn_mask)
    except AttributeError as error:
        call = query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
        raise explained(scaled_dot_product_attention, call, error) from None
    if not Permitted.math and query.is_cuda:
        check_gpu_without_math(query.dtype.name)
    elif not Permitted.math:
        check_without_math(query._data.ndim == 4 and dropout_p == 0)
    given = key, value
    if enable_gqa:
        key, value = _repeated_heads(query, key, value)
    masked_twice = is_causal and attn_mask is not None
    if masked_twice and not (
        are_in_rows(*[tensor._data for tensor in given])
        and _is_flash(query, key, value, attn_mask, dropout_p)
    ):
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set "
                           "when is_causal=True")  # fmt: skip
    if scale is None:
        width = query._data.shape[-1]
        scale = 1 / math.sqrt(width) if width else 1.0
    if dropout_p == 0 and _fits_kernel(query, key, value, attn_mask):
        if attn_mask is not None:
            full = (*query.shape[:3], key.shape[2])
            broadcast_shape([full, attn_mask._data.shape])
        return ops._attention(query, key, value, attn_mask, is_causal, scale)[0]
    element = query.dtype
    if element in dt.HALVES:
        query, key, value = query.float(), key.float(), value.float()
    scores = _masked_scores(query, key, attn_mask, is_causal, scale)
    weights = ops._safe_softmax(scores, -1)
    if dropout_p != 0:
        weights = ops.dropout(weights, dropout_p, True)
    return weights.matmul(value).to(element)
