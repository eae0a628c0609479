"""Divergences that follow from structure: exponential families, transforms, independent batches."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.backward import grad
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.independent import Independent
from flambeau.distributions.kl.registry import kl_divergence, register_kl
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.utils import _sum_rightmost

ACROSS_FAMILIES = (
    "The cross KL-divergence between different exponential families cannot be computed using "
    "Bregman divergences"
)


@register_kl(ExponentialFamily, ExponentialFamily)
def _expfamily(p: Any, q: Any) -> Tensor:
    """A Bregman divergence of the log-normalizer (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(ACROSS_FAMILIES)
    start = [parameter.detach().requires_grad_() for parameter in p._natural_params]
    normalizer = p._log_normalizer(*start)
    slopes = grad(normalizer.sum(), start, create_graph=True)
    end = q._natural_params
    result = q._log_normalizer(*end) - normalizer
    for before, after, slope in zip(start, end, slopes, strict=True):
        result = result - _sum_rightmost((after - before) * slope, len(q.event_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    """The same transforms change nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
