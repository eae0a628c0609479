"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.parameters import AroundLoc
from flambeau.distributions.utils import _standard_normal

__all__ = ["Normal"]

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Normal(AroundLoc, ExponentialFamily):
    """Gauss's distribution, of mean `loc` and standard deviation `scale`.

    >>> Normal(torch.tensor([0.0]), torch.tensor([2.0])).cdf(torch.tensor([0.0]))
    tensor([0.5000])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, scale=scale)

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        square = (value - self.loc).pow(2) / (2 * self.scale.pow(2))
        return -square - self.scale.log() - HALF_LOG_TWO_PI

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        distance = (value - self.loc) * self.scale.reciprocal()
        return 0.5 * (1 + ops.erf(distance / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * ops.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_TWO_PI + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        precision = self.scale.pow(-2)
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()
