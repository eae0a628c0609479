"""Encoders: the fast path, one operator for a whole layer."""

from __future__ import annotations


class TransformerEncoderLayer:
    def _is_fast(self, src: Tensor) -> bool:
        if self.training or src.dim() != 3 or self.activation_relu_or_gelu == 0:
            return False
        if not self.self_attn.batch_first or self.self_attn.num_heads % 2 == 1:
            return False
        if self.norm1.eps != self.norm2.eps:
            return False
        if self.self_attn.in_proj_weight is not None and self.self_attn.in_proj_bias is not None:
            return may_be_fast([
                src, self.self_attn.in_proj_weight, self.self_attn.in_proj_bias,
                self.self_attn.out_proj.weight, self.self_attn.out_proj.bias,
                self.norm1.weight, self.norm1.bias, self.norm2.weight, self.norm2.bias,
                self.linear1.weight, self.linear1.bias, self.linear2.weight, self.linear2.bias,
            ])  # fmt: skip
        return False

    def _fast(self, src: Tensor, attn_mask: Optional[Tensor], padding: Optional[Tensor]) -> Tensor:
        mask, kind = self.self_attn.merge_masks(attn_mask, padding, src)
        if self.self_attn.in_proj_weight is not None and self.self_attn.in_proj_bias is not None:
            return torch._transformer_encoder_layer_fwd(
                src, self.self_attn.embed_dim, self.self_attn.num_heads,
                self.self_attn.in_proj_weight, self.self_attn.in_proj_bias,
                self.self_attn.out_proj.weight, self.self_attn.out_proj.bias,
                self.activation_relu_or_gelu == 2, self.norm_first, self.norm1.eps,
                self.norm1.weight, self.norm1.bias, self.norm2.weight, self.norm2.bias,
                self.linear1.weight, self.linear1.bias, self.linear2.weight, self.linear2.bias,
                mask, kind,
            )  # fmt: skip
        return src  # such layers never come here


class TransformerEncoder:
    def _drops_padding(self, src: Tensor, padding: Optional[Tensor]) -> bool:
        if padding is None or not self.use_nested_tensor or src.dim() != 3:
            return False
        valid = padding == 0
        if self.mask_check and not torch._nested_tensor_from_mask_left_aligned(src, valid):
            return False
        return self.layers[0]._is_fast(src)
