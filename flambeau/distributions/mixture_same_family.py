"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.constraints import MixtureSameFamilyConstraint
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import Parametrised

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Parametrised):
    """A component, drawn by a categorical distribution, draws the value.

    The components are the last batch dim of one distribution.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _kept = ("_num_component", "_event_ndims")

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        _check(mixture_distribution, component_distribution)
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = component_distribution.batch_shape[-1]
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        shape = component_distribution.batch_shape[:-1]
        super().__init__(shape, event, validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        super()._expand_into(new, batch_shape)
        components = batch_shape + (self._num_component,)
        new._component_distribution = self._component_distribution.expand(components)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component is drawn."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dim."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        return self._pad_mixture_dimensions(self._mixture_distribution.probs)

    def _over_components(self, values: Tensor) -> Tensor:
        return values.sum(dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._over_components(self._weights() * self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances, and the variance of the means."""
        components = self._component_distribution
        distance = components.mean - self._pad(self.mean)
        return self._over_components(self._weights() * (components.variance + distance.pow(2.0)))

    def cdf(self, x: Tensor) -> Tensor:
        each = self._component_distribution.cdf(self._pad(x))
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_sample(x)
        each = self._component_distribution.log_prob(self._pad(x))
        weight = ops.log_softmax(self._mixture_distribution.logits, dim=-1)
        return ops.logsumexp(each + weight, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            each = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            index = chosen.reshape((*chosen.shape, *(1 for _ in range(self._event_ndims + 1))))
            index = index.expand((*chosen.shape, 1, *self._event_shape))
            return each.gather(dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """The dims of the components' batch and, after those, of their event."""
        return x.reshape((*x.shape, *(1 for _ in range(self._event_ndims))))

    def __repr__(self) -> str:
        inside = f"{self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily(\n  {inside})"


def _check(mixture: Any, components: Any) -> None:
    if not isinstance(mixture, Categorical):
        raise ValueError(
            " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
        )
    if not isinstance(components, Distribution):
        raise ValueError(
            "The Component distribution needs to be an instance of torch.distributions.Distribution"
        )
    have, want = mixture.batch_shape, components.batch_shape[:-1]
    for one, other in zip(reversed(have), reversed(want), strict=False):
        if 1 not in (one, other) and one != other:
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({have}) is not compatible with "
                f"`component_distribution.batch_shape`({want})"
            )
    number, wanted = mixture.logits.shape[-1], components.batch_shape[-1]
    if number != wanted:
        raise ValueError(
            f"`mixture_distribution component` ({number}) does not equal "
            f"`component_distribution.batch_shape[-1]` ({wanted})"
        )
