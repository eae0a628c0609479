"""Layers of attention as one operator each, for inference: what PyTorch calls their fast path.

What differs from the operators one by one: dropout is left out, any number in a mask other than 0
blocks, and a query that may look nowhere gives nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite

SRC_MASK, PADDING_MASK = 0, 1
"""Kinds of masks: (L, L) for all sequences, (N, L) for all queries; others are (N, heads, L, L)."""


class Switch:
    """Whether the fast path may be taken at all: `torch.backends.mha`."""

    enabled: bool = True


switch = Switch()


@dataclass(frozen=True)
class Heads:
    """The weights of attention: projections of (3·D, D) and (D, D), with biases."""

    dim: int
    count: int
    qkv_weight: Any
    qkv_bias: Any
    weight: Any
    bias: Any


@dataclass(frozen=True)
class Norm:
    """The weights of a layer norm."""

    weight: Any
    bias: Any
    eps: float


@dataclass(frozen=True)
class FeedForward:
    """Two linear maps with an activation between them."""

    weight_1: Any
    bias_1: Any
    weight_2: Any
    bias_2: Any
    use_gelu: bool


def blocked(mask: Any, kind: int | None) -> Any:
    """Where no attention is paid, as bool that broadcasts to (N, heads, L, L); None for nowhere."""
    if mask is None:
        return None
    mask = mask if mask.dtype.name == "bool" else mask != 0
    if kind == PADDING_MASK:
        return mask[:, None, None, :]
    return mask[None, None] if kind == SRC_MASK or mask.ndim == 2 else mask


def attention(query: Any, key: Any, value: Any, heads: Heads, closed: Any) -> tuple[Any, Any]:
    """Attention of several heads (Vaswani et al. 2017) on (N, L, D), projections included; the
    result, and the weights (N, heads, L, S). closed: as `blocked` gives it.
    """
    linear = ops.nn.functional.linear
    dim = heads.dim
    parts = []
    for index, x in enumerate((query, key, value)):
        rows = slice(index * dim, (index + 1) * dim)
        projected = linear(x, heads.qkv_weight[rows], heads.qkv_bias[rows])
        parts.append(projected.unflatten(-1, (heads.count, -1)).transpose(1, 2))
    scores = (parts[0] * (1 / sqrt(dim // heads.count))) @ parts[1].transpose(-2, -1)
    if closed is not None:
        scores = scores.masked_fill(closed, float("-inf"))
    paid = scores.softmax(-1)
    mixed = (paid @ parts[2]).transpose(1, 2).flatten(2)
    return linear(mixed, heads.weight, heads.bias), paid


def encoder_layer(src: Any, heads: Heads, norms: tuple[Norm, Norm], forward: FeedForward,
                  norm_first: bool, closed: Any) -> Any:  # fmt: skip
    """One layer of an encoder on (N, L, D), without dropout."""
    functional = ops.nn.functional

    def attend(x: Any) -> Any:
        return attention(x, x, x, heads, closed)[0]

    def feed_forward(x: Any) -> Any:
        inner = functional.linear(x, forward.weight_1, forward.bias_1)
        inner = functional.gelu(inner) if forward.use_gelu else ops.relu(inner)
        return functional.linear(inner, forward.weight_2, forward.bias_2)

    def norm(x: Any, by: Norm) -> Any:
        return ops.layer_norm(x, [heads.dim], by.weight, by.bias, by.eps)

    first, second = norms
    if norm_first:
        between = src + attend(norm(src, first))
        return between + feed_forward(norm(between, second))
    between = norm(src + attend(src), first)
    return norm(between + feed_forward(between), second)


def is_left_aligned(mask: Any) -> bool:
    """Whether in each row of a mask (N, L) no valid position follows a padded one."""
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


@composite(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim,"
    " int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias,"
    " Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True,"
    " int? mask_type=None) -> (Tensor, Tensor)",
    autocast="lower",
    method=False,
    underived=True,
)
def native_attention(
    query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any,
    qkv_bias: Any, proj_weight: Any, proj_bias: Any, mask: Any, need_weights: bool,
    average_attn_weights: bool, mask_type: int | None,
) -> Any:  # fmt: skip
    """`attention` as a function; the weights, if they are wanted, as the mean of all heads or of
    each head."""
    heads = Heads(embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias)
    result, paid = attention(query, key, value, heads, blocked(mask, mask_type))
    if not need_weights:
        return result, None
    return result, paid.mean(1) if average_attn_weights else paid


@composite(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight,"
    " Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first,"
    " float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2,"
    " Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2,"
    " Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
    method=False,
    underived=True,
)
def native_encoder_layer(
    src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
    proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any,
    norm_bias_1: Any, norm_weight_2: Any, norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any,
    ffn_weight_2: Any, ffn_bias_2: Any, mask: Any, mask_type: int | None,
) -> Any:  # fmt: skip
    """`encoder_layer` as a function."""
    heads = Heads(embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
    norms = Norm(norm_weight_1, norm_bias_1, eps), Norm(norm_weight_2, norm_bias_2, eps)
    forward = FeedForward(ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, use_gelu)
    return encoder_layer(src, heads, norms, forward, norm_first, blocked(mask, mask_type))
