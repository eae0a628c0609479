"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.parameters import AroundLoc
from flambeau.distributions.utils import lazy_property

__all__ = ["VonMises"]


class VonMises(AroundLoc):
    """Angles around `loc`, of density proportional to `exp(concentration * cos(x - loc))`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, concentration=concentration)

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The circular variance: 1 less the length of the mean direction."""
        ratio = ops.special.i1e(self.concentration) / ops.special.i0e(self.concentration)
        return 1 - ratio

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        height = self.concentration * (value - self.loc).cos()
        log_bessel = ops.special.i0e(self.concentration).log() + self.concentration
        return height - math.log(2 * math.pi) - log_bessel

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """In double precision: with little concentration, singles give a biased angle."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            angle = _around_zero(self.concentration.to(dt.float64), shape)
            turned = angle + math.pi + self.loc.to(dt.float64)
            return (turned % (2 * math.pi) - math.pi).to(self.loc.dtype)


def _around_zero(concentration: Tensor, shape: Size) -> Tensor:
    """By rejection from a wrapped Cauchy distribution (Best and Fisher, 1979).

    Names in the formulas are the paper's. All angles are drawn anew until each was accepted once.
    """
    tau = 1 + (1 + 4 * concentration.pow(2)).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
    r = (1 + rho.pow(2)) / (2 * rho)
    # for small concentrations the formula loses all digits; this is its series
    r = ops.where(concentration < 1e-5, 1 / concentration + concentration, r)
    angle = concentration.new_empty(shape)
    done = ops.zeros(shape, dtype=dt.bool_, device=concentration.device)
    while not done.all():
        u1, u2, u3 = ops.rand((3, *shape), dtype=angle.dtype, device=angle.device).unbind()
        z = (math.pi * u1).cos()
        f = (1 + r * z) / (r + z)
        c = concentration * (r - f)
        accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        angle = ops.where(accepted, (u3 - 0.5).sign() * f.acos(), angle)
        done = done | accepted
    return angle
