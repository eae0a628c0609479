"""Every constraint: what it is, what it says of drawn values, its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.side_by_side import Raised, attempt, compare
from tests.random_seeds import generator

REGIONS: dict[str, Callable[[Any, Any], Any]] = {
    name: lambda C, t, name=name: getattr(C, name)
    for name in (
        "boolean corr_cholesky dependent lower_cholesky lower_triangular nonnegative "
        "nonnegative_integer one_hot positive positive_definite positive_integer "
        "positive_semidefinite real real_vector simplex square symmetric unit_interval"
    ).split()
} | {
    "greater_than": lambda C, t: C.greater_than(0.5),
    "greater_than of a tensor": lambda C, t: C.greater_than(t.tensor([0.0, 0.5, 1.0])),
    "greater_than_eq": lambda C, t: C.greater_than_eq(1),
    "less_than": lambda C, t: C.less_than(0),
    "interval": lambda C, t: C.interval(-1, t.tensor(1.0)),
    "half_open_interval": lambda C, t: C.half_open_interval(0, 1),
    "integer_interval": lambda C, t: C.integer_interval(-1, 2),
    "multinomial": lambda C, t: C.multinomial(3),
    "independent": lambda C, t: C.independent(C.positive, 1),
    "independent of two": lambda C, t: C.independent(C.real_vector, 1),
    "cat": lambda C, t: C.cat([C.positive, C.real], dim=-1, lengths=[2, 1]),
    "cat in front": lambda C, t: C.cat([C.positive, C.boolean]),
    "stack": lambda C, t: C.stack([C.real, C.positive, C.boolean], dim=-1),
    "stack of vectors": lambda C, t: C.stack([C.simplex, C.real_vector, C.one_hot], dim=-2),
    "MixtureSameFamilyConstraint": lambda C, t: C.MixtureSameFamilyConstraint(C.positive),
    "known later": lambda C, t: C.dependent(is_discrete=True, event_dim=1),
    "cat of something": lambda C, t: C.cat([1]),
    "independent of something": lambda C, t: C.independent("real", 1),
    "independent of a number": lambda C, t: C.independent(C.real, 1.5),
    "independent of -1": lambda C, t: C.independent(C.real, -1),
    "interval of one": lambda C, t: attempt(C.interval, 1).kind,
}


def values(rng: np.random.Generator) -> list[np.ndarray]:
    """Numbers, indicators, shares, and matrices of several kinds; also such as just fail."""
    square = rng.normal(size=(2, 3, 3))
    factor = np.linalg.cholesky(square @ square.swapaxes(-1, -2) + np.eye(3))
    unit = factor / np.linalg.norm(factor, axis=-1, keepdims=True)
    semidefinite = np.diag(np.abs(rng.normal(size=3)) * [1, 0, 1])
    return [
        rng.normal(size=(4, 3)), rng.integers(-2, 4, (4, 3)), rng.integers(0, 2, (4, 3)),
        np.eye(3)[rng.integers(0, 3, 4)], rng.dirichlet(np.ones(3), 4),
        rng.dirichlet(np.ones(3), 4) * (1 + 1e-5), np.array([np.nan, np.inf, -np.inf]),
        np.array(rng.normal()), square, factor, unit, unit * (1 + 1e-3),
        factor @ factor.swapaxes(-1, -2), -factor @ factor.swapaxes(-1, -2), semidefinite,
        square + 1e-9, rng.normal(size=(2, 3, 2)),
    ]  # fmt: skip


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", None])
def test_constraints(name: str, dtype: str | None):
    drawn = values(np.random.default_rng(generator(name).getrandbits(64)))

    def scenario(library: Any) -> Any:
        C = library.distributions.constraints
        region = attempt(REGIONS[name], C, library)
        answers = [repr(region), C.is_dependent(region)]
        answers += [attempt(getattr, region, field) for field in ("is_discrete", "event_dim")]
        for array in drawn:
            value = library.tensor(array if dtype is None else array.astype(dtype))
            answer = attempt(lambda: region.check(value))  # noqa: B023
            no_floats = isinstance(answer, Raised) and "finfo" in answer.text
            answers.append(answer.kind if no_floats else answer)  # PyTorch's names no type
        return answers

    compare(scenario)


def test_declared_on_classes():
    """What classes say before any instance is there."""

    def scenario(library: Any) -> Any:
        D = library.distributions
        answers = {}
        for name in sorted(D.__all__):
            kind = getattr(D, name)
            if not isinstance(kind, type) or not issubclass(kind, D.Distribution):
                continue
            support = kind.support
            shown = repr(support) if isinstance(support, D.constraints.Constraint) else "property"
            answers[name] = [
                shown, kind.has_rsample is True, kind.has_enumerate_support is True,
                kind.__module__.partition(".")[2],
                sorted(base.__name__ for base in kind.__mro__ if base.__name__ in D.__all__),
            ]  # fmt: skip
        return answers

    compare(scenario)


def test_a_class_of_a_user():
    """A distribution that says little, and one that says nothing of its parameters."""

    def scenario(library: Any) -> Any:
        D = library.distributions

        class Little(D.Distribution):
            arg_constraints = {}

        class Nothing(D.Distribution):
            pass

        class OfNormal(D.Normal):
            def __init__(self) -> None:
                super().__init__(0.0, 1.0)

        little = Little()
        answers = [attempt(getattr, little, name) for name in ("mean", "variance", "stddev")]
        answers += [repr(little), attempt(little.log_prob, library.ones(1))]
        answers += [attempt(little._validate_sample, library.ones(1))]
        answers += [attempt(little.sample), attempt(little.entropy), attempt(little.expand, [2])]
        answers += [attempt(Nothing).kind, attempt(OfNormal().expand, [2])]
        answers += [
            D.Normal(0.0, 1.0).sample_n(3),
            attempt(D.Distribution.set_default_validate_args, 3),
        ]
        return answers

    compare(scenario)


def test_validation_by_default():
    def scenario(library: Any) -> Any:
        D = library.distributions
        D.Distribution.set_default_validate_args(False)
        quiet = attempt(D.Normal, 0.0, -1.0)
        D.Distribution.set_default_validate_args(True)
        loud = attempt(D.Normal, 0.0, -1.0)
        return repr(quiet), loud, attempt(D.Normal(0.0, 1.0).log_prob, library.tensor(float("nan")))

    compare(scenario)
