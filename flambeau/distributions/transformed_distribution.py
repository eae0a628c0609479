"""The distribution of what transforms make of samples."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau._core.layout import Size
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.independent import Independent
from flambeau.distributions.parameters import Parametrised
from flambeau.distributions.transforms import ComposeTransform, Transform
from flambeau.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Parametrised):
    """Samples of a base distribution, sent through transforms one after another."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    _kept: tuple[str, ...] = ("transforms",)

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = _as_list(transforms)
        whole = ComposeTransform(self.transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{whole.domain.event_dim}, but got {shape}."
            )
        result = whole.forward_shape(shape)
        self.base_dist = _wide_enough(base_distribution, whole.inverse_shape(result), whole)
        grown = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, len(self.base_dist.event_shape) + grown)
        start = len(result) - event_dim
        super().__init__(Size(result[:start]), Size(result[start:]), validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        super()._expand_into(new, batch_shape)
        shape = batch_shape + self._event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(
            Size(shape[: len(shape) - len(self.base_dist.event_shape)])
        )

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        missing = len(self._event_shape) - last.event_dim
        return constraints.independent(last, missing) if missing > 0 else last

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def _traced_back(self, y: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        event_dim = len(self.event_shape)
        volume: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(before, value)
            volume = volume + _sum_rightmost(slope, event_dim - transform.domain.event_dim)
            value = before
        density = self.base_dist.log_prob(value)
        return _sum_rightmost(density, event_dim - len(self.base_dist.event_shape)) - volume

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """A probability, or its complement if the transforms fall."""
        sign = prod(transform.sign for transform in self.transforms)
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        origin = self._traced_back(value)
        if self._validate_args:
            self.base_dist._validate_sample(origin)
        return self._monotonize_cdf(self.base_dist.cdf(origin))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))


def _as_list(transforms: Any) -> list[Transform]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(transform, Transform) for transform in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms


def _wide_enough(base: Distribution, shape: Any, whole: Transform) -> Distribution:
    """The base with the shape that the transforms broadcast it to, and with their events."""
    if base.batch_shape + base.event_shape != shape:
        base = base.expand(Size(shape[: len(shape) - len(base.event_shape)]))
    more = whole.domain.event_dim - len(base.event_shape)
    return Independent(base, more) if more > 0 else base
