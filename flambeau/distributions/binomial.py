"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.parameters import ProbsOrLogits, values_along_first
from flambeau.distributions.utils import softplus

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits):
    """Successes in `total_count` trials of probability `probs` each."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._hold_with_count(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        total = self.total_count
        arrangements = (total + 1).lgamma() - (value + 1).lgamma() - (total - value + 1).lgamma()
        return arrangements + value * self.logits - total * softplus(self.logits)

    def entropy(self) -> Tensor:
        self._one_total("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total = self._one_total("enumerate_support")
        values = ops.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        return values_along_first(values, self._batch_shape, expand)

    def _one_total(self, name: str) -> int:
        most = self.total_count.max()
        if not self.total_count.min() == most:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{name}`.")
        return int(most)
