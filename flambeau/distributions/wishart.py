"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.conversion import tensor
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.gaussian import EXACTLY_ONE, log_diagonal, tril_of
from flambeau.distributions.multivariate_normal import OfOneMatrix, _given

__all__ = ["Wishart"]

TRIES = 10
LOW = (
    "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim."
)


class Wishart(OfOneMatrix, ExponentialFamily):
    """The sum of `df` squares `x @ x.T` of normal vectors of mean 0."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _expanded = ("df",)

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = _given(covariance_matrix, precision_matrix, scale_tril)
        if len(given) != 1:
            raise AssertionError(EXACTLY_ONE)
        name, matrix = next(iter(given.items()))
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, Number):
            df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = ops.broadcast_shapes(matrix.shape[:-2], df.shape)
        event = matrix.shape[-2:]
        _check_df(df, event[-1])
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        self._set_shapes(batch, event, validate_args)
        self._unbroadcasted_scale_tril = tril_of(given)

    def _set_shapes(self, batch: Size, event: Size, validate_args: bool | None) -> None:
        self._batch_shape, self._event_shape = batch, event  # arg_constraints asks for them
        Distribution.__init__(self, batch, event, validate_args=validate_args)
        if self.df.lt(event[-1]).any():
            warnings.warn(LOW, stacklevel=4)
        self._follow_df()

    def _follow_df(self) -> None:
        size = self._event_shape[-1]
        below = ops.arange(size, dtype=self.df.dtype, device=self.df.device)
        self._batch_dims = [-(dim + 1) for dim in range(len(self._batch_shape))]
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - below)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        shape = batch_shape + self._event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        super()._expand_into(new, batch_shape)
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        new._follow_df()

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def _per_matrix(self, value: Tensor) -> Tensor:
        return value.reshape((*value.shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._per_matrix(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return self._per_matrix(factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._per_matrix(self.df) * (covariance.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Tensor:
        """A triangle of chi and normal numbers is the root of a sample (Bartlett, 1933)."""
        size = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        rows, columns = ops.tril_indices(size, size, -1, device=noise.device)
        shape = (*sample_shape, *self._batch_shape, size * (size - 1) // 2)
        noise[..., rows, columns] = ops.randn(shape, dtype=noise.dtype, device=noise.device)
        root = self._unbroadcasted_scale_tril @ noise
        return root @ root.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Samples; singular ones are drawn again, up to `max_try_correction` times.

        At first torch draws those again, with a warning, that are not singular. The same numbers
        from the same seed need the same detour.
        """
        sample = self._bartlett_sampling(Size(sample_shape))
        again = self._any_of_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(TRIES if max_try_correction is None else max_try_correction):
            if not again.any():
                break
            fresh = self._bartlett_sampling(again[again].shape)
            sample[again] = fresh
            # another mask: the one before is needed for the gradient
            again = again.masked_scatter(again, self._any_of_batch(~self.support.check(fresh)))
        return sample

    def _any_of_batch(self, found: Tensor) -> Tensor:
        return found.amax(self._batch_dims) if self._batch_dims else found

    def _log_det(self) -> Tensor:
        """Half the logarithm of the determinant of twice the covariance."""
        half_log_two = 0.5 * self._event_shape[-1] * math.log(2)
        return log_diagonal(self._unbroadcasted_scale_tril) + half_log_two

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        size = self._event_shape[-1]
        scaled = ops.cholesky_solve(value, self._unbroadcasted_scale_tril)
        kernel = 0.5 * (self.df - size - 1) * ops.linalg.slogdet(value).logabsdet
        kernel = kernel - 0.5 * scaled.diagonal(dim1=-2, dim2=-1).sum(-1)
        return kernel - self.df * self._log_det() - ops.mvlgamma(0.5 * self.df, size)

    def entropy(self) -> Tensor:
        size, half = self._event_shape[-1], 0.5 * self.df
        steps = 0.5 * ops.arange(size, dtype=half.dtype, device=half.device)
        digammas = (half.unsqueeze(-1) - steps).digamma().sum(-1)
        rest = half * size - 0.5 * (self.df - size - 1) * digammas
        return (size + 1) * self._log_det() + ops.mvlgamma(half, size) + rest

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[-1] - 1)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        log_det = size * math.log(2) - ops.linalg.slogdet(-2 * x).logabsdet
        return half * log_det + ops.mvlgamma(half, size)


def _check_df(df: Tensor, size: int) -> None:
    if df.le(size - 1).any():
        raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
