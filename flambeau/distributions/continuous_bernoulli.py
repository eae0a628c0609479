"""The continuous Bernoulli distribution (Loaiza-Ganem and Cunningham, 2019)."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.parameters import ProbsOrLogits, logistic_loss
from flambeau.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers from 0 to 1 of density proportional to `probs**x * (1 - probs)**(1 - x)`.

    All formulas divide by zero where `probs` is a half; between `lims` their series stand in.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        given = self._check_one(probs, logits)
        (value,) = broadcast_all(logits if probs is None else probs)
        if given == "probs":
            # the parameter is moved off 0 and 1, after which its check would be in vain
            if validate_args and not constraints.unit_interval.check(value).all():
                raise ValueError("The parameter probs has invalid values")
            value = clamp_probs(value)
        self._lims = lims
        self._hold(validate_args, **{given: value})

    @lazy_property
    def probs(self) -> Tensor:
        """The weight of 1 against that of 0."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _cut_probs(self) -> Tensor:
        """The probabilities, those near a half moved to where the formulas hold."""
        return ops.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _either(self, formula: Tensor, series: Tensor) -> Tensor:
        return ops.where(self._outside_unstable_region(), formula, series)

    def _cont_bern_log_norm(self) -> Tensor:
        probs = self._cut_probs()
        log_ratio = ops.log((ops.log1p(-probs) - ops.log(probs)).abs())
        formula = log_ratio - ops.log((1.0 - 2.0 * probs).abs())
        square = (self.probs - 0.5).pow(2)
        return self._either(formula, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square)

    @property
    def mean(self) -> Tensor:
        probs = self._cut_probs()
        formula = probs / (2.0 * probs - 1.0) + 1.0 / (ops.log1p(-probs) - ops.log(probs))
        x = self.probs - 0.5
        return self._either(formula, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        probs = self._cut_probs()
        spread = probs * (probs - 1.0) / (1.0 - 2.0 * probs).pow(2)
        formula = spread + (ops.log1p(-probs) - ops.log(probs)).pow(-2)
        square = (self.probs - 0.5).pow(2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square
        return self._either(formula, series)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._cont_bern_log_norm() - logistic_loss(self.logits, value)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        probs = self._cut_probs()
        weight = probs.pow(value) * (1.0 - probs).pow(1.0 - value)
        inside = self._either((weight + probs - 1.0) / (2.0 * probs - 1.0), value)
        inside = ops.where(value <= 0.0, 0.0, inside)
        return ops.where(value >= 1.0, 1.0, inside)

    def icdf(self, value: Tensor) -> Tensor:
        probs = self._cut_probs()
        rise = ops.log1p(value * (2.0 * probs - 1.0) - probs) - ops.log1p(-probs)
        return self._either(rise / (ops.log(probs) - ops.log1p(-probs)), value)

    def entropy(self) -> Tensor:
        log_zero, log_one = ops.log1p(-self.probs), ops.log(self.probs)
        return self.mean * (log_zero - log_one) - self._cont_bern_log_norm() - log_zero

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        low, high = (limit - 0.5 for limit in self._lims)
        stable = (x <= low) | (x > high)
        cut = ops.where(stable, x, low)
        formula = ops.log(ops.expm1(cut).abs()) - ops.log(cut.abs())
        series = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return ops.where(stable, formula, series)
