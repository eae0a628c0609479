"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.one_hot_categorical import OfCategorical

__all__ = ["Multinomial"]


class Multinomial(OfCategorical):
    """How often each index comes in `total_count` draws of a categorical distribution."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _kept = ("total_count",)
    _expanded = ("_categorical",)

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._like_categorical(Categorical(probs, logits), validate_args)
        self._binomial = Binomial(total_count, self.probs)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        super()._expand_into(new, batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self._event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
            draws = draws.movedim(0, -1)
            counts = self.probs.new_zeros(self._extended_shape(sample_shape))
            return counts.scatter_add_(-1, draws, ops.ones_like(draws, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = ops.broadcast_tensors(self.logits, value)
        # an impossible index that does not come is no obstacle: 0 * log(0) is to be 0
        absent = (value == 0) & (logits == -float("inf"))
        kernel = (logits.masked_fill(absent, 0) * value).sum(-1)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + kernel

    def entropy(self) -> Tensor:
        """Draws in order have `n` times the entropy of one; the order's part is taken off."""
        total = self.probs.new_tensor(self.total_count)
        ordered = total * self._categorical.entropy() - (total + 1).lgamma()
        counts = self._binomial.enumerate_support(expand=False)[1:]
        chances = self._binomial.log_prob(counts).exp()
        return ordered + (chances * (counts + 1).lgamma()).sum([0, -1])
