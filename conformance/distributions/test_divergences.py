"""Every registered pair of distributions, with gradients, and the pairs that are not registered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from conformance.distributions.cases import BATCHES, CASES, Case, Drawn, draw, positive, real
from conformance.side_by_side import Raised, assert_same, attempt, compare, plain
from tests.random_seeds import generator

TOLERANCE = {"float32": (2e-3, 1e-3), "float64": (1e-6, 1e-7)}


def first_case(name: str) -> Case:
    return next(case for case in CASES if case.name.split()[0] == name)


def inside_unit(D: Any, low: Any, width: Any) -> Any:
    """Uniform numbers, part of them within those of others: divergences are finite there."""
    return D.Uniform(low.abs() * 0.1, 0.3 + low.abs() * 0.1 + width * 0.1)


def low_pareto(D: Any, scale: Any, alpha: Any) -> Any:
    return D.Pareto(scale * 0.1, alpha)


MORE = {
    ("Uniform", 0): Case("Uniform", inside_unit, {"low": real, "width": positive}),
    ("Pareto", 1): Case("Pareto", low_pareto, {"scale": positive, "alpha": positive}),
    ("Binomial", 0): Case("Binomial", lambda D, probs: D.Binomial(7, probs),
                          first_case("Bernoulli").parameters),
    ("Binomial", 1): Case("Binomial", lambda D, probs: D.Binomial(7, probs),
                          first_case("Bernoulli").parameters),
}  # fmt: skip
"""Parameters that fit: (name, first or second of a pair) -> case."""

ABSTRACT = {"ExponentialFamily": "Wishart", "TransformedDistribution": "LogNormal"}
PAIRS = sorted((p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY)


def case_of(name: str, place: int) -> Case:
    name = ABSTRACT.get(name, name)
    return MORE.get((name, place)) or first_case(name)


def divergence(library: Any, drawn: list[Drawn]) -> Any:
    """A divergence and its gradients; where it is not finite, alone."""
    sets = [one.parameters(library) for one in drawn]
    p, q = (one.make(library, values) for one, values in zip(drawn, sets, strict=True))
    result = attempt(library.distributions.kl_divergence, p, q)
    if not isinstance(result, library.Tensor) or not result.isfinite().all():
        return result
    leaves = [leaf for values in sets for leaf in values.values() if leaf.requires_grad]
    return result, library.autograd.grad(result.sum(), leaves, allow_unused=True)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_registered_pairs(pair: tuple[str, str]):
    rng = np.random.default_rng(generator("kl", *pair).getrandbits(64))
    for dtype, (rtol, atol) in TOLERANCE.items():
        # masks of PyTorch's formulas are not broadcast
        batch = BATCHES[rng.integers(len(BATCHES))]
        drawn = [draw(case_of(name, place), rng, dtype, batch) for place, name in enumerate(pair)]
        theirs = attempt(divergence, torch, drawn)
        if isinstance(theirs, Raised) and theirs.text.startswith("expand("):
            # nor are a second distribution's matrices, where they have fewer dims than the first's
            full = [one.whole() for one in drawn]
            shortened, _ = divergence(flambeau, drawn)
            assert_same(plain(shortened), plain(divergence(flambeau, full)[0]), rtol, atol)
            drawn = full
        compare(lambda library: divergence(library, drawn), rtol, atol)  # noqa: B023


def test_the_same_pairs_are_registered():
    def scenario(library: Any) -> Any:
        registry = library.distributions.kl._KL_REGISTRY
        return sorted(f"{p.__name__} {q.__name__}" for p, q in registry)

    compare(scenario)


def test_words():
    def scenario(library: Any) -> Any:
        D = library.distributions
        kl = D.kl_divergence
        normal = D.Normal(0.0, 1.0)
        ones, eye = library.ones, library.eye
        two = D.MultivariateNormal(ones(2), eye(2)), D.MultivariateNormal(ones(3), eye(3))
        low = D.LowRankMultivariateNormal(ones(2), ones(2, 1), ones(2))
        answers = [
            attempt(kl, normal, D.Cauchy(0.0, 1.0)),
            attempt(kl, D.Binomial(3, 0.5), D.Binomial(4, 0.5)),
            attempt(kl, D.Binomial(4, 0.5), D.Binomial(3, 0.5)),
            attempt(kl, *two), attempt(kl, low, two[1]),
            attempt(kl, D.Gumbel(0.0, 1.0), D.LogNormal(0.0, 1.0)),
            attempt(kl, D.Independent(D.Normal(ones(2), 1.0), 1),
                    D.Independent(D.Normal(ones(2, 2), 1.0), 2)),
            attempt(kl, D.Dirichlet(ones(2)), D.Gamma(1.0, 1.0)),
            attempt(D.register_kl, 1, 2),
        ]  # fmt: skip
        for answer in answers:
            if isinstance(answer, Raised):
                answer.text = " ".join(answer.text.split())
        return answers

    compare(scenario)


def test_impossible_events():
    """Probabilities of 0 and 1, and supports that end inside each other."""

    def scenario(library: Any) -> Any:
        D = library.distributions
        edges = library.tensor([0.0, 0.3, 1.0])
        p, q = edges.reshape(3, 1).expand(3, 3), edges.expand(3, 3)
        uniform = D.Uniform(library.tensor([-0.5, 0.2, 0.0]), library.tensor([0.5, 2.0, 1.0]))
        others = [D.Beta(2.0, 3.0), D.ContinuousBernoulli(0.3), D.Exponential(2.0),
                  D.Gamma(2.0, 3.0), D.Pareto(0.1, 2.0), D.Uniform(-0.1, 1.0)]  # fmt: skip
        rows = library.tensor([[0.0, 1.0], [0.5, 0.5]])
        pareto = D.Pareto(library.ones(3), library.tensor([0.5, 1.5, 2.5]))
        return [
            D.kl_divergence(D.Bernoulli(p), D.Bernoulli(q)),
            D.kl_divergence(D.Categorical(rows), D.Categorical(rows.flip(0))),
            [D.kl_divergence(uniform, other) for other in others],
            [D.kl_divergence(D.Beta(2.0, 3.0), D.Uniform(a, b)) for a, b in ((0, 1), (0.1, 2.0))],
            [D.kl_divergence(pareto, q) for q in (*others[2:4], D.Normal(0.0, 1.0))],
        ]

    compare(scenario, 1e-4, 1e-5)


def test_nearest_class():
    """Classes of users take their parents' formulas; two that fit as well are said so."""

    def scenario(library: Any) -> Any:
        D = library.distributions

        class Mine(D.Normal):
            pass

        class Other(D.Normal):
            pass

        plain = D.kl_divergence(Mine(0.0, 1.0), Other(1.0, 2.0))
        D.register_kl(Mine, D.Normal)(lambda p, q: library.tensor(1.0))
        D.register_kl(D.Normal, Other)(lambda p, q: library.tensor(2.0))
        found = D.kl_divergence(Mine(0.0, 1.0), Other(1.0, 2.0))
        registry = D.kl._KL_REGISTRY
        for pair in ((Mine, D.Normal), (D.Normal, Other)):
            del registry[pair]
        return plain, found, attempt(D.kl_divergence, Mine(0.0, 1.0), D.Laplace(0.0, 1.0))

    compare(scenario)
