"""The operators of the fast path of TransformerEncoder and MultiheadAttention in eval mode.

Torch drops padded positions on the way through an encoder: it packs the rest into a nested tensor,
and fills the gaps with zeros at the end. Here the tensor stays padded and knows its mask; what the
padded positions hold on the way is never looked at, and in the end they are zeros, too.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.operators.layers import functional
from flambeau.jit.operators.registry import implements

MASK = "_valid_positions"
"""Under this name a padded tensor's `__dict__` has its mask (N, L), true where there is a value."""
SRC_MASK, PADDING_MASK = 0, 1
"""Kinds of masks: (L, L) for all sequences, (N, L) for all queries; others are (N, heads, L, L)."""


@implements("_nested_tensor_from_mask_left_aligned")
def is_left_aligned(tensor: Any, mask: Any) -> bool:
    """Whether in each row of a mask (N, L) no valid position follows a padded one."""
    falls = mask[:, 1:] & ~mask[:, :-1]
    return not bool(falls.any())


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
    mask = tensor.__dict__.get(MASK)
    if mask is None:
        raise RuntimeError("to_padded_tensor: the tensor has no padded positions")
    if output_size is not None and tuple(output_size) != tuple(tensor.shape):
        raise RuntimeError(f"to_padded_tensor: the tensor has shape {list(tensor.shape)}")
    return tensor.masked_fill(~mask.unsqueeze(-1), padding)


def marked(tensor: Tensor, mask: Any) -> Tensor:
    """The tensor, which from now on knows its mask."""
    if mask is not None:
        tensor.__dict__[MASK] = mask
    return tensor


def _blocked(mask: Any, kind: int | None, valid: Any) -> Any:
    """Where no attention is paid, as bool that broadcasts to (N, heads, L, L); None for nowhere.

    Torch takes a mask of numbers as one of bools: whatever is not 0 blocks.
    """
    if mask is None:
        return None if valid is None else ~valid[:, None, None, :]
    mask = mask if mask.dtype.name == "bool" else mask != 0
    if kind == PADDING_MASK:
        return mask[:, None, None, :]
    return mask[None, None] if kind == SRC_MASK or mask.ndim == 2 else mask


@implements("_native_multi_head_attention")
def attention(query: Any, key: Any, value: Any, embed_dim: int, heads: int, qkv_weight: Any,
              qkv_bias: Any, proj_weight: Any, proj_bias: Any, mask: Any, need_weights: bool,
              average_weights: bool, mask_type: int | None) -> tuple[Any, Any]:  # fmt: skip
    """Attention of several heads (Vaswani et al. 2017) on (N, L, D), projections included; the
    result and, if they are wanted, the weights (N, L, S), or (N, heads, L, S) of each head.
    """
    F = functional()  # noqa: N806
    weights = [qkv_weight[i * embed_dim : (i + 1) * embed_dim] for i in range(3)]
    biases = [qkv_bias[i * embed_dim : (i + 1) * embed_dim] for i in range(3)]
    parts = [_heads(F.linear(x, w, b), heads)
             for x, w, b in zip((query, key, value), weights, biases, strict=True)]  # fmt: skip
    scores = (parts[0] * (1 / sqrt(embed_dim // heads))) @ parts[1].transpose(-2, -1)
    valid = query.__dict__.get(MASK)
    blocked = _blocked(mask, mask_type, valid)
    if blocked is not None:
        scores = scores.masked_fill(blocked, float("-inf"))
    paid = scores.softmax(-1)
    mixed = (paid @ parts[2]).transpose(1, 2).flatten(2)
    result = marked(F.linear(mixed, proj_weight, proj_bias), valid)
    if not need_weights:
        return result, None
    return result, paid.mean(1) if average_weights else paid


def _heads(tensor: Any, heads: int) -> Any:
    """(N, L, D) as (N, heads, L, D / heads)."""
    return tensor.unflatten(-1, (heads, -1)).transpose(1, 2)


@implements("_transformer_encoder_layer_fwd")
def encoder_layer(src: Any, embed_dim: int, heads: int, qkv_weight: Any, qkv_bias: Any,
                  proj_weight: Any, proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float,
                  norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any, norm_bias_2: Any,
                  ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any,
                  mask: Any, mask_type: int | None) -> Any:  # fmt: skip
    """One layer of an encoder on (N, L, D), without dropout."""
    F = functional()  # noqa: N806
    valid = src.__dict__.get(MASK)

    def attend(x: Any) -> Any:
        return attention(marked(x, valid), x, x, embed_dim, heads, qkv_weight, qkv_bias,
                         proj_weight, proj_bias, mask, False, True, mask_type)[0]  # fmt: skip

    def feed_forward(x: Any) -> Any:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        inner = F.gelu(inner) if use_gelu else F.relu(inner)
        return F.linear(inner, ffn_weight_2, ffn_bias_2)

    def norm_1(x: Any) -> Any:
        return F.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Any) -> Any:
        return F.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    if norm_first:
        between = src + attend(norm_1(src))
        return marked(between + feed_forward(norm_2(between)), valid)
    between = norm_1(src + attend(src))
    return marked(norm_2(between + feed_forward(between)), valid)
