"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Like a beta distribution, with a distribution function in closed form (Kumaraswamy, 1980)."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        like = self.concentration0
        base = Uniform(ops.zeros_like(like), ops.ones_like(like), validate_args=validate_args)
        steps = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)  # type: ignore[arg-type]

    def _moment(self, order: int) -> Tensor:
        """The mean of a power: `b * B(1 + order / a, b)`."""
        start = 1 + order / self.concentration1
        end = self.concentration0
        return end * (start.lgamma() + end.lgamma() - (start + end).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        one, zero = self.concentration1, self.concentration0
        peak = ((one - 1) / (one * zero - 1)).pow(one.reciprocal())
        return peak.masked_fill((one < 1) | (zero < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        one, zero = self.concentration1, self.concentration0
        harmonic = (zero + 1).digamma() + euler_constant
        middle = (1 - zero.reciprocal()) + (1 - one.reciprocal()) * harmonic
        return middle - one.log() - zero.log()
