"""The operators that distributions draw with, by themselves: samples, derivatives, words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.side_by_side import attempt, compare
from tests.random_seeds import generator


def drawn(name: str) -> np.ndarray:
    rng = np.random.default_rng(generator("rows", name).getrandbits(64))
    return np.exp(rng.uniform(-3, 4, (4, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples(dtype: str):
    array = drawn(dtype).astype(dtype)

    def scenario(library: Any) -> Any:
        a = library.tensor(array, requires_grad=True)
        counts = library.tensor(np.floor(array * 9))
        chances = library.tensor((array % 1)[0])
        own = library.Generator().manual_seed(5)
        return [
            library._standard_gamma(a), library._sample_dirichlet(a.detach()),
            library.binomial(counts, chances), library.binomial(counts, chances, generator=own),
            library._standard_gamma(a, generator=own), library._standard_gamma(a[:0]),
            library.multinomial(chances.expand(5, 3), 1, True),
            library.multinomial(a.detach().T, 1), library.rand(1),
        ]  # fmt: skip

    compare(scenario, 1e-6, 1e-7)


def test_derivatives():
    array = drawn("slopes")

    def scenario(library: Any) -> Any:
        a = library.tensor(array, requires_grad=True)
        x = library._standard_gamma(a)
        shares = library._sample_dirichlet(a.detach())
        total = array.sum(-1, keepdims=True) + 0 * array
        slopes = library._dirichlet_grad(shares, a.detach(), library.tensor(total))
        return library.autograd.grad(x.sum(), a), slopes

    compare(scenario, 1e-2, 1e-3)


def test_words():
    def scenario(library: Any) -> Any:
        a = library.tensor([1.0, 2.0], requires_grad=True)
        x = library.tensor([0.5, 0.2])
        whole = library.tensor([1, 2])
        return [
            attempt(library._standard_gamma, whole), attempt(library.binomial, whole, x),
            attempt(library.binomial, x, whole), attempt(library.binomial, x.double(), x),
            attempt(library.binomial, x, library.ones(3)),
            attempt(library._standard_gamma_grad, a, x.double()),
            attempt(library._standard_gamma_grad(a, x).sum().backward),
            attempt(library._sample_dirichlet(a).sum().backward),
            attempt(library.binomial(a, x).sum().backward),
            attempt(library._standard_gamma, a.half()),
        ]  # fmt: skip

    compare(scenario)


def test_mixed_types_of_logistic_losses():
    """The target gives the type, as `Bernoulli.log_prob` of another type shows."""

    def scenario(library: Any) -> Any:
        answers = []
        for one in ("float32", "float64", "bfloat16"):
            for other in ("float32", "float64", "bfloat16"):
                logits = library.ones(2, dtype=getattr(library, one))
                target = library.ones(2, dtype=getattr(library, other))
                loss = library.nn.functional.binary_cross_entropy_with_logits
                answers.append(attempt(loss, logits, target, reduction="none").dtype)
                answers.append(attempt(loss, logits, target).dtype)
        return answers

    compare(scenario)


def test_cholesky_of_nan():
    def scenario(library: Any) -> Any:
        nan = float("nan")
        matrices = [[[nan]], [[1.0, 0.0], [nan, 1.0]], [[[4.0, 0.0], [1.0, nan]], [[1.0, 0.0]] * 2]]
        made = [library.tensor(matrix) for matrix in matrices]
        return [(library.linalg.cholesky_ex(m), attempt(library.linalg.cholesky, m)) for m in made]

    compare(scenario)


def test_sizes_of_no_dims():
    def scenario(library: Any) -> Any:
        number = library.tensor(1.0)
        return [attempt(getattr(number, name), dim) for name in ("size", "stride")
                for dim in (0, -1, 3)]  # fmt: skip

    compare(scenario)
