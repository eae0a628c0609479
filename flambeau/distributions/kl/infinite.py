"""Pairs of which the first has samples where the second can have none."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
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

_BOUNDED = (Beta, ContinuousBernoulli, Uniform)
_FROM_SCALE_ON = (Pareto,)
_POSITIVE = (Exponential, Gamma, *_FROM_SCALE_ON)

TOO_NARROW: dict[type, tuple[type, ...]] = {
    Beta: _FROM_SCALE_ON,
    ContinuousBernoulli: _FROM_SCALE_ON,
    Exponential: (*_BOUNDED, *_FROM_SCALE_ON),
    Gamma: (*_BOUNDED, *_FROM_SCALE_ON),
    Gumbel: (*_BOUNDED, *_POSITIVE),
    Laplace: (*_BOUNDED, *_POSITIVE),
    Normal: (*_BOUNDED, *_POSITIVE),
    Pareto: _BOUNDED,
    Poisson: (Bernoulli, Binomial),
}
"""The first distribution -> those whose support is too narrow for its samples."""


def _infinity(p: Any, q: Any) -> Tensor:
    return ops.full_like(p.mean, math.inf)


for _wide, _narrow in TOO_NARROW.items():
    for _other in _narrow:
        register_kl(_wide, _other)(_infinity)
