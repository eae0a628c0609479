"""Attention with several heads, projections included."""

from __future__ import annotations


def _weighted_values(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], dropout_p: float
                     ) -> Tuple[Tensor, Tensor]:  # fmt: skip
    scaled = q * math.sqrt(1.0 / float(q.size(-1)))
    keys = k.transpose(-2, -1)
    scores = torch.bmm(scaled, keys) if mask is None else torch.baddbmm(mask, scaled, keys)
    weights = torch.softmax(scores, -1)
    if dropout_p > 0.0:
        weights = torch.dropout(weights, dropout_p, True)
    return torch.bmm(weights, v), weights


def _values_alone(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], dropout_p: float,
                  heads: int, is_causal: bool) -> Tensor:  # fmt: skip
    by_head = [q.size(0) // heads, heads]
    if mask is not None:
        if mask.size(0) == 1:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.view(by_head + mask.size()[1:])
    q = q.view(by_head + q.size()[1:])
    k = k.view(by_head + k.size()[1:])
    v = v.view(by_head + v.size()[1:])
    result = torch.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    return result.flatten(0, 1)


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Optional[Tensor], in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor],
    bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor], training: bool = True,
    key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
    attn_mask: Optional[Tensor] = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None, static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:  # fmt: skip
    batched = _is_batch(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    padding = _float_mask(key_padding_mask, "key_padding_mask", query, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    mask: Optional[Tensor] = None
    hinted = is_causal and padding is None and not need_weights
    if not hinted:
        mask = _float_mask(attn_mask, "attn_mask", query)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    rows, batch, size = query.size(0), query.size(1), query.size(2)
    if use_separate_proj_weight:
        q = _by_own_weight(query, "q", q_proj_weight, in_proj_bias, 0, size)
        k = _by_own_weight(key, "k", k_proj_weight, in_proj_bias, 1, size)
        v = _by_own_weight(value, "v", v_proj_weight, in_proj_bias, 2, size)
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if mask is not None:
        mask = _mask_of_pairs(mask, batch, num_heads, rows, key.size(0))
    if bias_k is not None and bias_v is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
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
        zeros = torch.zeros([count, 1, head], dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, zeros], 1), torch.cat([v, zeros], 1)
        mask, padding = _one_column_more(mask), _one_column_more(padding)
    mask = _with_padding(mask, padding, batch, num_heads, k.size(1))
    share = dropout_p if training else 0.0
    weights: Optional[Tensor] = None
    if need_weights:
        values, by_head = _weighted_values(q, k, v, mask, share)
        by_head = by_head.view(batch, num_heads, rows, k.size(1))
        weights = by_head.mean(1) if average_attn_weights else by_head
    else:
        values = _values_alone(q, k, v, mask, share, num_heads, hinted)
    values = values.transpose(0, 1).reshape(rows, batch, size)
    result = torch.linear(values, out_proj_weight, out_proj_bias)
    if batched:
        return result, weights
    return result.squeeze(1), None if weights is None else weights.squeeze(0)
