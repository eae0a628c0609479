"""The layers of encoders and decoders: attention, two linear maps, norms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.programs import EAGER
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.layers.attention import MultiheadAttention, may_be_fast
from flambeau.nn.layers.dropout import Dropout
from flambeau.nn.layers.linear import Linear
from flambeau.nn.layers.normalization import LayerNorm
from flambeau.nn.module import Module

Activation = str | Callable[[Tensor], Tensor]


def _get_activation_fn(name: str) -> Callable[[Tensor], Tensor]:
    if name not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {name}")
    return getattr(F, name)  # type: ignore[no-any-return]


def as_float_mask(mask: Tensor | None, name: str, like: Tensor, other: Tensor | None = None,
                  other_name: str = "") -> Tensor | None:  # fmt: skip
    """A mask to be added to scores; where a bool mask is True, minus infinity."""
    if mask is None:
        return None
    if other is not None and mask.dtype != other.dtype:
        warnings.warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same "
                      "type for both instead.", stacklevel=5)  # fmt: skip
    if mask.is_floating_point():
        return mask
    if mask.dtype != dt.bool_:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return ops.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))  # type: ignore[no-any-return]


class _Layer(Module):
    """What encoder and decoder layers share."""

    __constants__ = ["norm_first"]

    def _set_activation(self, activation: Activation) -> None:
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation = activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended, _ = self.self_attn(
            x, x, x, key_padding_mask=key_padding_mask, need_weights=False, attn_mask=attn_mask,
            is_causal=is_causal,
        )  # fmt: skip
        return self.dropout1(attended)  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear maps, each with dropout, residual and layer norm.

    (T, N, d_model), or (N, T, d_model) with `batch_first`; `norm_first` normalizes before.

    >>> import flambeau as torch
    >>> torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)(torch.ones(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self._set_activation(activation)
        self.activation_relu_or_gelu = _kind_of_activation(self.activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        padding = as_float_mask(
            src_key_padding_mask, "src_key_padding_mask", src, src_mask, "src_mask"
        )
        mask = as_float_mask(src_mask, "src_mask", src)
        if self._is_fast(src) and not (EAGER and self._is_hooked()):
            return self._fast(src, mask, padding)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))  # type: ignore[no-any-return]

    def _is_fast(self, src: Tensor) -> bool:
        """Whether one operator does the whole layer: for inference."""
        attention = self.self_attn
        if self.training or src.dim() != 3 or self.activation_relu_or_gelu == 0:
            return False
        if not attention.batch_first or attention.num_heads % 2 == 1:
            return False
        if self.norm1.eps != self.norm2.eps:
            return False
        if attention.in_proj_weight is not None and attention.in_proj_bias is not None:
            return may_be_fast([
                src, attention.in_proj_weight, attention.in_proj_bias,
                attention.out_proj.weight, attention.out_proj.bias,
                self.norm1.weight, self.norm1.bias, self.norm2.weight, self.norm2.bias,
                self.linear1.weight, self.linear1.bias, self.linear2.weight, self.linear2.bias,
            ])  # fmt: skip
        return False

    def _is_hooked(self) -> bool:
        return any(m._forward_hooks or m._forward_pre_hooks for m in self.modules())

    def _fast(self, src: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor:
        attention = self.self_attn
        mask, kind = attention.merge_masks(attn_mask, padding, src)
        if attention.in_proj_weight is None or attention.in_proj_bias is None:
            return src  # such layers never come here: programs need to be told
        return ops._transformer_encoder_layer_fwd(  # type: ignore[no-any-return]
            src, attention.embed_dim, attention.num_heads, attention.in_proj_weight,
            attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias,
            self.activation_relu_or_gelu == 2, self.norm_first, self.norm1.eps,
            self.norm1.weight, self.norm1.bias, self.norm2.weight, self.norm2.bias,
            self.linear1.weight, self.linear1.bias, self.linear2.weight, self.linear2.bias,
            mask, kind,
        )  # fmt: skip

    def _ff_block(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout2(x)  # type: ignore[no-any-return]


def _kind_of_activation(activation: Any) -> int:
    """1 for ReLU, 2 for GELU, 0 for others."""
    from flambeau.nn.layers.activation import GELU, ReLU

    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


class TransformerDecoderLayer(_Layer):
    """As the encoder's layer, with attention over the encoder's output in between.

    Shapes: targets and result (T, N, E), memory (S, N, E); with `batch_first` N comes first.

    >>> import flambeau as torch
    >>> layer = torch.nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(torch.ones(3, 1, 8), torch.ones(5, 1, 8)).shape
    torch.Size([3, 1, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        super().__init__()
        for name in ("self_attn", "multihead_attn"):
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **options
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        for name in ("norm1", "norm2", "norm3"):
            setattr(self, name, LayerNorm(d_model, eps=layer_norm_eps, **options))
        for name in ("dropout1", "dropout2", "dropout3"):
            setattr(self, name, Dropout(dropout))
        self._set_activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))  # type: ignore[no-any-return]

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended, _ = self.multihead_attn(
            x, mem, mem, key_padding_mask=key_padding_mask, need_weights=False,
            attn_mask=attn_mask, is_causal=is_causal,
        )  # fmt: skip
        return self.dropout2(attended)  # type: ignore[no-any-return]

    def _ff_block(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout3(x)  # type: ignore[no-any-return]
