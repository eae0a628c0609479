"""Encoder and decoder of attention layers (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.attention.fast import is_left_aligned
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import init
from flambeau.nn.containers import ModuleList
from flambeau.nn.layers.normalization import LayerNorm
from flambeau.nn.layers.transformer_layers import (
    Activation,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
    as_float_mask,
)
from flambeau.nn.module import Module


def _get_clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


NESTED_CHECKS: dict[str, Callable[[Any], bool]] = {
    "encoder_layer was not TransformerEncoderLayer": lambda layer: (
        not isinstance(layer, TransformerEncoderLayer)
    ),
    "encoder_layer.norm_first was True": lambda layer: layer.norm_first,
    "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference "
    "performance)": lambda layer: not layer.self_attn.batch_first,
    "encoder_layer.self_attn._qkv_same_embed_dim was not True": lambda layer: (
        not layer.self_attn._qkv_same_embed_dim
    ),
    "encoder_layer.self_attn was passed bias=False": lambda layer: (
        layer.self_attn.in_proj_bias is None
    ),
    "encoder_layer.activation_relu_or_gelu was not True": lambda layer: (
        not layer.activation_relu_or_gelu
    ),
    "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps": lambda layer: (
        layer.norm1.eps != layer.norm2.eps
    ),
    "encoder_layer.self_attn.num_heads is odd": lambda layer: layer.self_attn.num_heads % 2 == 1,
}


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after another, and a norm at the end if given.

    Takes shape (S, N, E), or (N, S, E) with `batch_first`; the result has the same.

    >>> import flambeau as torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> torch.nn.TransformerEncoder(layer, 2)(torch.ones(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why_not = next(
            (why for why, applies in NESTED_CHECKS.items() if applies(encoder_layer)), ""
        )
        self.use_nested_tensor = enable_nested_tensor and not why_not
        if enable_nested_tensor and why_not:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{why_not}",
                stacklevel=2,
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = as_float_mask(src_key_padding_mask, "src_key_padding_mask", src, mask, "mask")
        mask = as_float_mask(mask, "mask", src)
        causal = is_causal is not None and is_causal
        drops = mask is None and self._drops_padding(src, padding)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if drops and padding is not None:
            output = output.masked_fill(padding.ne(0).unsqueeze(-1), 0.0)
        if self.norm is None:
            return output
        return self.norm(output)

    def _drops_padding(self, src: Tensor, padding: Tensor | None) -> bool:
        """Whether padded positions are zeros in the end: torch packs the others for its fast path,
        which it may do if the padding stands behind each sequence.
        """
        if padding is None or not self.use_nested_tensor or src.dim() != 3:
            return False
        if not self.layers[0]._is_fast(src):
            return False
        return not self.mask_check or is_left_aligned(padding.eq(0))


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after another, and a norm at the end if given.

    Shapes: targets and result (T, N, E), memory (S, N, E).

    >>> import flambeau as torch
    >>> decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(8, 2, 16), 2)
    >>> decoder(torch.ones(3, 1, 8), torch.ones(5, 1, 8)).shape
    torch.Size([3, 1, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        decoder_layer: TransformerDecoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = tgt_is_causal is not None and tgt_is_causal
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        if self.norm is None:
            return output
        return self.norm(output)


class Transformer(Module):
    """Encoder and decoder: src (S, N, E) and tgt (T, N, E) to (T, N, E).

    d_model: E, the width of what goes in and comes out.
    nhead: into how many heads attention divides E.
    num_encoder_layers, num_decoder_layers: how many layers each of the two has.
    dim_feedforward: the width inside of a layer, between its two linear maps.
    dropout: the share of numbers that training sets to 0.
    activation: "relu", "gelu" or a function, between the two linear maps.
    custom_encoder, custom_decoder: modules to use in place of the two.
    batch_first: shapes are (N, S, E) and (N, T, E).
    norm_first: normalise before attention and the linear maps, not after.

    Matrices start from `xavier_uniform_`. Positions are not added, and nothing is masked unless
    `tgt_mask` and its kin say so: `generate_square_subsequent_mask` hides later steps.

    >>> import flambeau as torch
    >>> model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(torch.ones(1, 5, 8), torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        norm_options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options = {"batch_first": batch_first, "norm_first": norm_first, **norm_options}
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*layer, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **norm_options)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*layer, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **norm_options)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_dim = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch_dim] != tgt.shape[batch_dim]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(  # type: ignore[no-any-return]
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: dt.dtype | None = None
    ) -> Tensor:
        """(sz, sz) with minus infinity above the diagonal: no step sees a later one."""
        full = ops.full((sz, sz), float("-inf"), dtype=dtype or dt.default_dtype(), device=device)
        return ops.triu(full, diagonal=1)  # type: ignore[no-any-return]

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
