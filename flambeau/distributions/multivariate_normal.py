"""The normal distribution of vectors."""

from __future__ import annotations

from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.gaussian import (
    EXACTLY_ONE,
    Gaussian,
    identity_like,
    log_diagonal,
    matrix_times,
    precision_to_tril,
    squared_distance,
    tril_of,
)
from flambeau.distributions.parameters import Parametrised
from flambeau.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]

_precision_to_scale_tril = precision_to_tril  # the name by which libraries import it


class OfOneMatrix(Parametrised):
    """A distribution with a covariance, a precision, or a Cholesky factor of the covariance.

    One is given; the others are made when they are asked for.
    """

    _unbroadcasted_scale_tril: Tensor
    _batch_shape: Size
    _event_shape: Size

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The covariance's Cholesky factor."""
        return self._to_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._to_batch(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._to_batch(ops.cholesky_solve(identity_like(factor), factor))

    def _to_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))


class MultivariateNormal(OfOneMatrix, Gaussian):
    """Vectors of mean `loc`, and one of three matrices."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = _given(covariance_matrix, precision_matrix, scale_tril)
        if len(given) != 1:
            raise ValueError(EXACTLY_ONE)
        name, matrix = next(iter(given.items()))
        if matrix.dim() < 2:
            title = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{title} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = ops.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        self.loc = loc.expand(batch + (-1,))
        Distribution.__init__(self, batch, loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = tril_of(given)

    @property
    def variance(self) -> Tensor:
        rows = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return rows.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + matrix_times(self._unbroadcasted_scale_tril, noise)

    def _half_log_det(self) -> Tensor:
        return log_diagonal(self._unbroadcasted_scale_tril)

    def _squared_distance(self, x: Tensor) -> Tensor:
        return squared_distance(self._unbroadcasted_scale_tril, x)

    def _root(self) -> Tensor:
        return self._unbroadcasted_scale_tril


def _given(covariance: Any, precision: Any, tril: Any) -> dict[str, Any]:
    """The matrices that were given, by name."""
    all_three = {
        "covariance_matrix": covariance,
        "precision_matrix": precision,
        "scale_tril": tril,
    }
    return {name: matrix for name, matrix in all_three.items() if matrix is not None}
