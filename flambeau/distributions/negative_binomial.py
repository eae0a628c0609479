"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.parameters import ProbsOrLogits
from flambeau.distributions.utils import lazy_property, softplus

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """Successes of probability `probs` before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._hold_with_count(total_count, probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / ops.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        """The rates of a Poisson distribution, of which this one is the mixture."""
        return Gamma(self.total_count, ops.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return ops.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        total = self.total_count
        kernel = -total * softplus(self.logits) - value * softplus(-self.logits)
        trials = total + value
        arrangements = trials.lgamma() - (1.0 + value).lgamma() - total.lgamma()
        # no trials can be arranged in one way, though the formula has infinities
        return kernel + arrangements.masked_fill(trials == 0.0, 0.0)
