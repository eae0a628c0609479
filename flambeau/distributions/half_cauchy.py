"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.half_normal import Folded

__all__ = ["HalfCauchy"]


class HalfCauchy(Folded):
    """The absolute value of a Cauchy number around 0."""

    arg_constraints = {"scale": constraints.positive}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._fold(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        shape = self._extended_shape()
        return ops.full(shape, math.inf, dtype=self.scale.dtype, device=self.scale.device)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value = ops.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return self._doubled(value)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
