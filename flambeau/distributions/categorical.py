"""The categorical distribution."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import ProbsOrLogits, values_along_first
from flambeau.distributions.utils import finfo

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """An index, with probabilities (or logits) in the last dim; they need not be normalised.

    probs: numbers of 0 and more, of shape (..., K).
    logits: their logarithms, up to a constant, instead of `probs`.

    Samples are int64 from 0 to K - 1, of shape sample_shape + (...,).

    >>> import flambeau as torch
    >>> drawn = torch.distributions.Categorical(torch.tensor([1.0, 1.0, 2.0]))
    >>> drawn.probs
    tensor([0.2500, 0.2500, 0.5000])
    >>> drawn.sample((4,)).shape, drawn.log_prob(torch.tensor(2)).exp()
    (torch.Size([4]), tensor(0.5000))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False
    _kept = ("_num_events",)

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._check_one(probs, logits)
        value = logits if probs is None else probs
        if value.dim() < 1:
            raise ValueError(f"`{given}` parameter must be at least one-dimensional.")
        if given == "probs":
            self.probs = value / value.sum(-1, keepdim=True)
        else:
            self.logits = value - value.logsumexp(dim=-1, keepdim=True)
        self._num_events = value.shape[-1]
        Distribution.__init__(self, value.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self._undefined()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self._undefined()

    def _undefined(self) -> Tensor:
        shape = self._extended_shape()
        return ops.full(shape, float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = ops.multinomial(rows, sample_shape.numel(), True)
        return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        index, logits = ops.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        log_probs = self.logits.clamp(min=finfo(self.logits).min)
        return -(log_probs * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = ops.arange(self._num_events, dtype=dt.int64, device=self._param.device)
        return values_along_first(values, self._batch_shape, expand)
