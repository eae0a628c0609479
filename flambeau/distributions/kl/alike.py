"""Pairs of one class; most formulas are those of Gil, Alajaji and Linder (2013)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.dirichlet import Dirichlet
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.gaussian import kl_of_gaussians
from flambeau.distributions.geometric import Geometric
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.half_normal import HalfNormal
from flambeau.distributions.kl.registry import kl_divergence, register_kl
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from flambeau.distributions.multivariate_normal import MultivariateNormal
from flambeau.distributions.normal import Normal
from flambeau.distributions.one_hot_categorical import OneHotCategorical
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import euler_constant, softplus


def _same(kind: type) -> Callable[[Any], Any]:
    return register_kl(kind, kind)


def _weighted(chance: Tensor, other: Tensor, log_ratio: Tensor) -> Tensor:
    """`chance * log_ratio`: 0 for what never comes, infinite if the other excludes it."""
    term = (chance * log_ratio).masked_fill(other == 0, math.inf)
    return term.masked_fill(chance == 0, 0)


@_same(Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = softplus(-q.logits) - softplus(-p.logits)
    zeros = softplus(q.logits) - softplus(p.logits)
    return _weighted(p.probs, q.probs, ones) + _weighted(1 - p.probs, 1 - q.probs, zeros)


@_same(Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    return _weighted(p.probs, q.probs, p.logits - q.logits).sum(-1)


@_same(OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@_same(Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * one).masked_fill(p.total_count > q.total_count, math.inf)


@_same(Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - ops.log1p(-q.probs) / p.probs - q.logits


@_same(Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@_same(Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return kl_divergence(p._dirichlet, q._dirichlet)


@_same(Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    logs = a.digamma() - a.sum(-1, True).digamma()  # the means of the logarithms
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * logs).sum(-1)


@_same(ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    own = p._cont_bern_log_norm() + ops.log1p(-p.probs)
    other = q._cont_bern_log_norm() + ops.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + own - other


@_same(Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@_same(HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@_same(Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - 1 - ratio.log()


@_same(Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    """Chyzak and Nielsen, 2019."""
    square = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return square.log() - (4 * p.scale * q.scale).log()


@_same(Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = ((ratio + 1).lgamma() - distance).exp()
    return distance - ratio.log() + tail + euler_constant * (ratio - 1) - 1


@_same(Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@_same(Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    rates = b * (p.rate / q.rate).log() + (q.rate - p.rate) * (a / p.rate)
    return rates + b.lgamma() - a.lgamma() + (a - b) * a.digamma()


@_same(Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.scale < q.scale, math.inf)


@_same(Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


SIZES = "KL-divergence between two {names} with different event shapes cannot be computed"


def _gaussians(names: str) -> Callable[[Any, Any], Tensor]:
    def divergence(p: Any, q: Any) -> Tensor:
        if p.event_shape != q.event_shape:
            raise ValueError(SIZES.format(names=names))
        return kl_of_gaussians(p, q)

    return divergence


_BOTH = "(Low Rank) Multivariate Normals"
for _first, _second, _names in (
    (MultivariateNormal, MultivariateNormal, "Multivariate Normals"),
    (LowRankMultivariateNormal, LowRankMultivariateNormal, "Low Rank Multivariate Normals"),
    (MultivariateNormal, LowRankMultivariateNormal, _BOTH),
    (LowRankMultivariateNormal, MultivariateNormal, _BOTH),
):
    register_kl(_first, _second)(_gaussians(_names))
