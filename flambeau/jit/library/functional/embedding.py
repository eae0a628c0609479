"""Embeddings, one-dimensional and in bags; padding, folding and windows."""

from __future__ import annotations


def _row_from_front(index: int, rows: int) -> int:
    if index < -rows or index >= rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return index + rows if index < 0 else index


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None,
              max_norm: Optional[float] = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    # `max_norm` does nothing here: scripts of torch do not renormalize, for their compiler takes
    # that call for one without effect.
    padding = -1 if padding_idx is None else _row_from_front(padding_idx, weight.size(0))
    return torch.embedding(weight, input, padding, scale_grad_by_freq, sparse)


def _check_bags(input: Tensor, weight: Tensor, offsets: Optional[Tensor],
                per_sample_weights: Optional[Tensor]) -> None:  # fmt: skip
    if per_sample_weights is not None and per_sample_weights.size() != input.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.size()}) is not None, "
            f"then it must have the same shape as the input ({input.size()})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
            "of fixed length sequences. However, found offsets of type <unknown>"
        )
    if input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    elif input.dim() != 2:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )


def _bag_mode(mode: str, scale_grad_by_freq: bool, sparse: bool, weighted: bool) -> int:
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if mode != "sum" and mode != "mean" and mode != "max":
        raise ValueError("mode has to be one of sum, mean or max")
    if weighted and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. "
            "per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    return 0 if mode == "sum" else 1 if mode == "mean" else 2


def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None,
                  max_norm: Optional[float] = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False,
                  padding_idx: Optional[int] = None) -> Tensor:  # fmt: skip
    if weight.dtype == torch.long and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`."
        )
        input, weight = weight, input
    _check_bags(input, weight, offsets, per_sample_weights)
    number = _bag_mode(mode, scale_grad_by_freq, sparse, per_sample_weights is not None)
    rows, last = input, include_last_offset
    if input.dim() == 2:  # each row is a bag
        rows, last = input.reshape(-1), False
        ends = input.numel()
        offsets = torch.arange(0, ends, input.size(1), dtype=input.dtype, device=input.device)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    return torch.embedding_bag(weight, rows, torch.jit._unwrap_optional(offsets),
                               scale_grad_by_freq, number, sparse, per_sample_weights, last,
                               padding_idx)[0]  # fmt: skip


# ---- padding and windows


def pad(input: Tensor, pad: List[int], mode: str = "constant",
        value: Optional[float] = None) -> Tensor:  # fmt: skip
    return torch.pad(input, pad, mode, value)


def unfold(input: Tensor, kernel_size: BroadcastingList2[int],
           dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0,
           stride: BroadcastingList2[int] = 1) -> Tensor:  # fmt: skip
    return torch.im2col(input, kernel_size, dilation, padding, stride)


def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int],
         dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0,
         stride: BroadcastingList2[int] = 1) -> Tensor:  # fmt: skip
    return torch.col2im(input, output_size, kernel_size, dilation, padding, stride)
