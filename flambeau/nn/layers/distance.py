"""Distances between rows."""

from __future__ import annotations

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last dim: (N, D) or (D) to (N) or ().

    >>> import flambeau as torch
    >>> torch.nn.PairwiseDistance()(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]
    norm: float
    eps: float
    keepdim: bool

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2 along `dim`, which the result is without.

    The shapes broadcast. Lengths below `eps` count as `eps`, so that zeros give 0.

    >>> import flambeau as torch
    >>> torch.nn.CosineSimilarity()(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """

    __constants__ = ["dim", "eps"]
    dim: int
    eps: float

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
