"""Exponential families: `exp(<natural parameters, statistics> - log-normalizer + carrier)`."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.backward import grad
from flambeau.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution that can tell its natural parameters and its log-normalizer.

    The gradient of the log-normalizer is the mean of the statistics, from which entropies and
    divergences follow (Nielsen and Nock, 2010).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        carrier = self._mean_carrier_measure
        natural = [parameter.detach().requires_grad_() for parameter in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        statistics = grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - carrier
        for parameter, mean in zip(natural, statistics, strict=True):
            result = result - (parameter * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return result
