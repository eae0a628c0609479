"""Distributions that are told by parameters: how they hold them, and how they are expanded."""

from __future__ import annotations

from typing import Any

from flambeau._core.class_homes import own_module
from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

NOT_BOTH = "Either `probs` or `logits` must be specified, but not both."


class Parametrised(Distribution):
    """A distribution with tensors as parameters, which all have its batch shape in front."""

    _expanded: tuple[str, ...] = ()
    """Further attributes of the batch's shape, beside the parameters: tensors, distributions."""
    _kept: tuple[str, ...] = ()
    """Attributes that an expanded distribution has unchanged."""

    def _hold(self, validate_args: bool | None, **parameters: Any) -> None:
        """Keep parameters of single numbers, broadcast against each other."""
        shape = self._broadcast(**parameters)
        Distribution.__init__(self, shape, validate_args=validate_args)

    def _broadcast(self, **parameters: Any) -> Size:
        """Keep parameters, not checked yet; returns their common shape."""
        values = broadcast_all(*parameters.values())
        for name, value in zip(parameters, values, strict=True):
            setattr(self, name, value)
        return values[0].shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(_home(type(self)), _instance)
        batch_shape = Size(batch_shape)
        self._expand_into(new, batch_shape)
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        new._validate_args = self._validate_args  # what holds stays true
        return new

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        for name in (*self._expanded, *self.arg_constraints):
            if name in self.__dict__:
                setattr(new, name, self._wider(self.__dict__[name], batch_shape))
        for name in self._kept:
            setattr(new, name, getattr(self, name))

    def _wider(self, value: Any, batch_shape: Size) -> Any:
        if isinstance(value, Distribution):
            return value.expand(batch_shape)
        return value.expand(batch_shape + value.shape[len(self._batch_shape) :])


class AroundLoc(Parametrised):
    """A distribution that is symmetric around `loc`."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


def _home(kind: type) -> type:
    """The class of this package that a class of a user is made of, or the class itself."""
    return next(base for base in kind.__mro__ if own_module(base).startswith(f"{__package__}."))


class ProbsOrLogits(Parametrised):
    """A distribution that is told by probabilities, or by their logits; each gives the other."""

    _binary = True

    def _check_one(self, probs: Any, logits: Any) -> str:
        """The one that was given."""
        if (probs is None) == (logits is None):
            raise ValueError(NOT_BOTH)
        return "logits" if probs is None else "probs"

    def _hold_with_count(self, total_count: Any, probs: Any, logits: Any,
                         validate_args: bool | None) -> None:  # fmt: skip
        """Hold a number of trials beside the chance of each."""
        given = self._check_one(probs, logits)
        chance = logits if probs is None else probs
        total_count, chance = broadcast_all(total_count, chance)
        self._hold(validate_args, total_count=total_count.type_as(chance), **{given: chance})

    @lazy_property
    def logits(self) -> Tensor:
        """Log-odds, or logarithms, of the probabilities."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._param.shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new_empty(*args, **kwargs)


def logistic_loss(logits: Tensor, target: Tensor) -> Tensor:
    """The cross-entropy of a probability given by its log-odds."""
    logits, target = ops.broadcast_tensors(logits, target)
    return ops.binary_cross_entropy_with_logits(logits, target)


def values_along_first(values: Tensor, batch_shape: Size, expand: bool) -> Tensor:
    """Values of a support, in a dim in front of the batch's."""
    values = values.reshape((-1, *(1 for _ in batch_shape)))
    return values.expand((-1, *batch_shape)) if expand else values
