"""Which transform leads to the values that a constraint allows.

`biject_to` holds transforms that are one to one, for densities; `transform_to` those that are
cheap and well conditioned, for parameters that are optimised.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from flambeau.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Factories of transforms, by the type of constraint; a call with a constraint makes one."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Hold a factory for a constraint's type; without one, a decorator for it."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        self._registry[_kind_of(constraint)] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            kind = type(constraint).__name__
            raise NotImplementedError(f"Cannot transform {kind} constraints")
        return factory(constraint)


def _kind_of(constraint: Any) -> type:
    """The class of a constraint; a class of constraints is its own."""
    kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
    if isinstance(kind, type) and issubclass(kind, constraints.Constraint):
        return kind
    raise TypeError(
        f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}"
    )


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _above(constraint: Any) -> transforms.Transform:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _below(constraint: Any) -> transforms.Transform:
    mirror = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), mirror])


def _between(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and low == 0 and isinstance(high, Number) and high == 1:
        return transforms.SigmoidTransform()
    stretch = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), stretch])


def _register(constraint: Any, factory: Factory) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _register_of_parts(registry: ConstraintRegistry) -> None:
    """Constraints made of constraints; the parts are looked up in the same registry."""

    @registry.register(constraints.independent)
    def independent(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def cat(constraint: Any) -> transforms.Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def stack(constraint: Any) -> transforms.Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.StackTransform(parts, constraint.dim)


_register(constraints.real, lambda constraint: transforms.identity_transform)
_register(constraints.positive, _above)
_register(constraints.greater_than, _above)
_register(constraints.nonnegative, _above)
_register(constraints.greater_than_eq, _above)
_register(constraints.less_than, _below)
_register(constraints.interval, _between)
_register(constraints.half_open_interval, _between)
_register(constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform()
)
for _definite in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_definite, lambda constraint: transforms.PositiveDefiniteTransform())
for _registry in (biject_to, transform_to):
    _register_of_parts(_registry)
