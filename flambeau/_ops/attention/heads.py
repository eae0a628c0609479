"""`multi_head_attention_forward`: projections, masks and heads around attention.

One text for Python and for scripts (`jit/modules/row_programs.py`), which call it by its parts.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.autocast import settings
from flambeau._core.programs import EAGER
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite

# ---- checks, which torch makes by assertions


def is_batched(query: Any, key: Any, value: Any, key_padding_mask: Any | None,
               attn_mask: Any | None, num_heads: int) -> bool:  # fmt: skip
    """Whether the inputs are batched; an error where the others do not go with the query."""
    rank = query.dim()
    if rank != 2 and rank != 3:
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    start = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`, expected"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"{start} `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D "
            "tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(
            f"{start} `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        _check_mask_rank(attn_mask, start, rank, [num_heads, query.shape[0], key.shape[0]])
    return rank == 3


def _check_mask_rank(mask: Any, start: str, rank: int, wanted: list[int]) -> None:
    if mask.dim() != 2 and mask.dim() != 3:
        raise AssertionError(
            f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead"
        )
    if rank == 2 and mask.dim() == 3 and list(mask.shape) != wanted:
        raise AssertionError(
            f"Expected `attn_mask` shape to be {(wanted[0], wanted[1], wanted[2])} but got "
            f"{mask.shape}"
        )


def _check_sizes(query: Any, key: Any, value: Any, size: int, heads: int, separate: bool) -> None:
    found = query.shape[2]
    if found != size:
        raise AssertionError(f"was expecting embedding dimension of {size}, but got {found}")
    if found % heads != 0:
        raise AssertionError(f"embed_dim {found} not divisible by num_heads {heads}")
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


# ---- masks


def _added_mask(mask: Any | None, name: str, element: int, other: Any | None,
                other_name: str) -> Any | None:  # fmt: skip
    """A mask as numbers to add: True becomes -inf."""
    if mask is None:
        return None
    if mask.dtype != dt.bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype != other.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=4,
        )
    if mask.dtype != dt.bool_:
        return mask
    return ops.zeros_like(mask, dtype=element).masked_fill_(mask, float("-inf"))


def _mask_of_pairs(mask: Any, batch: int, heads: int, rows: int, columns: int) -> Any:
    """A mask as [1 or B * H, L, S]."""
    if mask.dim() == 2:
        if mask.shape[0] != rows or mask.shape[1] != columns:
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {mask.shape}, but should be {(rows, columns)}."
            )
        return mask.unsqueeze(0)
    if mask.shape[0] != batch * heads or mask.shape[1] != rows or mask.shape[2] != columns:
        raise RuntimeError(
            f"The shape of the 3D attn_mask is {mask.shape}, but should be "
            f"{(batch * heads, rows, columns)}."
        )
    return mask


def _one_column_more(mask: Any | None) -> Any | None:
    """One more key that every query may see."""
    return None if mask is None else ops.nn.functional.pad(mask, [0, 1])


def _with_padding(mask: Any | None, padding: Any | None, batch: int, heads: int,
                  columns: int) -> Any | None:  # fmt: skip
    """Attention mask and key padding as one mask, or None."""
    if padding is None:
        return mask
    if padding.shape[0] != batch:
        raise AssertionError(
            f"Expected key_padded_mask.shape[0] to be {batch}, but got {padding.shape[0]}"
        )
    if padding.shape[1] != columns:
        raise AssertionError(
            f"Expected key_padded_mask.shape[1] to be {columns}, but got {padding.shape[1]}"
        )
    spread = padding.view(batch, 1, 1, columns).expand(-1, heads, -1, -1)
    spread = spread.reshape(batch * heads, 1, columns)
    return spread if mask is None else mask + spread


# ---- projections


def _projected(query: Any, key: Any, value: Any, weight: Any | None,
               bias: Any | None) -> list[Any]:  # fmt: skip
    """Queries, keys and values from one weight [3 E, E]: as few products as the inputs allow."""
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    size = query.shape[-1]
    if query is key and key is value:
        return _thirds(ops.nn.functional.linear(query, weight, bias), size)
    if key is value:
        of_query, of_both = weight.split([size, 2 * size])
        if bias is None:
            both = ops.nn.functional.linear(key, of_both).split(size, -1)
            return [ops.nn.functional.linear(query, of_query), both[0], both[1]]
        bias_of_query, bias_of_both = bias.split([size, 2 * size])
        both = ops.nn.functional.linear(key, of_both, bias_of_both).split(size, -1)
        return [ops.nn.functional.linear(query, of_query, bias_of_query), both[0], both[1]]
    w_q, w_k, w_v = weight.split([size, size, size])
    if bias is None:
        return [ops.nn.functional.linear(query, w_q), ops.nn.functional.linear(key, w_k),
                ops.nn.functional.linear(value, w_v)]  # fmt: skip
    b_q, b_k, b_v = bias.split([size, size, size])
    return [ops.nn.functional.linear(query, w_q, b_q), ops.nn.functional.linear(key, w_k, b_k),
            ops.nn.functional.linear(value, w_v, b_v)]  # fmt: skip


def _thirds(projected: Any, size: int) -> list[Any]:
    """Queries, keys and values that lie side by side. In a region of autocast each is a slice of
    its own, as in torch: to join gradients of another region's type would be an error."""
    if EAGER and modes.watch.active and settings.enabled["cpu"]:
        return [projected.narrow(-1, start, size) for start in range(0, 3 * size, size)]
    parts = projected.split(size, -1)
    return [parts[0], parts[1], parts[2]]


def _by_own_weight(input: Any, word: str, weight: Any | None, bias: Any | None, part: int,
                   size: int) -> Any:  # fmt: skip
    if weight is None:
        raise AssertionError(f"use_separate_proj_weight is True but {word[0]}_proj_weight is None")
    if weight.shape[0] != size or weight.shape[1] != input.shape[-1]:
        raise AssertionError(
            f"expecting {word} weights shape of {(size, input.shape[-1])}, but got {weight.shape}"
        )
    if bias is None:
        return ops.nn.functional.linear(input, weight)
    return ops.nn.functional.linear(input, weight, bias.chunk(3)[part])


def _as_heads(tensor: Any, count: int, size: int) -> Any:
    """[L, B, H * D] as [B * H, L, D]."""
    return tensor.contiguous().view(tensor.shape[0], count, size).transpose(0, 1)


def _given_heads(tensor: Any, name: str, count: int, size: int) -> Any:
    """The same, of which the user has taken care."""
    if tensor.shape[0] != count:
        raise AssertionError(
            f"expecting static_{name}.size(0) of {count}, but got {tensor.shape[0]}"
        )
    if tensor.shape[2] != size:
        raise AssertionError(
            f"expecting static_{name}.size(2) of {size}, but got {tensor.shape[2]}"
        )
    return tensor


# ---- attention


def _with_weights(q: Any, k: Any, v: Any, mask: Any | None, dropout: float) -> tuple[Any, Any]:
    """Attention [B * H, L, D], and its weights [B * H, L, S]."""
    scaled = q * math.sqrt(1.0 / q.shape[-1])
    keys = k.transpose(-2, -1)
    scores = ops.bmm(scaled, keys) if mask is None else ops.baddbmm(mask, scaled, keys)
    weights = ops.softmax(scores, -1)
    if dropout > 0.0:
        weights = ops.dropout(weights, dropout, True)
    return ops.bmm(weights, v), weights


def _without_weights(q: Any, k: Any, v: Any, mask: Any | None, dropout: float, heads: int,
                     is_causal: bool) -> Any:  # fmt: skip
    """Attention [B * H, L, D]."""
    batch, rows, columns, size = q.shape[0] // heads, q.shape[1], k.shape[1], q.shape[2]
    if mask is not None:
        if mask.shape[0] == 1:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.view(batch, heads, mask.shape[1], columns)
    q = q.view(batch, heads, rows, size)
    k, v = k.view(batch, heads, columns, size), v.view(batch, heads, columns, size)
    attended = ops.nn.functional.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal)
    return attended.flatten(0, 1)


@composite(
    "multi_head_attention_forward(Tensor query, Tensor key, Tensor value,"
    " int embed_dim_to_check, int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias,"
    " Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p,"
    " Tensor out_proj_weight, Tensor? out_proj_bias, bool training=True,"
    " Tensor? key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None,"
    " bool use_separate_proj_weight=False, Tensor? q_proj_weight=None, Tensor? k_proj_weight=None,"
    " Tensor? v_proj_weight=None, Tensor? static_k=None, Tensor? static_v=None,"
    " bool average_attn_weights=True, bool is_causal=False) -> (Tensor, Tensor?)",
    method=False,
    namespace="nn.functional",
)
def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Any, Any | None]:  # fmt: skip
    """Attention in `num_heads` heads: query [L, B, E], key and value [S, B, E] (or without B).

    Returns the result [L, B, E] and, if `need_weights`, the weights [B, L, S] (averaged over heads)
    or [B, H, L, S].

    >>> import flambeau as torch
    >>> layer, x = torch.nn.MultiheadAttention(8, 2), torch.ones(5, 1, 8)
    >>> projections = layer.in_proj_weight, layer.in_proj_bias
    >>> out = layer.out_proj.weight, layer.out_proj.bias
    >>> attend = torch.nn.functional.multi_head_attention_forward
    >>> result, weights = attend(x, x, x, 8, 2, *projections, None, None, False, 0.0, *out)
    >>> result.shape, weights.shape
    (torch.Size([5, 1, 8]), torch.Size([1, 5, 5]))
    """
    batched = is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    padding = _added_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    is_causal = is_causal and padding is None and not need_weights
    mask = None if is_causal else _added_mask(attn_mask, "attn_mask", query.dtype, None, "")
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    rows, batch, size = query.shape[0], query.shape[1], query.shape[2]
    if use_separate_proj_weight:
        q = _by_own_weight(query, "query", q_proj_weight, in_proj_bias, 0, size)
        k = _by_own_weight(key, "key", k_proj_weight, in_proj_bias, 1, size)
        v = _by_own_weight(value, "value", v_proj_weight, in_proj_bias, 2, size)
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if mask is not None:
        mask = _mask_of_pairs(mask, batch, num_heads, rows, key.shape[0])
    if bias_k is not None and bias_v is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = ops.cat([k, bias_k.repeat(1, batch, 1)])
        v = ops.cat([v, bias_v.repeat(1, batch, 1)])
        mask, padding = _one_column_more(mask), _one_column_more(padding)
    elif bias_k is not None:
        raise AssertionError("bias_k is set but bias_v is None")
    elif bias_v is not None:
        raise AssertionError("bias_v is set but bias_k is None")
    head, count = size // num_heads, batch * num_heads
    q = _as_heads(q, count, head)
    k = _as_heads(k, count, head) if static_k is None else _given_heads(static_k, "k", count, head)
    v = _as_heads(v, count, head) if static_v is None else _given_heads(static_v, "v", count, head)
    if add_zero_attn:
        zeros = ops.new_zeros(k, [count, 1, head])
        k, v = ops.cat([k, zeros], 1), ops.cat([v, zeros], 1)
        mask, padding = _one_column_more(mask), _one_column_more(padding)
    mask = _with_padding(mask, padding, batch, num_heads, k.shape[1])
    dropout = dropout_p if training else 0.0
    weights: Any | None = None
    if need_weights:
        values, of_heads = _with_weights(q, k, v, mask, dropout)
        of_heads = of_heads.view(batch, num_heads, rows, k.shape[1])
        weights = of_heads.mean(1) if average_attn_weights else of_heads
    else:
        values = _without_weights(q, k, v, mask, dropout, num_heads, is_causal)
    values = values.transpose(0, 1).reshape(rows * batch, size)
    result = ops.nn.functional.linear(values, out_proj_weight, out_proj_bias)
    result = result.view(rows, batch, result.shape[1])
    if batched:
        return result, weights
    return result.squeeze(1), None if weights is None else weights.squeeze(0)
