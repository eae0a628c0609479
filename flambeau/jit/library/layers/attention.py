"""Attention with several heads: the fast path, one operator for attention of a batch to itself."""

from __future__ import annotations


def may_be_fast(tensors: List[Tensor]) -> bool:
    first = tensors[0]
    if torch.is_autocast_enabled() or first.device.type not in ("cpu", "cuda"):
        return False
    for tensor in tensors:
        if tensor.dtype != first.dtype or (torch.is_grad_enabled() and tensor.requires_grad):
            return False
    return True


def _is_float(mask: Optional[Tensor]) -> bool:
    return mask is not None and mask.is_floating_point()


class MultiheadAttention:
    bias_k: Optional[Tensor]
    bias_v: Optional[Tensor]

    def _is_fast(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor],
                 key_padding_mask: Optional[Tensor]) -> bool:  # fmt: skip
        if self.training or not self.batch_first or self.num_heads % 2 == 1 or self.add_zero_attn:
            return False
        if self.bias_k is not None or self.bias_v is not None or query.dim() != 3:
            return False
        if query is not key or key is not value:
            return False
        if _is_float(attn_mask) or _is_float(key_padding_mask):
            return False
        if self.in_proj_weight is not None and self.in_proj_bias is not None:
            projection = [self.in_proj_weight, self.in_proj_bias]
            return may_be_fast([query, self.out_proj.weight, self.out_proj.bias] + projection)
        return False

    def _fast(self, query: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor],
              need_weights: bool, average: bool) -> Tuple[Tensor, Optional[Tensor]]:  # fmt: skip
        mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
        if self.in_proj_weight is not None and self.in_proj_bias is not None:
            result, weights = torch._native_multi_head_attention(
                query, query, query, self.embed_dim, self.num_heads, self.in_proj_weight,
                self.in_proj_bias, self.out_proj.weight, self.out_proj.bias, mask, need_weights,
                average, kind,
            )  # fmt: skip
            return result, weights if need_weights else None
        return query, None  # such layers never come here
