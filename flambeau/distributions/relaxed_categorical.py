"""Relaxed one-hot vectors (Maddison, Mnih and Teh, 2017; Jang, Gu and Poole, 2017)."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.one_hot_categorical import OfCategorical
from flambeau.distributions.relaxed_bernoulli import OfRelaxed
from flambeau.distributions.transforms import ExpTransform
from flambeau.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OfCategorical):
    """The logarithms of relaxed one-hot vectors: Gumbel noise around the logits."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # their exponentials sum to 1, which is not said here
    support = constraints.real_vector
    has_rsample = True
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._like_categorical(Categorical(probs, logits), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape, logits = self._extended_shape(sample_shape), self.logits
        noise = clamp_probs(ops.rand(shape, dtype=logits.dtype, device=logits.device))
        scores = (logits - (-noise.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        size = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = ops.full_like(self.temperature, float(size)).lgamma()
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + scale + (size - 1) * self.temperature.log()


class RelaxedOneHotCategorical(OfRelaxed):
    """Shares that sum to 1, the nearer to one-hot vectors the lower the temperature."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
