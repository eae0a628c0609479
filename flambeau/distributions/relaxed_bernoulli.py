"""Relaxed Bernoulli numbers (Maddison, Mnih and Teh, 2017; Jang, Gu and Poole, 2017)."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.parameters import ProbsOrLogits
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import SigmoidTransform
from flambeau.distributions.utils import broadcast_all, clamp_probs, softplus

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The logits of relaxed Bernoulli numbers: logistic noise around those of `probs`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        given = self._check_one(probs, logits)
        self._hold(validate_args, **{given: logits if probs is None else probs})

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        noise = clamp_probs(ops.rand(shape, dtype=probs.dtype, device=probs.device))
        odds = noise.log() - (-noise).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return self._log_density(logits - value.mul(self.temperature))

    def _log_density(self, odds: Tensor) -> Tensor:
        """A logistic one, at the log-odds that noise had."""
        return self.temperature.log() + odds - 2 * softplus(odds)


class OfRelaxed(TransformedDistribution):
    """A relaxed distribution, which a transform brings between 0 and 1."""

    has_rsample = True  # type: ignore[assignment]

    @property
    def temperature(self) -> Tensor:
        """How soft the choice is; 0 is a hard one."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logits of the hard choice."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the hard choice."""
        return self.base_dist.probs


class RelaxedBernoulli(OfRelaxed):
    """Numbers between 0 and 1, the nearer to the ends the lower the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
