"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.function import Function, once_differentiable
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.parameters import Parametrised

__all__ = ["Dirichlet"]


class _Dirichlet(Function):
    """Shares that are drawn, and their implicit derivative by the concentration.

    A share follows its own concentration as a beta number does; what it gains, all lose in
    proportion to what they have (Figurnov, Mohamed and Mnih, 2018).
    """

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:  # type: ignore[override]
        shares = ops._sample_dirichlet(concentration)
        ctx.save_for_backward(shares, concentration)
        return shares

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        shares, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        gain = ops._dirichlet_grad(shares, concentration, total)
        return gain * (grad - (shares * grad).sum(-1, True))


class Dirichlet(Parametrised, ExponentialFamily):
    """Shares that sum to 1 along the last dim."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # without a peak inside the density has its highest values in the corners
        best = ops.nn.functional.one_hot(mode.argmax(-1), mode.shape[-1]).to(mode)
        corners = (self.concentration < 1).all(-1, True)
        return ops.where(corners, best, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        rest = total - self.concentration
        return self.concentration * rest / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        kernel = ops.xlogy(self.concentration - 1.0, value).sum(-1)
        return kernel - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        total = self.concentration.sum(-1)
        missing = self.concentration.shape[-1] - total
        logarithms = ((self.concentration - 1.0) * self.concentration.digamma()).sum(-1)
        normalizer = self._log_normalizer(self.concentration)
        return normalizer - missing * total.digamma() - logarithms

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
