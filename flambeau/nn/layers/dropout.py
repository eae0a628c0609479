"""Dropout: in training mode, zeros at random places."""

from __future__ import annotations

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module


class _DropoutNd(Module):
    """What the dropout layers share: the probability `p` of a zero."""

    __constants__ = ["p", "inplace"]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zero elements with probability p and scale the others by 1 / (1 - p).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> layer = torch.nn.Dropout(0.5).eval()
    >>> layer(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zero whole channels of (N, C, L) or (C, L).

    In training each channel is zero with probability `p`, the others are divided by 1 - p; in
    evaluation the input stays as it is.

    >>> import flambeau as torch
    >>> torch.nn.Dropout1d(1.0)(torch.ones(1, 2, 3))
    tensor([[[0., 0., 0.],
             [0., 0., 0.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zero whole channels of (N, C, H, W) or (N, C, L).

    In training each channel is zero with probability `p`, the others are divided by 1 - p; in
    evaluation the input stays as it is.

    >>> import flambeau as torch
    >>> torch.nn.Dropout2d(0.5).eval()(torch.ones(1, 2, 3, 3)).shape
    torch.Size([1, 2, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W).

    In training each channel is zero with probability `p`, the others are divided by 1 - p; in
    evaluation the input stays as it is.

    >>> import flambeau as torch
    >>> torch.nn.Dropout3d(0.5).eval()(torch.ones(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 3, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance behind a SELU (Klambauer et al., 2017).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.AlphaDropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    Takes shapes (N, C, *); the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.FeatureAlphaDropout(0.5).eval()(torch.ones(1, 2, 3)).shape
    torch.Size([1, 2, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
