"""Losses of regression and of pairs."""

from __future__ import annotations

# ---- of two tensors of one shape


def _of_one_shape(input: Tensor, target: Tensor) -> List[Tensor]:
    if input.size() != target.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size."
        )
    return torch.broadcast_tensors(input, target)


def _weighted(errors: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    return errors * weight


def _reduced(losses: Tensor, reduction: str, count: Optional[Tensor] = None) -> Tensor:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction != "mean":
        raise ValueError(
            f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'."
        )
    return losses.mean() if count is None else losses.sum() / count


def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
            reduce: Optional[bool] = None, reduction: str = "mean",
            weight: Optional[Tensor] = None) -> Tensor:  # fmt: skip
    one, other = _of_one_shape(input, target)
    name = _name_of(reduction, size_average, reduce)
    if weight is None:
        return torch.l1_loss(one, other, get_enum(name))
    return _reduced(_weighted((one - other).abs(), input, weight), name, weight.sum())


def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
             reduce: Optional[bool] = None, reduction: str = "mean",
             weight: Optional[Tensor] = None) -> Tensor:  # fmt: skip
    one, other = _of_one_shape(input, target)
    name = _name_of(reduction, size_average, reduce)
    if weight is None:
        return torch.mse_loss(one, other, get_enum(name))
    return _reduced(_weighted((one - other) ** 2, input, weight), name, weight.sum())


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Optional[Tensor] = None) -> Tensor:  # fmt: skip
    one, other = _of_one_shape(input, target)
    if weight is None:
        return torch.huber_loss(one, other, get_enum(reduction), delta)
    return _reduced(_weighted(torch.huber_loss(one, other, 0, delta), input, weight), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
                   reduce: Optional[bool] = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:  # fmt: skip
    one, other = _of_one_shape(input, target)
    number = _number_of(reduction, size_average, reduce)
    if beta == 0.0:
        return torch.l1_loss(one, other, number)
    return torch.smooth_l1_loss(one, other, number, beta)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: Optional[bool] = None, eps: float = 1e-8,
                     reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    name = _name_of(reduction, size_average, reduce)
    if name == "elementwise_mean":
        raise ValueError(name + " is not a valid value for reduction")
    return torch.poisson_nll_loss(input, target, log_input, full, eps, get_enum(name))


# ---- of pairs and triples


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                         reduction: str = "mean") -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    return torch.hinge_embedding_loss(input, target, margin, number)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                        reduction: str = "mean") -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return torch.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                          reduction: str = "mean") -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    return torch.cosine_embedding_loss(input1, input2, target, margin, number)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                        reduction: str = "mean") -> Tensor:  # fmt: skip
    number = _number_of(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return torch.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, number
    )  # fmt: skip
