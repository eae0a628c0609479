"""The base of all distributions: shapes, validation, and what follows from other methods."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.utils import lazy_property

__all__ = ["Distribution"]

NO_DIMS = Size()
NO_CONSTRAINTS = (
    "{kind} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
    "the distribution with `validate_args=False` to turn off validation."
)
NO_SUPPORT = (
    "{kind} does not define `support` to enable sample validation. Please initialize the "
    "distribution with `validate_args=False` to turn off validation."
)
WITHOUT_EXPAND = (
    "Subclass {mine} of {base} that defines a custom __init__ method must also define a custom "
    ".expand() method."
)


class Distribution:
    """Probabilities of events of shape `event_shape`; a batch of distributions in one.

    A sample of shape `sample_shape` has the shape `sample_shape + batch_shape + event_shape`.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their parameters and values, unless they are told."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Size = NO_DIMS,
        event_shape: Size = NO_DIMS,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        for name, constraint in self._declared_constraints().items():
            # what is made of other parameters when it is first asked for holds, if they do
            made_later = name not in self.__dict__ and isinstance(
                self._of_class(name), lazy_property
            )
            if constraints.is_dependent(constraint) or made_later:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({_described(value)}) of distribution {self!r} "
                    f"to satisfy the constraint {constraint!r}, "
                    f"but found invalid values:\n{value}"
                )

    def _declared_constraints(self) -> dict[str, constraints.Constraint]:
        try:
            return self.arg_constraints
        except NotImplementedError:
            warnings.warn(NO_CONSTRAINTS.format(kind=type(self)), stacklevel=4)
            return {}

    def _of_class(self, name: str) -> Any:
        for kind in type(self).__mro__:
            if name in vars(kind):
                return vars(kind)[name]
        return None

    # ---- shapes

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with a larger batch; memory is shared."""
        raise NotImplementedError

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """The instance that `expand` fills; refuses subclasses that `cls` knows nothing of."""
        if _instance is not None:
            return _instance
        mine = type(self)
        if mine.__init__ is not cls.__init__:  # type: ignore[misc]
            text = WITHOUT_EXPAND.format(mine=mine.__name__, base=cls.__name__)
            raise NotImplementedError(text)
        return mine.__new__(mine)

    # ---- what a distribution declares

    @property
    def arg_constraints(self) -> Any:
        """For each parameter, the constraint that its values satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that every sample satisfies."""
        raise NotImplementedError

    # ---- what it computes

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The value of the highest density."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random values, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Random values that the parameters get gradients through."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """An older form of `sample((n,))`."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample that is not greater than a value."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The reverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dim."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return ops.exp(self.entropy())

    # ---- checks of values

    def _check_sample(self, value: Any) -> None:
        """`_validate_sample`, where arguments are to be checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Refuse a value of a wrong shape, or outside the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        self._check_shape(value)
        try:
            support = self.support
        except NotImplementedError:
            within = sys._getframe(1).f_code is Distribution._check_sample.__code__
            warnings.warn(NO_SUPPORT.format(kind=type(self)), stacklevel=4 if within else 3)
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({_described(value)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _check_shape(self, value: Tensor) -> None:
        event_start = value.dim() - len(self._event_shape)
        event = value.shape[event_start:]
        if event != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for have, want in zip(reversed(value.shape), reversed(expected), strict=False):
            if 1 not in (have, want) and have != want:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.shape} vs {expected}."
                )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = [f"{name}: {_shown(self.__dict__[name])}" for name in names]
        return f"{type(self).__name__}({', '.join(shown)})"


def _described(value: Tensor) -> str:
    return f"{type(value).__name__} of shape {tuple(value.shape)}"


def _shown(value: Any) -> Any:
    return value if value.numel() == 1 else value.size()
