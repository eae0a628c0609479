"""Transforms of each number by itself."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.transforms.base import Plain, Transform
from flambeau.distributions.utils import _sum_rightmost, broadcast_all, finfo, softplus


class _Rising(Plain):
    """A bijection that rises."""

    bijective = True
    sign = +1  # type: ignore[assignment]
    domain = constraints.real


class ExpTransform(_Rising):
    """`y = exp(x)`."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SoftplusTransform(_Rising):
    """`y = log(1 + exp(x))`; large numbers stay as they are."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class SigmoidTransform(_Rising):
    """`y = 1 / (1 + exp(-x))`, kept off 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(x) - softplus(-x)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`, kept off 0 and 1."""
    return inside(ops.sigmoid(x))


def inside(share: Tensor) -> Tensor:
    """Numbers from 0 to 1, less the ends."""
    limits = finfo(share)
    return share.clamp(min=limits.tiny, max=1.0 - limits.eps)


class TanhTransform(_Rising):
    """`y = tanh(x)`; with a cache, the inverse is exact near 1."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log_tanh_slope(x)


def log_tanh_slope(x: Tensor) -> Tensor:
    """`log(1 - tanh(x) ** 2)`, exact where the tanh is 1."""
    return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Plain):
    """`y = abs(x)`; of the two inverses the positive one is meant."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """`y = loc + scale * x`; the last `event_dim` dims are one event."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return real_events(self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return real_events(self.event_dim)

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return _equal(self.loc, other.loc) and _equal(self.scale, other.scale)

    __hash__ = None  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            slope = self.scale.abs().log()
        else:
            slope = ops.full_like(x, math.log(abs(self.scale)))
        shape = x.shape[: x.dim() - self.event_dim]
        if self.event_dim:
            spread = slope.expand(x.shape) if slope.dim() < self.event_dim else slope
            slope = _sum_rightmost(spread, self.event_dim)
        return slope.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        return _with_parameters(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class PowerTransform(Transform):
    """`y = x ** exponent`, for positive numbers."""

    bijective = True
    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _equal(self.exponent, other.exponent)

    __hash__ = None  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return _with_parameters(shape, self.exponent)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """`y = distribution.cdf(x)`: numbers of that distribution become uniform ones."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1  # type: ignore[assignment]

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> constraints.Constraint | None:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


def real_events(event_dim: int) -> constraints.Constraint:
    """Real numbers, of which the last dims form one event."""
    return constraints.independent(constraints.real, event_dim) if event_dim else constraints.real


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return one == other
    return bool(ops.as_tensor(one == other).all())


def _with_parameters(shape: Any, *parameters: Any) -> Any:
    return ops.broadcast_shapes(shape, *[getattr(p, "shape", ()) for p in parameters])
