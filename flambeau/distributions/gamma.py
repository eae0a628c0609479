"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.parameters import Parametrised
from flambeau.distributions.utils import finfo

__all__ = ["Gamma"]


class Gamma(Parametrised, ExponentialFamily):
    """Numbers of density proportional to `x**(concentration - 1) * exp(-rate * x)`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _expanded = ("concentration", "rate")  # a subclass may have other parameters
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = ops._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value).tiny)  # the gradient does not see it
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = ops.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_sample(value)
        kernel = ops.xlogy(self.concentration - 1, value) - self.rate * value
        return kernel + ops.xlogy(self.concentration, self.rate) - self.concentration.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return ops.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        shape = self.concentration
        return shape - self.rate.log() + shape.lgamma() + (1.0 - shape) * shape.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return (x + 1).lgamma() - (x + 1) * (-y).log()
