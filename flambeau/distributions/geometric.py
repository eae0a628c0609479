"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.parameters import ProbsOrLogits, logistic_loss
from flambeau.distributions.utils import finfo

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """Failures before the first success, in trials of probability `probs`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._check_one(probs, logits)
        self._hold(validate_args, **{given: logits if probs is None else probs})
        if self._validate_args and given == "probs" and not (self.probs > 0).all():
            shape, invalid = tuple(self.probs.shape), self.probs[~(self.probs > 0)]
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {shape}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{invalid}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            noise = self.probs.new_empty(shape).uniform_(finfo(self.probs).tiny, 1)
            return (noise.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, probs = ops.broadcast_tensors(value, self.probs)
        # no failure of trials that can't fail: 0 * log(0) is to be 0
        failing = ops.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return logistic_loss(self.logits, self.probs) / self.probs
