"""The categorical distribution, as one-hot vectors."""

from __future__ import annotations

from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import Parametrised

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OfCategorical(Parametrised):
    """A distribution over the indices of a categorical one."""

    _categorical: Categorical
    _expanded = ("_categorical",)

    def _like_categorical(self, one: Categorical, validate_args: bool | None) -> None:
        self._categorical = one
        event = one.param_shape[-1:]
        Distribution.__init__(self, one.batch_shape, event, validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The probabilities of the indices."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape


class OneHotCategorical(OfCategorical):
    """A vector with 1 at the index of a categorical distribution, and else 0."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._like_categorical(Categorical(probs, logits), validate_args)

    @property
    def mean(self) -> Tensor:
        return self._categorical.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return ops.nn.functional.one_hot(index, self._categorical._num_events).to(self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(Size(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        size = self._event_shape[0]
        like = self._param
        values = ops.eye(size, dtype=like.dtype, device=like.device)
        values = values.reshape((size, *(1 for _ in self._batch_shape), size))
        return values.expand((size, *self._batch_shape, size)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, with the gradient of the probabilities (Bengio, Leonard and Courville, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        probs = self._categorical.probs  # with its history
        return self.sample(sample_shape) + (probs - probs.detach())
