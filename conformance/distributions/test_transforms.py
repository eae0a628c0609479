"""Every transform: there and back, Jacobian, shapes, gradients, caches; the two registries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from conformance.distributions.cases import Draw, of, positive, real
from conformance.side_by_side import attempt, compare
from tests.random_seeds import generator

TOLERANCE = {"float32": (1e-3, 1e-4), "float64": (1e-6, 1e-8)}
BATCHES = [(), (3,), (2, 3)]


@dataclass(frozen=True)
class Case:
    """How to make a transform, what it takes and what its inverse takes (else its results)."""

    name: str
    make: Callable[[Any], Any]
    argument: Draw

    def __str__(self) -> str:
        return self.name


def composed(library: Any) -> Any:
    D = library.distributions
    parts = [D.AffineTransform(0.5, -0.3), D.ExpTransform(), D.PowerTransform(library.tensor(-0.5))]
    return D.ComposeTransform(parts)


def composed_of_events(library: Any) -> Any:
    D = library.distributions
    scale = library.tensor([0.5, 1.0, 2.0])
    return D.ComposeTransform([D.AffineTransform(0.0, scale), D.StickBreakingTransform(),
                               D.AffineTransform(1.0, 2.0, event_dim=1)])  # fmt: skip


def side_by_side(library: Any) -> Any:
    D = library.distributions
    return D.CatTransform([D.ExpTransform(), D.TanhTransform()], dim=-1, lengths=[2, 1])


def side_by_side_events(library: Any) -> Any:
    D = library.distributions
    parts = [D.IndependentTransform(D.ExpTransform(), 1), D.AffineTransform(1.0, 2.0, event_dim=1)]
    return D.CatTransform(parts, dim=-1, lengths=[2, 1])


def stacked(library: Any) -> Any:
    D = library.distributions
    return D.StackTransform([D.ExpTransform(), D.SigmoidTransform(), D.identity_transform], dim=-1)


def cumulative(library: Any) -> Any:
    D = library.distributions
    return D.CumulativeDistributionTransform(D.Normal(library.tensor(0.3), library.tensor(1.2)))


def called(name: str, *args: Any) -> Callable[[Any], Any]:
    return lambda library: getattr(library.distributions, name)(*args)


CASES = [
    Case("Abs", called("AbsTransform"), real),
    Case("Affine", called("AffineTransform", 0.3, -1.5), real),
    Case("Affine of events", called("AffineTransform", 0.3, 2.5, 1), of(real, 3)),
    Case("Affine with tensors", lambda library: library.distributions.AffineTransform(
        library.tensor([0.3, 0.1, 0.2]), library.tensor([-1.0, 2.0, 0.5])), of(real, 3)),
    Case("Cat", side_by_side, of(real, 3)),
    Case("Cat of events", side_by_side_events, of(real, 3)),
    Case("Compose", composed, real),
    Case("Compose of events", composed_of_events, of(real, 3)),
    Case("Compose of none", called("ComposeTransform", []), real),
    Case("CorrCholesky", called("CorrCholeskyTransform"), of(real, 6)),
    Case("CumulativeDistribution", cumulative, real),
    Case("Exp", called("ExpTransform"), real),
    Case("Independent", lambda library: library.distributions.IndependentTransform(
        library.distributions.ExpTransform(), 1), of(real, 3)),
    Case("LowerCholesky", called("LowerCholeskyTransform"), of(real, 3, 3)),
    Case("PositiveDefinite", called("PositiveDefiniteTransform"), of(real, 3, 3)),
    Case("Power", lambda library: library.distributions.PowerTransform(library.tensor(1.7)),
         positive),
    Case("Reshape", called("ReshapeTransform", (2, 3), (3, 2)), of(real, 2, 3)),
    Case("Sigmoid", called("SigmoidTransform"), real),
    Case("Softmax", called("SoftmaxTransform"), of(real, 3)),
    Case("Softplus", called("SoftplusTransform"), real),
    Case("Stack", stacked, of(real, 3)),
    Case("StickBreaking", called("StickBreakingTransform"), of(real, 3)),
    Case("Tanh", called("TanhTransform"), real),
]  # fmt: skip


def each_case(test: Any) -> Any:
    return pytest.mark.parametrize("case", CASES, ids=str)(test)


def check(case: Case, scenario: Any, name: str) -> None:
    rng = np.random.default_rng(generator(name, str(case)).getrandbits(64))
    for dtype, (rtol, atol) in TOLERANCE.items():
        for batch in BATCHES:
            array = np.asarray(case.argument(rng, batch)).astype(dtype)
            compare(lambda library: scenario(library, library.tensor(array)), rtol, atol)  # noqa: B023


@each_case
def test_there_and_back(case: Case):
    def scenario(library: Any, x: Any) -> Any:
        transform = case.make(library)
        y = transform(x)
        answers = [y, transform.inv(y), attempt(transform.log_abs_det_jacobian, x, y)]
        answers.append(attempt(transform.inv.log_abs_det_jacobian, y, x))
        names = ["bijective", "sign", "event_dim", "domain", "codomain"]
        answers += [attempt(getattr, transform, name) for name in names]
        answers += [attempt(getattr, transform.inv, name) for name in names]
        answers += [attempt(transform.forward_shape, x.shape), repr(transform), repr(transform.inv)]
        answers += [attempt(transform.inverse_shape, y.shape), attempt(transform.inverse_shape, ())]
        answers += [attempt(transform.forward_shape, ()), transform == case.make(library)]
        answers += [transform.inv.inv is transform, transform.inv == transform.inv]
        return answers

    check(case, scenario, "there and back")


@each_case
def test_gradients(case: Case):
    def scenario(library: Any, x: Any) -> Any:
        transform = case.make(library)
        x.requires_grad_()
        y = transform(x)
        weights = library.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)
        slopes = library.autograd.grad((y * weights).sum(), x, retain_graph=True)
        slope = attempt(transform.log_abs_det_jacobian, x, y)
        if isinstance(slope, library.Tensor) and slope.requires_grad:
            slopes += library.autograd.grad(slope.sum(), x, retain_graph=True)
        value = y.detach().requires_grad_()
        back = transform.inv(value)
        weights = library.linspace(0.5, 1.5, back.numel(), dtype=y.dtype).reshape(back.shape)
        return slopes + library.autograd.grad((back * weights).sum(), value)

    check(case, scenario, "gradients")


@each_case
def test_caches(case: Case):
    def scenario(library: Any, x: Any) -> Any:
        transform = case.make(library).with_cache(1)
        y = transform(x)
        other = transform(x + 1e-3)
        answers = [transform(x) is y, transform.inv(other) is x, transform._cache_size]
        other = transform.with_cache(0)
        again = transform.inv(transform(x)) is x
        return answers, again, other._cache_size, transform.with_cache(1) is transform, y

    check(case, scenario, "caches")


REGIONS: dict[str, Callable[[Any, Any], Any]] = {
    "real": lambda C, t: C.real,
    "real_vector": lambda C, t: C.real_vector,
    "positive": lambda C, t: C.positive,
    "nonnegative": lambda C, t: C.nonnegative,
    "greater_than": lambda C, t: C.greater_than(t.tensor(0.5)),
    "greater_than_eq": lambda C, t: C.greater_than_eq(-2.0),
    "less_than": lambda C, t: C.less_than(1.5),
    "interval": lambda C, t: C.interval(-1.0, t.tensor(2.0)),
    "unit_interval": lambda C, t: C.unit_interval,
    "half_open_interval": lambda C, t: C.half_open_interval(1.0, 3.0),
    "simplex": lambda C, t: C.simplex,
    "corr_cholesky": lambda C, t: C.corr_cholesky,
    "lower_cholesky": lambda C, t: C.lower_cholesky,
    "positive_definite": lambda C, t: C.positive_definite,
    "positive_semidefinite": lambda C, t: C.positive_semidefinite,
    "independent": lambda C, t: C.independent(C.positive, 1),
    "cat": lambda C, t: C.cat([C.positive, C.unit_interval], dim=-1, lengths=[4, 2]),
    "stack": lambda C, t: C.stack([C.real, C.positive] * 3, dim=-1),
    "dependent": lambda C, t: C.dependent,
    "boolean": lambda C, t: C.boolean,
}
SQUARE = {"lower_cholesky", "positive_definite", "positive_semidefinite"}


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", REGIONS)
def test_registries(name: str, registry: str):
    rng = np.random.default_rng(generator(name, registry).getrandbits(64))
    array = rng.normal(size=(2, 3, 3) if name in SQUARE else (2, 6))

    def scenario(library: Any) -> Any:
        region = REGIONS[name](library.distributions.constraints, library)
        transform = attempt(getattr(library.distributions, registry), region)
        if not isinstance(transform, library.distributions.Transform):
            return transform
        x = library.tensor(array)
        y = transform(x)
        slope = attempt(transform.log_abs_det_jacobian, x, y)
        return repr(transform), y, region.check(y), transform.inv(y), slope

    compare(scenario, 1e-6, 1e-8)


def test_registered_by_the_user():
    def scenario(library: Any) -> Any:
        D = library.distributions

        class Mine(type(D.constraints.real)):
            pass

        D.transform_to.register(Mine, lambda region: D.ExpTransform())
        wrong = attempt(D.biject_to.register, int, lambda region: D.ExpTransform())
        return repr(D.transform_to(Mine())), attempt(D.biject_to, Mine()), type(wrong).__name__

    compare(scenario)


def test_utilities():
    def scenario(library: Any) -> Any:
        U = library.distributions.utils
        matrix = library.arange(16.0).reshape(4, 4)
        answers = []
        for diagonal in range(-3, 2):
            vector = U.tril_matrix_to_vec(matrix, diagonal)
            answers += [vector, attempt(U.vec_to_tril_matrix, vector, diagonal)]
        probs = library.tensor([0.0, 0.25, 0.75, 1.0])
        answers += [U.clamp_probs(probs), U.probs_to_logits(probs), U.probs_to_logits(probs, True)]
        answers += [U.logits_to_probs(probs), U.logits_to_probs(probs, is_binary=True)]
        answers += [U.broadcast_all(1, probs), attempt(U.broadcast_all, "a", 1)]
        return answers

    compare(scenario)
