"""`multi_head_attention_forward`: projections, masks and heads around attention."""

from __future__ import annotations

import math
import warnings
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.autocast import settings
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite

# ---- checks


def _check(condition: bool, text: str) -> None:
    """Torch refuses wrong arguments of this function with assertions."""
    if not condition:
        raise AssertionError(text)


def _check_ranks(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> bool:
    """Whether the inputs are batched; an error where the others do not go with the query."""
    if query.dim() not in (2, 3):
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received "
                             f"{query.dim()}-D query tensor")  # fmt: skip
    rank = query.dim()
    word = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    start = f"For {word} `query`, expected"
    _check(key.dim() == rank and value.dim() == rank,
           f"{start} `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D "
           "tensors respectively")  # fmt: skip
    if padding is not None:
        _check(padding.dim() == rank - 1, f"{start} `key_padding_mask` to be `None` or "
               f"{rank - 1}-D but found {padding.dim()}-D tensor instead")  # fmt: skip
    if mask is not None:
        _check(mask.dim() in (2, 3), f"{start} `attn_mask` to be `None`, 2-D or 3-D but found "
               f"{mask.dim()}-D tensor instead")  # fmt: skip
        if rank == 2 and mask.dim() == 3:
            wanted = (heads, query.shape[0], key.shape[0])
            _check(tuple(mask.shape) == wanted, f"Expected `attn_mask` shape to be {wanted} but "
                   f"got {mask.shape}")  # fmt: skip
    return rank == 3


def _added_mask(mask: Any, name: str, other: Any, other_name: str, element: Any,
                check_other: bool = True) -> Any:  # fmt: skip
    """A mask as numbers to add: True becomes -inf."""
    if mask is None:
        return None
    _check(mask.dtype is dt.bool_ or mask.is_floating_point(),
           f"only bool and floating types of {name} are supported")  # fmt: skip
    if check_other and other is not None and mask.dtype is not other.dtype:
        warnings.warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same "
                      "type for both instead.", stacklevel=4)  # fmt: skip
    if mask.dtype is not dt.bool_:
        return mask
    zeros = ops.zeros_like(mask, dtype=element)
    return zeros.masked_fill_(mask, float("-inf"))


def _check_mask_shape(mask: Any, batch: int, heads: int, rows: int, columns: int) -> Any:
    """A mask as [1 or B * H, L, S]."""
    wanted = (rows, columns) if mask.dim() == 2 else (batch * heads, rows, columns)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should "
                           f"be {wanted}.")  # fmt: skip
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


# ---- projections


def _packed_projection(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> list[Any]:
    """Queries, keys and values from one weight [3 E, E]: as few products as the inputs allow."""
    linear = ops.nn.functional.linear
    size = query.shape[-1]
    if key is value and query is key:
        return _thirds(linear(query, weight, bias), size)
    sizes = [size, 2 * size] if key is value else [size] * 3
    inputs = [query, key] if key is value else [query, key, value]
    weights = weight.split(sizes)
    biases = [None] * len(sizes) if bias is None else bias.split(sizes)
    results = [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]
    if key is value:
        return [results[0], *results[1].split(size, -1)]
    return results


def _thirds(projected: Any, size: int) -> list[Any]:
    """Queries, keys and values that lie side by side. In a region of autocast each is a slice of
    its own, as in torch: to join gradients of another region's type would be an error."""
    if not (modes.watch.active and settings.enabled["cpu"]):
        return list(projected.split(size, -1))
    return [projected.narrow(-1, start, size) for start in range(0, 3 * size, size)]


def _separate_projection(inputs: list[Any], weights: list[Any], bias: Any) -> list[Any]:
    size = inputs[0].shape[-1]
    for word, x, weight in zip(("query", "key", "value"), inputs, weights, strict=True):
        _check(weight is not None,
               f"use_separate_proj_weight is True but {word[0]}_proj_weight is None")  # fmt: skip
        wanted = (size, x.shape[-1])
        _check(weight.shape == wanted,
               f"expecting {word} weights shape of {wanted}, but got {weight.shape}")  # fmt: skip
    biases = [None] * 3 if bias is None else bias.chunk(3)
    linear = ops.nn.functional.linear
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _widened_masks(mask: Any, padding: Any) -> tuple[Any, Any]:
    """One more key that every query may see."""
    pad = ops.nn.functional.pad
    return (None if mask is None else pad(mask, (0, 1)),
            None if padding is None else pad(padding, (0, 1)))  # fmt: skip


def _with_bias(key: Any, value: Any, bias_k: Any, bias_v: Any) -> tuple[Any, Any]:
    batch = key.shape[1]
    return (ops.cat([key, bias_k.repeat(1, batch, 1)]),
            ops.cat([value, bias_v.repeat(1, batch, 1)]))  # fmt: skip


def _heads(tensor: Any, heads: int, size: int) -> Any:
    """[L, B, H * D] as [B * H, L, D]."""
    rows, batch = tensor.shape[:2]
    return tensor.contiguous().view(rows, batch * heads, size).transpose(0, 1)


def _merged_mask(mask: Any, padding: Any, batch: int, heads: int) -> Any:
    """Attention mask and key padding as one mask, or None."""
    if padding is None:
        return mask
    columns = padding.shape[1]
    spread = padding.view(batch, 1, 1, columns).expand(-1, heads, -1, -1)
    spread = spread.reshape(batch * heads, 1, columns)
    return spread if mask is None else mask + spread


# ---- the function


@composite(
    "multi_head_attention_forward(Tensor query, Tensor key, Tensor value,"
    " int embed_dim_to_check, int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias,"
    " Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p,"
    " Tensor out_proj_weight, Tensor? out_proj_bias) -> (Tensor, Tensor)",
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
) -> tuple[Any, Any]:  # fmt: skip
    """Attention in `num_heads` heads: query [L, B, E], key and value [S, B, E] (or without B).

    Returns the result [L, B, E] and, if `need_weights`, the weights [B, L, S] (averaged over heads)
    or [B, H, L, S].
    """
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    rows, batch, size = query.shape
    padding, mask, is_causal = _masks(query, key, key_padding_mask, attn_mask, is_causal,
                                      need_weights)  # fmt: skip
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        projections = [q_proj_weight, k_proj_weight, v_proj_weight]
        q, k, v = _separate_projection([query, key, value], projections, in_proj_bias)
    else:
        _check(in_proj_weight is not None,
               "use_separate_proj_weight is False but in_proj_weight is None")  # fmt: skip
        q, k, v = _packed_projection(query, key, value, in_proj_weight, in_proj_bias)
    if mask is not None:
        mask = _check_mask_shape(mask, batch, num_heads, rows, key.shape[0])
    if bias_k is not None and bias_v is not None:
        _check(static_k is None, "bias cannot be added to static key.")
        _check(static_v is None, "bias cannot be added to static value.")
        k, v = _with_bias(k, v, bias_k, bias_v)
        mask, padding = _widened_masks(mask, padding)
    else:
        _check(bias_k is None, "bias_k is set but bias_v is None")
        _check(bias_v is None, "bias_v is set but bias_k is None")
    head = size // num_heads
    q = _heads(q, num_heads, head)
    k = _heads(k, num_heads, head) if static_k is None else static_k
    v = _heads(v, num_heads, head) if static_v is None else static_v
    if add_zero_attn:
        zeros = ops.new_zeros(k, (batch * num_heads, 1, head))
        k, v = ops.cat([k, zeros], 1), ops.cat([v, zeros], 1)
        mask, padding = _widened_masks(mask, padding)
    if padding is not None:
        _check_padding(padding, batch, k.shape[1])
    mask = _merged_mask(mask, padding, batch, num_heads)
    dropout = dropout_p if training else 0.0
    sizes = (rows, batch, num_heads, size)
    weights: Any = None
    if need_weights:
        result, weights = _explicit(q, k, v, mask, dropout, sizes, average_attn_weights)
    else:
        result = _fused(q, k, v, mask, dropout, sizes, is_causal)
    result = ops.nn.functional.linear(result, out_proj_weight, out_proj_bias)
    result = result.view(rows, batch, result.shape[1])
    if batched:
        return result, weights
    return result.squeeze(1), None if weights is None else weights.squeeze(0)


def _masks(query: Any, key: Any, padding: Any, mask: Any, is_causal: bool,
           need_weights: bool) -> tuple[Any, Any, bool]:  # fmt: skip
    """Both masks as numbers to add, and whether the causal hint replaces the mask."""
    padding = _added_mask(padding, "key_padding_mask", mask, "attn_mask", query.dtype)
    if is_causal and mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the "
                           "Transformer module method `generate_square_subsequent_mask` to create "
                           "this mask.")  # fmt: skip
    if is_causal and padding is None and not need_weights:
        return padding, None, True
    mask = _added_mask(mask, "attn_mask", None, "", query.dtype, check_other=False)
    return padding, mask, False


def _check_sizes(query: Any, key: Any, value: Any, size: int, heads: int, separate: bool) -> None:
    found = query.shape[2]
    _check(found == size, f"was expecting embedding dimension of {size}, but got {found}")
    _check(found % heads == 0, f"embed_dim {found} not divisible by num_heads {heads}")
    if separate:
        _check(key.shape[:2] == value.shape[:2], "key's sequence and batch dims "
               f"{key.shape[:2]} do not match value's {value.shape[:2]}")  # fmt: skip
    else:
        _check(key.shape == value.shape,
               f"key shape {key.shape} does not match value shape {value.shape}")  # fmt: skip


def _check_padding(padding: Any, batch: int, columns: int) -> None:
    for dim, wanted in enumerate((batch, columns)):
        _check(padding.shape[dim] == wanted, f"Expected key_padded_mask.shape[{dim}] to be "
               f"{wanted}, but got {padding.shape[dim]}")  # fmt: skip


def _explicit(q: Any, k: Any, v: Any, mask: Any, dropout: float, sizes: Any,
              average: bool) -> tuple[Any, Any]:  # fmt: skip
    """Attention with its weights."""
    rows, batch, heads, size = sizes
    scaled = q * math.sqrt(1.0 / q.shape[-1])
    scores = scaled.matmul(k.mT) if mask is None else ops.baddbmm(mask, scaled, k.mT)
    weights = ops.softmax(scores, -1)
    if dropout > 0:
        weights = ops.dropout(weights, dropout, True)
    result = weights.matmul(v).transpose(0, 1).contiguous().view(rows * batch, size)
    weights = weights.view(batch, heads, rows, k.shape[1])
    return result, weights.mean(1) if average else weights


def _fused(q: Any, k: Any, v: Any, mask: Any, dropout: float, sizes: Any, is_causal: bool) -> Any:
    """Attention without its weights."""
    rows, batch, heads, size = sizes
    columns, head = k.shape[1], size // heads
    if mask is not None:
        per_head = mask.shape[0] != 1
        shape = (batch, heads, mask.shape[1], columns) if per_head else (1, 1, *mask.shape[1:])
        mask = mask.view(shape)
    q = q.view(batch, heads, rows, head)
    k, v = k.view(batch, heads, columns, head), v.view(batch, heads, columns, head)
    attend = ops.nn.functional.scaled_dot_product_attention
    result = attend(q, k, v, mask, dropout, is_causal)
    return result.permute(2, 0, 1, 3).contiguous().view(rows * batch, size)
