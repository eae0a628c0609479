"""What values a parameter or a sample may have: `torch.distributions.constraints`.

A constraint says for each event whether it is allowed. The last `event_dim` dims of a value form
one event; `check` gives a boolean for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "independent", "integer_interval", "interval",
    "half_open_interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
    "MixtureSameFamilyConstraint", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_semidefinite", "positive_definite", "positive_integer", "real",
    "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

SYMMETRY_TOLERANCE = 1e-6
SUM_TOLERANCE = 1e-6


class Constraint:
    """A region of values. `fields` names the numbers that a region has, in order."""

    is_discrete = False
    event_dim = 0
    fields: tuple[str, ...] = ()

    def check(self, value: Tensor) -> Tensor:
        """For each event, whether it is in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)}" for name in self.fields]
        return f"{type(self).__name__[1:]}({', '.join(shown)})"


# ---- regions that depend on other parameters


_UNSAID = NotImplemented


class _Dependent(Constraint):
    """A region that only an instance knows, as its other parameters bound it."""

    def __init__(self, *, is_discrete: Any = _UNSAID, event_dim: Any = _UNSAID) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self._known("is_discrete")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self._known("event_dim")

    def _known(self, name: str) -> Any:
        value = getattr(self, f"_{name}")
        if value is _UNSAID:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(self, *, is_discrete: Any = _UNSAID, event_dim: Any = _UNSAID) -> _Dependent:
        """The same with more known: `dependent(is_discrete=True)`."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is _UNSAID else is_discrete,
            event_dim=self._event_dim if event_dim is _UNSAID else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; read from the class, it is a dependent one itself.

    It decorates a method, with what is known of every value or without.
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = _UNSAID,
        event_dim: Any = _UNSAID,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Does a constraint depend on other parameters, so that it can't be checked by itself?"""
    return isinstance(constraint, _Dependent)


# ---- regions of single numbers


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """Every number but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value  # noqa: PLR0124  False for NaN


class _FromBelow(Constraint):
    fields = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _FromAbove(Constraint):
    fields = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(Constraint):
    fields = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()


class _GreaterThan(_FromBelow):
    """Above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_FromBelow):
    """A bound, or above it."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_FromAbove):
    """Below a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Between two bounds, which belong to it."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Between two bounds, of which the upper one does not belong to it."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


def _whole(value: Tensor) -> Tensor:
    return value % 1 == 0


class _IntegerInterval(_Interval):
    """The integers from one bound to another."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & super().check(value)


class _IntegerLessThan(_FromAbove):
    """The integers up to a bound, with it."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_GreaterThanEq):
    """The integers from a bound on, with it."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & super().check(value)


# ---- regions of vectors


class _OneHot(Constraint):
    """Vectors with a single 1, and else 0."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers that sum to 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < SUM_TOLERANCE)


class _Multinomial(Constraint):
    """Vectors of nonnegative integers that sum to an upper bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# ---- regions of matrices


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    """Square matrices with nothing above the diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """The same, with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """The same, each row of length 1: roots of matrices of correlation."""

    def check(self, value: Tensor) -> Tensor:
        # sums of more numbers are rounded more often
        tolerance = dt.finfo(value.dtype).eps * value.size(-1) * 10
        length = ops.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & (length - 1).abs().le(tolerance).all(-1)


class _Square(_Matrix):
    """Square matrices."""

    def check(self, value: Tensor) -> Tensor:
        fits = value.shape[-1] == value.shape[-2]
        return ops.full(value.shape[:-2], fits, dtype=dt.bool_, device=value.device)


class _Symmetric(_Square):
    """Matrices that are their own transpose."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not square.all():
            return square
        close = ops.isclose(value, value.mT, atol=SYMMETRY_TOLERANCE)
        return close.all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return ops.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices of positive eigenvalues: those that Cholesky's decomposition is of."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return ops.linalg.cholesky_ex(value).info.eq(0)


# ---- regions made of regions


def _of_constraint(base: Any) -> Constraint:
    if isinstance(base, Constraint):
        return base
    kind = type(base).__name__
    raise AssertionError(f"base_constraint must be a Constraint, got {kind}")


class _IndependentConstraint(Constraint):
    """Events of many events: the last dims of a value must all be in the region."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = _of_constraint(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int):
            kind = type(reinterpreted_batch_ndims).__name__
            raise AssertionError(f"reinterpreted_batch_ndims must be an int, got {kind}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
            )
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        fits = self.base_constraint.check(value)
        missing = self.reinterpreted_batch_ndims - fits.dim()
        if missing > 0:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        kept = fits.shape[: fits.dim() - self.reinterpreted_batch_ndims]
        return fits.reshape((*kept, -1)).all(-1)

    def __repr__(self) -> str:
        inside = f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__[1:]}({inside})"


class MixtureSameFamilyConstraint(Constraint):
    """What every component of a mixture allows."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = _of_constraint(base_constraint)
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        each = value.unsqueeze(-1 - self.event_dim)
        fits = self.base_constraint.check(each)
        kept = value.dim() - self.event_dim
        return fits.reshape((*fits.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Parts(Constraint):
    """Regions side by side along a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int) -> None:
        if not all(isinstance(part, Constraint) for part in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(part.is_discrete for part in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Parts):
    """Parts of given lengths along a dim, each in a region of its own."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            sizes = f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            raise AssertionError(sizes)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(part.event_dim for part in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        pieces = _split(value, self.lengths, self.dim)
        fits = [part.check(piece) for part, piece in zip(self.cseq, pieces, strict=True)]
        return ops.cat(fits, self.dim)


class _Stack(_Parts):
    """Slices along a dim, each in a region of its own."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        deepest = max(part.event_dim for part in self.cseq)
        return deepest + 1 if self.dim + deepest < 0 else deepest

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = zip(self.cseq, value.unbind(self.dim), strict=False)
        return ops.stack([part.check(piece) for part, piece in slices], self.dim)


def _split(value: Tensor, lengths: Sequence[int], dim: int) -> list[Tensor]:
    """The first pieces of such lengths; there may be a rest."""
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    pairs = zip(starts, lengths, strict=True)
    return [value.narrow(dim, start, length) for start, length in pairs]


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
