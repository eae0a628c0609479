"""Transforms of vectors into probabilities that sum to 1."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transforms.base import FEW_DIMS, Plain
from flambeau.distributions.transforms.numbers import inside
from flambeau.distributions.utils import finfo, softplus


class SoftmaxTransform(Plain):
    """`y = exp(x)`, divided by the sum. Not one to one; meant for parameters."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return ops.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(FEW_DIMS)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Plain):
    """Each number breaks a share off what is left of a stick (Stan's reference manual).

    One to one: `n` real numbers give `n + 1` shares, and zeros give equal ones.
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        share = inside(ops.sigmoid(x - _log_pieces_left(x)))
        left = (1 - share).cumprod(-1)
        one = ops.ones_like(x[..., :1])
        return ops.cat([share, one], -1) * ops.cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        broken = y[..., :-1]
        left = (1 - broken.cumsum(-1)).clamp(min=finfo(y).tiny)
        return broken.log() - left.log() + _log_pieces_left(broken)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_odds = x - _log_pieces_left(x)
        # log sigmoid(z) - z is -softplus(z)
        return (y[..., :-1].log() - softplus(log_odds)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _last_changed(shape, +1)

    def inverse_shape(self, shape: Any) -> Any:
        return _last_changed(shape, -1)


def _log_pieces_left(x: Tensor) -> Tensor:
    """For each break, the logarithm of how many pieces the rest will have."""
    return ops.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()


def _last_changed(shape: Any, by: int) -> Any:
    if len(shape) < 1:
        raise ValueError(FEW_DIMS)
    return (*shape[:-1], shape[-1] + by)
