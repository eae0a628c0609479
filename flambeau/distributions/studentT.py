"""Student's distribution."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import AroundLoc
from flambeau.distributions.utils import _standard_normal

__all__ = ["StudentT"]


class StudentT(AroundLoc):
    """A normal number over the root of a mean of `df` squares of others."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _expanded = ("_chi2",)

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        shape = self._broadcast(df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df)
        Distribution.__init__(self, shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return finite.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        length = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * noise * ops.rsqrt(length / self.df)

    def _log_beta(self) -> Tensor:
        """The logarithm of `B(df / 2, 1 / 2)`."""
        half = 0.5 * self.df
        return half.lgamma() + 0.5 * math.log(math.pi) - (half + 0.5).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        square = ((value - self.loc) / self.scale).pow(2.0)
        normalizer = self.scale.log() + 0.5 * self.df.log() + self._log_beta()
        return -0.5 * (self.df + 1.0) * ops.log1p(square / self.df) - normalizer

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        tails = (half + 0.5) * ((half + 0.5).digamma() - half.digamma())
        return self.scale.log() + tails + 0.5 * self.df.log() + self._log_beta()
