"""Fisher's and Snedecor's distribution."""

from __future__ import annotations

import math
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.parameters import Parametrised
from flambeau.distributions.utils import finfo

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Parametrised):
    """The ratio of two chi-squared numbers, each divided by its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _expanded = ("_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        shape = self._broadcast(df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        Distribution.__init__(self, shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = self._where_finite(2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        peak = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return peak.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, self._where_finite(4)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def _where_finite(self, limit: int) -> Tensor:
        """The second degrees of freedom; NaN where there are too few for a moment."""
        return self.df2.masked_fill(self.df2 <= limit, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        tiny = finfo(below).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = half1.lgamma() + half2.lgamma() - (half1 + half2).lgamma()
        kernel = half1 * ratio.log() + (half1 - 1) * value.log()
        return kernel - (half1 + half2) * (ratio * value).log1p() - log_beta
