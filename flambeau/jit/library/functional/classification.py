"""Losses of classification."""

from __future__ import annotations


def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
             size_average: Optional[bool] = None, ignore_index: int = -100,
             reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    return torch.nll_loss_nd(input, target, weight, number, ignore_index)


def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                  size_average: Optional[bool] = None, ignore_index: int = -100,
                  reduce: Optional[bool] = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    return torch.cross_entropy_loss(
        input, target, weight, number, ignore_index, label_smoothing
    )  # fmt: skip


def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
           reduce: Optional[bool] = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:  # fmt: skip
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
            "major release."
        )
    by_batch = reduction == "batchmean"
    number = _number_of("sum" if by_batch else reduction, size_average, reduce)
    divergence = torch.kl_div(input, target, number, log_target=log_target)
    return divergence / input.size(0) if by_batch and input.dim() > 0 else divergence


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                         size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                         reduction: str = "mean") -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    if input.size() != target.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is None:
        return torch.binary_cross_entropy(input, target, None, number)
    spread = weight.expand(torch.broadcast_shapes(target.size(), weight.size()))
    return torch.binary_cross_entropy(input, target, spread, number)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
                     reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    return torch.soft_margin_loss(input, target, _number_of(reduction, size_average, reduce))


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return torch.multilabel_margin_loss(input, target, _number_of(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    name = _name_of(reduction, size_average, reduce)
    if name != "none" and name != "mean" and name != "sum":
        raise ValueError(name + " is not valid")
    present, absent = torch.log_sigmoid(input), torch.log_sigmoid(-input)
    losses = -(target * present + (1 - target) * absent)
    if weight is not None:
        losses = losses * weight
    classes = input.dim() - 1  # not -1: a scalar has none
    return _reduced(losses.sum(dim=classes) / input.size(classes), name)


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                      reduce: Optional[bool] = None, reduction: str = "mean"
                      ) -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    if p < 1 or p > 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return torch.multi_margin_loss(input, target, p, margin, weight, number)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
             blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
             ) -> Tensor:  # fmt: skip
    number = get_enum(reduction)
    return torch.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity
    )  # fmt: skip
