"""The operators of the fast path of TransformerEncoder and MultiheadAttention in eval mode.

Torch drops padded positions on the way through an encoder: it packs the rest into a nested tensor,
and fills the gaps with zeros at the end. Here the tensor stays padded and knows its mask; what the
padded positions hold on the way is never looked at, and in the end they are zeros, too.
"""

from __future__ import annotations

from typing import Any

from flambeau._ops.attention import fast as fast_attention
from flambeau._ops.attention.fast import FeedForward, Heads, Norm
from flambeau._tensor.attributes import FIELDS, fields_of
from flambeau._tensor.tensor import Tensor
from flambeau.jit.operators.registry import implements

MASK = "_valid_positions"
"""Under this name a padded tensor has its mask (N, L), true where there is a value."""
FIELDS.add(MASK)


@implements("prim::is_nested")
def is_nested(tensor: Tensor) -> bool:
    """Whether the tensor has padded positions that do not count."""
    return MASK in fields_of(tensor)


@implements("_nested_tensor_from_mask_left_aligned")
def is_left_aligned(tensor: Any, mask: Any) -> bool:
    """Whether in each row of a mask (N, L) no valid position follows a padded one."""
    return fast_attention.is_left_aligned(mask)


@implements("_nested_tensor_from_mask")
def with_mask(tensor: Any, mask: Any, mask_check: bool) -> Any:
    """The tensor (N, L, D), of which only the positions count that a mask (N, L) allows."""
    if mask.dtype.name != "bool":
        raise RuntimeError("Expected mask to be of ScalarType Bool")
    if tensor.ndim != 3 or mask.shape != tensor.shape[:2]:
        raise RuntimeError(
            f"Expected a mask of shape {list(tensor.shape[:2])}, but got {list(mask.shape)}"
        )
    if mask_check and not is_left_aligned(tensor, mask):
        raise RuntimeError(
            "Mask must be left-aligned without gaps: valid positions first, then padding"
        )
    return marked(tensor.clone(), mask)


@implements("to_padded_tensor")
def to_padded(tensor: Any, padding: float, output_size: list[int] | None) -> Any:
    """The tensor with a number in all padded positions."""
    mask = fields_of(tensor).get(MASK)
    if mask is None:
        raise RuntimeError("to_padded_tensor: the tensor has no padded positions")
    if output_size is not None and tuple(output_size) != tuple(tensor.shape):
        raise RuntimeError(f"to_padded_tensor: the tensor has shape {list(tensor.shape)}")
    return tensor.masked_fill(~mask.unsqueeze(-1), padding)


def marked(tensor: Tensor, mask: Any) -> Tensor:
    """The tensor, which from now on knows its mask."""
    if mask is not None:
        fields_of(tensor)[MASK] = mask
    return tensor


def _closed(mask: Any, kind: int | None, valid: Any) -> Any:
    """Where no attention is paid: what a mask says or, if there is none, at padded positions."""
    if mask is None and valid is not None:
        return fast_attention.blocked(~valid, fast_attention.PADDING_MASK)
    return fast_attention.blocked(mask, kind)


@implements("_native_multi_head_attention")
def attention(query: Any, key: Any, value: Any, embed_dim: int, heads: int, qkv_weight: Any,
              qkv_bias: Any, proj_weight: Any, proj_bias: Any, mask: Any, need_weights: bool,
              average_weights: bool, mask_type: int | None) -> tuple[Any, Any]:  # fmt: skip
    """Attention of several heads on (N, L, D), projections included; the result and, if they are
    wanted, the weights (N, L, S), or (N, heads, L, S) of each head.
    """
    weights = Heads(embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
    valid = fields_of(query).get(MASK)
    closed = _closed(mask, mask_type, valid)
    result, paid = fast_attention.attention(query, key, value, weights, closed)
    if not need_weights:
        return marked(result, valid), None
    return marked(result, valid), paid.mean(1) if average_weights else paid


@implements("_transformer_encoder_layer_fwd")
def encoder_layer(src: Any, embed_dim: int, heads: int, qkv_weight: Any, qkv_bias: Any,
                  proj_weight: Any, proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float,
                  norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any, norm_bias_2: Any,
                  ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any,
                  mask: Any, mask_type: int | None) -> Any:  # fmt: skip
    """One layer of an encoder on (N, L, D), without dropout."""
    valid = fields_of(src).get(MASK)
    result = fast_attention.encoder_layer(
        src,
        Heads(embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias),
        (Norm(norm_weight_1, norm_bias_1, eps), Norm(norm_weight_2, norm_bias_2, eps)),
        FeedForward(ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, use_gelu),
        norm_first,
        _closed(mask, mask_type, valid),
    )
    return marked(result, valid)
