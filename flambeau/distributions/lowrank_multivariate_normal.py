"""Normal distributions of vectors with a covariance of few factors and a diagonal."""

from __future__ import annotations

from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.gaussian import (
    Gaussian,
    identity_like,
    log_diagonal,
    matrix_times,
    squared_distance,
)
from flambeau.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Gaussian):
    """The covariance is `cov_factor @ cov_factor.mT + diag(cov_diag)`.

    The small matrix `I + W.T @ inverse(D) @ W`, called the capacitance, stands for the covariance
    by Woodbury's identity and by the lemma on determinants.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        _check(loc, cov_factor, cov_diag)
        batch = _common_batch(loc, cov_factor, cov_diag)
        self.loc = loc.expand(batch + (-1,))
        self.cov_factor = cov_factor.expand(batch + (-1, -1))
        self.cov_diag = cov_diag.expand(batch + (-1,))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        small = self._weighted() @ cov_factor
        self._capacitance_tril = ops.linalg.cholesky(small + identity_like(small))
        Distribution.__init__(self, batch, loc.shape[-1:], validate_args=validate_args)

    def _weighted(self) -> Tensor:
        """`W.T @ inverse(D)`."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _wide(self, value: Tensor, dims: int) -> Tensor:
        return value.expand((*self._batch_shape, *value.shape[value.dim() - dims :]))

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The variances of the numbers of a vector."""
        factors = self._unbroadcasted_cov_factor.pow(2).sum(-1)
        return self._wide(factors + self._unbroadcasted_cov_diag, 1)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The covariance's Cholesky factor, by way of that with a diagonal of ones."""
        deviation = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / deviation
        square = scaled @ scaled.mT
        return self._wide(deviation * ops.linalg.cholesky(square + identity_like(square)), 2)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._wide(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed(), 2)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        part = ops.linalg.solve_triangular(self._capacitance_tril, self._weighted(), upper=False)
        diagonal = self._unbroadcasted_cov_diag.reciprocal().diag_embed()
        return self._wide(diagonal - part.mT @ part, 2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        few = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **options)
        many = _standard_normal(shape, **options)
        common = matrix_times(self._unbroadcasted_cov_factor, few)
        return self.loc + common + self._unbroadcasted_cov_diag.sqrt() * many

    def _half_log_det(self) -> Tensor:
        diagonal = self._unbroadcasted_cov_diag.log().sum(-1)
        return log_diagonal(self._capacitance_tril) + 0.5 * diagonal

    def _squared_distance(self, x: Tensor) -> Tensor:
        own = (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1)
        return own - squared_distance(self._capacitance_tril, matrix_times(self._weighted(), x))

    def _root(self) -> Tensor:
        factor = self._unbroadcasted_cov_factor
        diagonal = self._unbroadcasted_cov_diag.sqrt().diag_embed()
        batch = ops.broadcast_shapes(factor.shape[:-2], diagonal.shape[:-2])
        return ops.cat([factor.expand(batch + (-1, -1)), diagonal.expand(batch + (-1, -1))], -1)


def _check(loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> None:
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    event = loc.shape[-1:]
    if cov_factor.dim() < 2:
        raise ValueError(
            "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
        )
    if cov_factor.shape[-2:-1] != event:
        raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
    if cov_diag.shape[-1:] != event:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")


def _common_batch(loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> Size:
    try:
        return ops.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
    except RuntimeError as error:
        raise ValueError(
            f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
            f"cov_diag {cov_diag.shape}"
        ) from error
