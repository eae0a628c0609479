"""What normal distributions of vectors share, however they hold their covariance."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions.parameters import AroundLoc

EXACTLY_ONE = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."


class Gaussian(AroundLoc):
    """A normal distribution of vectors, by three questions about its covariance."""

    has_rsample = True
    loc: Tensor

    def _half_log_det(self) -> Tensor:
        """Half the logarithm of the covariance's determinant."""
        raise NotImplementedError

    def _squared_distance(self, x: Tensor) -> Tensor:
        """Mahalanobis' distance of vectors from 0, squared: `x @ inverse(covariance) @ x`."""
        raise NotImplementedError

    def _root(self) -> Tensor:
        """A matrix `A` with `A @ A.mT` the covariance."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        square = self._squared_distance(value - self.loc)
        size = self._event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + square) - self._half_log_det()

    def entropy(self) -> Tensor:
        size = self._event_shape[0]
        entropy = 0.5 * size * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy


def kl_of_gaussians(p: Gaussian, q: Gaussian) -> Tensor:
    """The divergence of normal distributions of vectors of one size (Kullback, 1959)."""
    trace = _squared_distances(q, p._root(), len(q.batch_shape)).sum(0)
    distance = q._squared_distance(q.loc - p.loc)
    half_logs = q._half_log_det() - p._half_log_det()
    return half_logs + 0.5 * (trace + distance - p.event_shape[0])


def _squared_distances(q: Gaussian, matrix: Tensor, batch_dims: int) -> Tensor:
    """Those of a matrix's columns, which come in a dim in front of the batch's."""
    missing = batch_dims + 2 - matrix.dim()
    matrix = matrix.reshape((*(1 for _ in range(missing)), *matrix.shape))
    return q._squared_distance(matrix.movedim(-1, 0))


def matrix_times(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of matrices and vectors, both with batches."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def squared_distance(tril: Tensor, x: Tensor) -> Tensor:
    """`x @ inverse(tril @ tril.mT) @ x`; one matrix serves all vectors in one solution."""
    if tril.dim() == 2:
        flat = x.reshape(-1, x.shape[-1])
        solved = ops.linalg.solve_triangular(tril, flat.mT, upper=False)
        return solved.pow(2).sum(-2).reshape(x.shape[:-1])
    solved = ops.linalg.solve_triangular(tril, x.unsqueeze(-1), upper=False)
    return solved.pow(2).sum((-2, -1))


def log_diagonal(tril: Tensor) -> Tensor:
    """The logarithm of a triangular matrix's determinant."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def identity_like(matrix: Tensor) -> Tensor:
    """The identity of a square matrix's size and type."""
    return ops.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def precision_to_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the covariance: the precision's, taken from its last corner."""
    factor = ops.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    return ops.linalg.solve_triangular(factor, identity_like(precision), upper=False)


def tril_of(given: dict[str, Any]) -> Tensor:
    """The factor of the covariance of the one matrix that was given."""
    name, matrix = next(iter(given.items()))
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return ops.linalg.cholesky(matrix)
    return precision_to_tril(matrix)
