"""Transforms into triangular and positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transforms.base import FEW_DIMS, Plain, Transform
from flambeau.distributions.transforms.numbers import log_tanh_slope, real_events
from flambeau.distributions.utils import finfo, tril_matrix_to_vec, vec_to_tril_matrix


class LowerCholeskyTransform(Plain):
    """Matrices into triangular ones, with the exponential of the diagonal."""

    domain = real_events(2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Plain):
    """Matrices into positive definite ones, by way of their Cholesky factor."""

    domain = real_events(2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(ops.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors into Cholesky factors of matrices of correlation.

    The tanh of the numbers are canonical partial correlations, and each row breaks its squared
    length of 1 into shares by them (Lewandowski, Kurowicka and Joe, 2009).
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial * partial).sqrt().cumprod(-1)
        ones = ops.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return (partial + ones) * _shifted(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = _shifted(1 - (y * y).cumsum(-1))
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        return 0.5 * left.log().sum(-1) + log_tanh_slope(x).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(FEW_DIMS)
        size = round(0.5 + math.sqrt(0.25 + 2 * shape[-1]))
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(FEW_DIMS)
        if shape[-1] != shape[-2]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _shifted(left: Tensor) -> Tensor:
    """What was left before each step: 1 before the first."""
    return ops.cat([ops.ones_like(left[..., :1]), left[..., :-1]], -1)
