"""Pairs of different classes: the cross-entropy less the entropy.

The cross-entropy of `q` needs only means under `p`, of the number itself, of its logarithm, of its
exponential: a column for what `q` asks, a row for what `p` answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.kl.registry import register_kl
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.normal import Normal
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import euler_constant

Mean = Callable[..., Tensor]

# ---- what p answers


def _uniform_log(low: Tensor, high: Tensor) -> Tensor:
    """The mean logarithm of a uniform number."""
    return (ops.xlogy(high, high) - ops.xlogy(low, low)) / (high - low) - 1


MEAN_OF_LOG: dict[type, Mean] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _uniform_log(p.low, p.high),
}

MEAN_OF_EXP: dict[type, Mean] = {
    Exponential: lambda p, scale: (1 + 1 / (p.rate * scale)).reciprocal(),
    Gamma: lambda p, scale: (1 + 1 / (p.rate * scale)).pow(-p.concentration),
    Normal: lambda p, scale: (0.5 * (p.scale / scale).pow(2) - p.loc / scale).exp(),
    Uniform: lambda p, scale: (
        ((-p.low / scale).exp() - (-p.high / scale).exp()) / ((p.high - p.low) / scale)
    ),
}
"""The mean of `exp(-x / scale)`."""


# ---- what q asks


def _of_normal(p: Any, q: Any) -> Tensor:
    square = p.variance + (p.mean - q.loc).pow(2)
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * square / q.scale.pow(2)


def _of_exponential(p: Any, q: Any) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _of_gamma(p: Any, q: Any) -> Tensor:
    shape = q.concentration
    logarithms = (shape - 1) * MEAN_OF_LOG[_kind(p)](p) + shape * q.rate.log()
    return shape.lgamma() + q.rate * p.mean - logarithms


def _of_gumbel(p: Any, q: Any) -> Tensor:
    start = q.loc / q.scale
    tail = start.exp() * MEAN_OF_EXP[_kind(p)](p, q.scale)
    return q.scale.log() + p.mean / q.scale - start + tail


def _of_uniform(p: Any, q: Any) -> Tensor:
    return (q.high - q.low).log()


def _of_pareto(p: Any, q: Any) -> Tensor:
    logarithms = (q.alpha + 1) * MEAN_OF_LOG[_kind(p)](p)
    return logarithms - q.alpha.log() - q.alpha * q.scale.log()


def _of_beta(p: Any, q: Any) -> Tensor:
    one, zero = q.concentration1, q.concentration0
    logs = (one - 1) * _uniform_log(p.low, p.high)
    logs = logs + (zero - 1) * _uniform_log(1 - p.high, 1 - p.low)
    return q._log_normalizer(one, zero) - logs


def _of_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.mean * q.logits - ops.log1p(-q.probs) - q._cont_bern_log_norm()


def _of_poisson(p: Any, q: Any) -> Tensor:
    """For numbers of 0 and 1, whose factorials are 1."""
    return q.rate - p.mean * q.rate.log()


def _of_laplace(p: Any, q: Any) -> Tensor:
    """A normal number's mean distance is that of the folded one (Leone and others, 1961)."""
    z = (p.loc - q.loc) / p.scale
    folded = math.sqrt(2 / math.pi) * (-0.5 * z.pow(2)).exp() + z * ops.erf(z / math.sqrt(2))
    return (2 * q.scale).log() + p.scale * folded / q.scale


# ---- where q has no probability, or a mean does not exist


def _outside_unit(p: Any, q: Any) -> Tensor:
    return (p.low < 0) | (p.high > 1)


def _not_inside_unit(p: Any, q: Any) -> Tensor:
    """In torch, the ends of the interval count as outside of it here."""
    return (p.low <= 0) | (p.high >= 1)


def _negative(p: Any, q: Any) -> Tensor:
    return p.low < 0


def _unit_not_inside(p: Any, q: Any) -> Tensor:
    return (q.low > 0) | (q.high < 1)


def _below_scale(p: Any, q: Any) -> Tensor:
    return p.low < q.scale


def _without_mean(p: Any, q: Any) -> Tensor:
    return p.alpha <= 1


def _without_variance(p: Any, q: Any) -> Tensor:
    return p.alpha <= 2


Infinite = Callable[[Any, Any], Tensor] | None

PAIRS: list[tuple[type, type, Callable[[Any, Any], Tensor], Infinite]] = [
    (Bernoulli, Poisson, _of_poisson, None),
    (Beta, ContinuousBernoulli, _of_continuous_bernoulli, None),
    (Beta, Exponential, _of_exponential, None),
    (Beta, Gamma, _of_gamma, None),
    (Beta, Normal, _of_normal, None),
    (Beta, Uniform, _of_uniform, _unit_not_inside),
    (ContinuousBernoulli, Exponential, _of_exponential, None),
    (ContinuousBernoulli, Normal, _of_normal, None),
    (ContinuousBernoulli, Uniform, _of_uniform, _unit_not_inside),
    (Exponential, Gamma, _of_gamma, None),
    (Exponential, Gumbel, _of_gumbel, None),
    (Exponential, Normal, _of_normal, None),
    (Gamma, Exponential, _of_exponential, None),
    (Gamma, Gumbel, _of_gumbel, None),
    (Gamma, Normal, _of_normal, None),
    (Gumbel, Normal, _of_normal, None),
    (Laplace, Normal, _of_normal, None),
    (Normal, Gumbel, _of_gumbel, None),
    (Normal, Laplace, _of_laplace, None),
    (Pareto, Exponential, _of_exponential, _without_mean),
    (Pareto, Gamma, _of_gamma, _without_mean),
    (Pareto, Normal, _of_normal, _without_variance),
    (Uniform, Beta, _of_beta, _outside_unit),
    (Uniform, ContinuousBernoulli, _of_continuous_bernoulli, _not_inside_unit),
    (Uniform, Exponential, _of_exponential, _negative),
    (Uniform, Gamma, _of_gamma, _negative),
    (Uniform, Gumbel, _of_gumbel, None),
    (Uniform, Normal, _of_normal, None),
    (Uniform, Pareto, _of_pareto, _below_scale),
]


def _kind(p: Any) -> type:
    """The class of the tables that a distribution belongs to."""
    return next(kind for kind in type(p).__mro__ if kind in MEAN_OF_LOG or kind in MEAN_OF_EXP)


def _divergence(cross: Callable[[Any, Any], Tensor], infinite: Infinite) -> Any:
    def divergence(p: Any, q: Any) -> Tensor:
        result = cross(p, q) - p.entropy()
        return result if infinite is None else result.masked_fill(infinite(p, q), math.inf)

    return divergence


for _p, _q, _cross, _infinite in PAIRS:
    register_kl(_p, _q)(_divergence(_cross, _infinite))
