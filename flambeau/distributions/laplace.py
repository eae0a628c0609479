"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.parameters import AroundLoc
from flambeau.distributions.utils import finfo

__all__ = ["Laplace"]


class Laplace(AroundLoc):
    """Exponential tails to both sides of `loc`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, scale=scale)

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        limits = finfo(self.loc)
        noise = self.loc.new_empty(self._extended_shape(sample_shape))
        noise.uniform_(limits.eps - 1, 1)
        length = ops.log1p(-noise.abs().clamp(min=limits.tiny))
        return self.loc - self.scale * noise.sign() * length

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * ops.expm1(-distance.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        share = value - 0.5
        return self.loc - self.scale * share.sign() * ops.log1p(-2 * share.abs())

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
