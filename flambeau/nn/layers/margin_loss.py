"""Losses with a margin: nothing to pay where the right answer wins by enough."""

from __future__ import annotations

from collections.abc import Callable

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.layers.distance import PairwiseDistance
from flambeau.nn.layers.loss import _Loss, _WeightedLoss
from flambeau.nn.module import Module


class HingeEmbeddingLoss(_Loss):
    """input where target is 1, max(0, margin - input) where it is -1.

    Input and target have one shape, which is also that of the result without reduction, else ().

    >>> import flambeau as torch
    >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.5]), torch.tensor([-1.0]))
    tensor(0.5000)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge between every wrong and every right class, over the number of classes.

    Shapes: scores (N, C) or (C,), targets the same, ended by -1.

    >>> import flambeau as torch
    >>> scores, labels = torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]])
    >>> torch.nn.MultiLabelMarginLoss()(scores, labels)
    tensor(0.8500)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target · input)) for targets ±1.

    Input and target have one shape, which is also that of the result without reduction, else ().

    >>> import flambeau as torch
    >>> torch.nn.SoftMarginLoss()(torch.tensor([0., 2.]), torch.tensor([1., 1.]))
    tensor(0.4100)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    Shapes: inputs (N, D) with target (N,), or (D,) with target ().

    >>> import flambeau as torch
    >>> one, two = torch.tensor([[1., 0.]]), torch.tensor([[0., 1.]])
    >>> torch.nn.CosineEmbeddingLoss()(one, two, torch.tensor([1]))
    tensor(1.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """max(0, -target · (input1 - input2) + margin) for targets ±1.

    Inputs and target have one shape, which is also that of the result without reduction, else ().

    >>> import flambeau as torch
    >>> torch.nn.MarginRankingLoss()(torch.tensor([1.0]), torch.tensor([3.0]),
    ...     torch.tensor([1.0]))
    tensor(2.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """Σ max(0, margin - x[target] + x[i])ᵖ / C over the other classes i.

    Shapes: scores (N, C) with targets (N,), or (C,) with ().

    >>> import flambeau as torch
    >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.9]]), torch.tensor([2]))
    tensor(0.1667)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.ndim != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, got "
                f"{weight.ndim}D instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with d the p-norm.

    Shapes (N, D) or (D,), the same for all three; without reduction the result has (N,) or ().

    >>> import flambeau as torch
    >>> torch.nn.TripletMarginLoss()(torch.zeros(1, 2), torch.zeros(1, 2),
    ...     torch.tensor([[3.0, 4.0]]))
    tensor(0.)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _check_margin(self, margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


def _check_margin(loss: Module, margin: float) -> None:
    if margin <= 0:
        raise ValueError(
            f"{type(loss).__name__}: expected margin to be greater than 0, got {margin} instead"
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a distance of one's own, Euclidean by default.

    Shapes (N, *), the same for all three; without reduction the result has that of the distances.

    >>> import flambeau as torch
    >>> far = lambda x, y: (x - y).abs().sum(-1)
    >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=far)
    >>> loss(torch.tensor([[0.]]), torch.tensor([[1.]]), torch.tensor([[1.5]]))
    tensor(0.5000)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        _check_margin(self, margin)
        given = distance_function is not None
        self.distance_function = distance_function if given else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
