"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.distributions.utils import euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """A power of waiting times, stretched by `scale`."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expanded = ("concentration_reciprocal",)

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._broadcast(scale=scale, concentration=concentration)
        inverse = self.concentration_reciprocal = self.concentration.reciprocal()
        steps = [PowerTransform(inverse), AffineTransform(0, self.scale)]
        waiting = Exponential(ops.ones_like(inverse), validate_args=validate_args)
        super().__init__(waiting, steps, validate_args=validate_args)  # type: ignore[arg-type]

    def _log_moment(self, order: int) -> Tensor:
        return (1 + order * self.concentration_reciprocal).lgamma()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._log_moment(1).exp()

    @property
    def mode(self) -> Tensor:
        peak = (self.concentration - 1) / self.concentration
        return self.scale * peak.pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Tensor:
        spread = self._log_moment(2).exp() - (2 * self._log_moment(1)).exp()
        return self.scale.pow(2) * spread

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
