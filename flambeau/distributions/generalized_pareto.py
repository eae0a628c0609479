"""The generalized Pareto distribution (Pickands, 1975)."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.parameters import Parametrised

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Parametrised):
    """What lies above `loc` in the tail of another distribution; exponential at concentration 0."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self._hold(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, ops.where(self.concentration < 0, end, math.inf))

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _curved(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration with 1 in that place."""
        straight = ops.isclose(self.concentration, self.concentration.new_zeros(()))
        return straight, ops.where(straight, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        mean = self.loc + self.scale / (1 - self.concentration)
        return mean.masked_fill(self.concentration >= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        shape = self.concentration
        variance = self.scale.pow(2) / ((1 - shape).pow(2) * (1 - 2 * shape))
        return variance.masked_fill(shape >= 0.5, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        z = self._z(value)
        straight, shape = self._curved()
        power = 1 / shape + 1
        curved = ops.where(power == 0, power, power * ops.log1p(shape * z))
        return -self.scale.log() - ops.where(straight, z, curved)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a sample above a value."""
        self._check_sample(value)
        z = self._z(value)
        straight, shape = self._curved()
        return ops.where(straight, -z, -ops.log1p(shape * z) / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return ops.log1p(-ops.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return ops.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        depth = ops.log1p(-value)
        straight, shape = self._curved()
        curved = self.loc + self.scale * ops.expm1(-shape * depth) / shape
        return ops.where(straight, self.loc - self.scale * depth, curved)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
