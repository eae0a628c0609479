"""What goes into attention: checks of shapes, masks, projections."""

from __future__ import annotations

# ---- checks


def _is_batch(query: Tensor, key: Tensor, value: Tensor, padding: Optional[Tensor],
              mask: Optional[Tensor], heads: int) -> bool:  # fmt: skip
    rank = query.dim()
    if rank != 2 and rank != 3:
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    start = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`, expected"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"{start} `key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != rank - 1:
        raise AssertionError(
            f"{start} `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{padding.dim()}-D tensor instead"
        )
    if mask is not None:
        _check_ranks(start, mask, rank, [heads, query.size(0), key.size(0)])
    return rank == 3


def _check_ranks(start: str, mask: Tensor, rank: int, whole: List[int]) -> None:
    if mask.dim() != 2 and mask.dim() != 3:
        raise AssertionError(
            f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead"
        )
    if rank == 2 and mask.dim() == 3 and mask.size() != whole:
        wanted = (whole[0], whole[1], whole[2])
        raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {mask.size()}")


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, size: int, heads: int,
                 separate: bool) -> None:  # fmt: skip
    found = query.size(2)
    if found != size:
        raise AssertionError(f"was expecting embedding dimension of {size}, but got {found}")
    if found % heads != 0:
        raise AssertionError(f"embed_dim {found} not divisible by num_heads {heads}")
    if not separate and key.size() != value.size():
        raise AssertionError(f"key shape {key.size()} does not match value shape {value.size()}")
    one, other = key.size()[:2], value.size()[:2]
    if one != other:
        raise AssertionError(f"key's sequence and batch dims {one} do not match value's {other}")


# ---- masks


def _float_mask(mask: Optional[Tensor], name: str, like: Tensor, other: Optional[Tensor] = None,
                other_name: str = "") -> Optional[Tensor]:  # fmt: skip
    if mask is None:
        return None
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. "
            "Use same type for both instead."
        )
    if mask.is_floating_point():
        return mask
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))


def _mask_of_pairs(mask: Tensor, batch: int, heads: int, rows: int, columns: int) -> Tensor:
    if mask.dim() == 2:
        if mask.size() != [rows, columns]:
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {mask.size()}, but should be {(rows, columns)}."
            )
        return mask.unsqueeze(0)
    wanted = (batch * heads, rows, columns)
    if mask.size() != [batch * heads, rows, columns]:
        raise RuntimeError(
            f"The shape of the 3D attn_mask is {mask.size()}, but should be {wanted}."
        )
    return mask


def _one_column_more(mask: Optional[Tensor]) -> Optional[Tensor]:
    return None if mask is None else torch.pad(mask, [0, 1])


def _with_padding(mask: Optional[Tensor], padding: Optional[Tensor], batch: int, heads: int,
                  columns: int) -> Optional[Tensor]:  # fmt: skip
    if padding is None:
        return mask
    spread = padding.view(batch, 1, 1, columns).expand(-1, heads, -1, -1)
    spread = spread.reshape(batch * heads, 1, columns)
    return spread if mask is None else mask + spread


# ---- projections


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Optional[Tensor],
               bias: Optional[Tensor]) -> List[Tensor]:  # fmt: skip
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    size = query.size(-1)
    if query is key and key is value:  # one product, whose parts are made tensors of their own
        rows = torch.linear(query, weight, bias)
        parts = rows.view(rows.size()[:-1] + [3, size]).movedim(-2, 0).contiguous()
        return [parts[0], parts[1], parts[2]]
    w_q, w_k, w_v = weight.split([size, size, size])
    if bias is None:
        return [torch.linear(query, w_q), torch.linear(key, w_k), torch.linear(value, w_v)]
    b_q, b_k, b_v = bias.split([size, size, size])
    return [torch.linear(query, w_q, b_q), torch.linear(key, w_k, b_k),
            torch.linear(value, w_v, b_v)]  # fmt: skip


def _by_own_weight(input: Tensor, name: str, weight: Optional[Tensor], bias: Optional[Tensor],
                   part: int, size: int) -> Tensor:  # fmt: skip
    if weight is None:
        raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    wanted = (size, input.size(-1))
    if weight.size() != [size, input.size(-1)]:
        word = "query" if name == "q" else "key" if name == "k" else "value"
        raise AssertionError(f"expecting {word} weights shape of {wanted}, but got {weight.size()}")
    if bias is None:
        return torch.linear(input, weight)
    return torch.linear(input, weight, bias.chunk(3)[part])


def _as_heads(tensor: Tensor, count: int, size: int) -> Tensor:
    return tensor.reshape(tensor.size(0), count, size).transpose(0, 1)


def _given_heads(tensor: Tensor, name: str, count: int, size: int) -> Tensor:
    if tensor.size(0) != count:
        raise AssertionError(
            f"expecting static_{name}.size(0) of {count}, but got {tensor.size(0)}"
        )
    if tensor.size(2) != size:
        raise AssertionError(f"expecting static_{name}.size(2) of {size}, but got {tensor.size(2)}")
    return tensor
