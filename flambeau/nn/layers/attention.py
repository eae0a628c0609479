"""Attention with several heads."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.autocast import settings
from flambeau._core.programs import EAGER
from flambeau._ops.attention.fast import switch
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.layers.linear import NonDynamicallyQuantizableLinear
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter, empty_parameter


class MultiheadAttention(Module):
    """softmax(Q Kᵀ / sqrt(d)) V in `num_heads` subspaces (Vaswani et al., 2017).

    Inputs are (L, N, E), or (N, L, E) with `batch_first`, or (L, E). Projections of query, key and
    value are one matrix `in_proj_weight` of (3E, E), unless `kdim` or `vdim` differ from E.

    >>> import flambeau as torch
    >>> x = torch.ones(2, 5, 8)
    >>> out, weights = torch.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
    >>> out.shape, weights.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 5, 5]))
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        options = (dtype, device)
        self._make_projections(bias, options)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        if add_bias_kv:
            self.bias_k = empty_parameter((1, 1, embed_dim), *options)
            self.bias_v = empty_parameter((1, 1, embed_dim), *options)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make_projections(self, bias: bool, options: Any) -> None:
        size = self.embed_dim
        if self._qkv_same_embed_dim:
            self.in_proj_weight = empty_parameter((3 * size, size), *options)
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        else:
            self.q_proj_weight = empty_parameter((size, size), *options)
            self.k_proj_weight = empty_parameter((size, self.kdim), *options)
            self.v_proj_weight = empty_parameter((size, self.vdim), *options)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = empty_parameter((3 * size,), *options)
        else:
            self.register_parameter("in_proj_bias", None)

    def _reset_parameters(self) -> None:
        packed = (self.in_proj_weight,)
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        for weight in packed if self._qkv_same_embed_dim else separate:
            init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if self.in_proj_bias is not None:
                init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values, and the weights (or None, without `need_weights`).

        `key_padding_mask` (N, S) is True where a key is left out, `attn_mask` (L, S) or
        (N·heads, L, S) where a pair is; float masks are added to the scores.
        """
        if self._is_fast(query, key, value, attn_mask, key_padding_mask):
            return self._fast(
                query, attn_mask, key_padding_mask, need_weights, average_attn_weights
            )
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            query, key, value = _swapped(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(1, 0) if swapped else output), weights

    def _is_fast(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None,
                 key_padding_mask: Tensor | None) -> bool:  # fmt: skip
        """Whether one operator does: attention of a batch to itself, for inference."""
        if self.training or query is not key or key is not value or not self.batch_first:
            return False
        if query.dim() != 3 or self.num_heads % 2 == 1 or self.add_zero_attn:
            return False
        if self.bias_k is not None or self.bias_v is not None:
            return False
        if not (_is_bool(attn_mask) and _is_bool(key_padding_mask)):
            return False
        if self.in_proj_weight is not None and self.in_proj_bias is not None:
            return may_be_fast([query, self.in_proj_weight, self.in_proj_bias,
                                self.out_proj.weight, self.out_proj.bias])  # fmt: skip
        return False

    def _fast(
        self,
        query: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        need_weights: bool,
        average: bool,
    ) -> tuple[Tensor, Tensor | None]:
        mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
        if self.in_proj_weight is None or self.in_proj_bias is None:
            return query, None  # such layers never come here: programs need to be told
        result, weights = ops._native_multi_head_attention(
            query, query, query, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.out_proj.weight, self.out_proj.bias, mask, need_weights,
            average, kind,
        )  # fmt: skip
        return result, weights if need_weights else None

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one (N, heads, L, S), and its kind: 0 attention, 1 padding, 2 both."""
        if attn_mask is None and key_padding_mask is None:
            return None, None
        if attn_mask is None:
            return key_padding_mask, 1
        batch, length = query.shape[0], query.shape[1]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length)
            merged = merged.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch, 1, 1, length)
            merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, 2


def _is_bool(mask: Tensor | None) -> bool:
    return mask is None or mask.dtype == dt.bool_


def may_be_fast(tensors: list[Tensor]) -> bool:
    """Whether a layer may take its fast path with these inputs and parameters: it is allowed, no
    subclass has a say, all have one dtype, and no gradient is wanted.
    """
    if EAGER:
        if not switch.enabled:
            return False
        for tensor in tensors:
            if type(tensor) is not Parameter and type(tensor) is not Tensor:
                return False
    if settings.enabled["cuda"] if EAGER else ops.is_autocast_enabled():
        return False
    recording = modes.grad.enabled if EAGER else ops.is_grad_enabled()
    kind = tensors[0].dtype
    if tensors[0].device.type not in ("cpu", "cuda"):
        return False
    for tensor in tensors:
        if tensor.dtype != kind or (recording and tensor.requires_grad):
            return False
    return True


def _swapped(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Batch and sequence dims exchanged; what was one tensor stays one."""
    query_s = query.transpose(1, 0)
    key_s = query_s if key is query else key.transpose(1, 0)
    value_s = key_s if value is key else value.transpose(1, 0)
    return query_s, key_s, value_s
