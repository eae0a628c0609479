"""Cholesky factors of matrices of correlation (Lewandowski, Kurowicka and Joe, 2009)."""

from __future__ import annotations

import math
from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.beta import Beta
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import Parametrised
from flambeau.distributions.utils import broadcast_all, finfo

__all__ = ["LKJCholesky"]


class LKJCholesky(Parametrised):
    """The density of `L @ L.mT` is proportional to its determinant to `concentration - 1`."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expanded = ("concentration", "_beta")
    _kept = ("dim",)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        self._beta = _onion_layers(self.concentration, dim)
        shape = self.concentration.shape
        Distribution.__init__(self, shape, Size((dim, dim)), validate_args=validate_args)

    def _wider(self, value: Any, batch_shape: Size) -> Any:
        if value is self._beta:
            return value.expand(batch_shape + (self.dim,))
        return super()._wider(value, batch_shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By the onion method: each row gets a direction, and a length from a beta number."""
        with no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            like = self.concentration
            noise = ops.randn(
                self._extended_shape(sample_shape), dtype=like.dtype, device=like.device
            ).tril(-1)
            direction = noise / noise.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)
            rows = length.sqrt() * direction
            rest = (1 - rows.pow(2).sum(-1)).clamp(min=finfo(rows).tiny)
            return rows + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """Each power of the diagonal, over their integral (page 1999 of the paper)."""
        self._check_sample(value)
        like, below = self.concentration, self.dim - 1
        row = ops.arange(2, self.dim + 1, device=like.device)
        power = 2 * (like - 1).unsqueeze(-1) + self.dim - row
        kernel = (power * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = like + 0.5 * below
        integral = ops.mvlgamma(alpha - 0.5, below) - alpha.lgamma() * below
        return kernel - integral - 0.5 * below * math.log(math.pi)


def _onion_layers(concentration: Tensor, dim: int) -> Beta:
    """The squared lengths of the rows without their diagonals."""
    options = {"dtype": concentration.dtype, "device": concentration.device}
    layer = ops.cat([ops.zeros(1, **options), ops.arange(dim - 1, **options)])
    marginal = (concentration + 0.5 * (dim - 2)).unsqueeze(-1)
    return Beta(layer + 0.5, marginal - 0.5 * layer)
