"""How each distribution is made from drawn parameters, in either library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def real(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.exp(rng.uniform(-1.2, 1.5, shape))


def above(limit: float) -> Draw:
    return lambda rng, shape: limit + positive(rng, shape)


def unit(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.05, 0.95, shape)


def far_from_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.4, 2.5, shape)


def near_half(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Where the continuous Bernoulli distribution has series, or far from there: between the two
    its formulas lose most digits.
    """
    near, far = rng.uniform(-9e-4, 9e-4, shape), 0.17 * far_from_zero(rng, shape)
    return 0.5 + np.where(rng.random(shape) < 0.5, near, far)


def counts(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(1, 12, shape)


def shares(size: int) -> Draw:
    return lambda rng, shape: rng.dirichlet(np.ones(size), shape)


def of(draw: Draw, *event: int) -> Draw:
    """Events of such a shape."""
    return lambda rng, shape: draw(rng, (*shape, *event))


def definite(size: int) -> Draw:
    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        root = rng.normal(size=(*shape, size, size))
        return root @ root.swapaxes(-1, -2) + 0.5 * np.eye(size)

    return draw


def factor(size: int) -> Draw:
    return lambda rng, shape: np.linalg.cholesky(definite(size)(rng, shape))


@dataclass(frozen=True)
class Case:
    """A name, how to make it, and the parameters that it needs."""

    name: str
    make: Callable[..., Any]
    parameters: dict[str, Draw] = field(default_factory=dict)
    vary: bool = True
    """May parameters have fewer dims than the batch?"""

    def __str__(self) -> str:
        return self.name


def simple(name: str, label: str = "", **parameters: Draw) -> Case:
    """A distribution that is made from its parameters by name."""

    def make(D: Any, **values: Any) -> Any:
        return getattr(D, name)(**values)

    return Case(label or name, make, parameters)


def with_temperature(name: str, **parameters: Draw) -> Case:
    def make(D: Any, temperature: Any, **values: Any) -> Any:
        return getattr(D, name)(temperature, **values)

    return Case(f"{name} {next(iter(parameters))}", make, {"temperature": scalar, **parameters})


def scalar(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return positive(rng, ())


def either(name: str, probs: Draw, logits: Draw, **more: Draw) -> list[Case]:
    """By probabilities, and by logits."""
    return [
        simple(name, f"{name} probs", **more, probs=probs),
        simple(name, f"{name} logits", **more, logits=logits),
    ]


def mixture(D: Any, weights: Any, loc: Any, scale: Any) -> Any:
    return D.MixtureSameFamily(D.Categorical(weights), D.Normal(loc, scale))


def mixture_of_vectors(D: Any, weights: Any, loc: Any, scale: Any) -> Any:
    return D.MixtureSameFamily(D.Categorical(weights), D.Independent(D.Normal(loc, scale), 1))


def transformed(D: Any, loc: Any, scale: Any) -> Any:
    steps = [D.AffineTransform(loc, scale), D.SigmoidTransform(), D.AffineTransform(1.0, -2.0)]
    return D.TransformedDistribution(D.Laplace(loc, scale), steps)


def broken_stick(D: Any, loc: Any, scale: Any) -> Any:
    steps = [D.AffineTransform(0.1, 0.3), D.StickBreakingTransform()]
    return D.TransformedDistribution(D.Normal(loc, scale), steps)


def uniform(D: Any, low: Any, width: Any) -> Any:
    return D.Uniform(low, low + width)


VECTOR = {"loc": of(real, 3)}
CASES = [
    *either("Bernoulli", unit, real),
    simple("Beta", concentration1=positive, concentration0=positive),
    *either("Binomial", unit, real, total_count=counts),
    *either("Categorical", of(unit, 4), of(real, 4)),
    simple("Cauchy", loc=real, scale=positive),
    simple("Chi2", df=positive),
    *either("ContinuousBernoulli", near_half, far_from_zero),
    simple("Dirichlet", concentration=of(positive, 3)),
    simple("Exponential", rate=positive),
    simple("FisherSnedecor", df1=positive, df2=positive),
    simple("Gamma", concentration=positive, rate=positive),
    simple("GeneralizedPareto", loc=real, scale=positive, concentration=real),
    *either("Geometric", unit, real),
    simple("Gumbel", loc=real, scale=positive),
    simple("HalfCauchy", scale=positive),
    simple("HalfNormal", scale=positive),
    Case("Independent", lambda D, loc, scale: D.Independent(D.Normal(loc, scale), 1),
         {"loc": of(real, 3), "scale": of(positive, 3)}),
    Case("Independent of Bernoulli", lambda D, probs: D.Independent(D.Bernoulli(probs), 0),
         {"probs": unit}),
    simple("InverseGamma", concentration=positive, rate=positive),
    simple("Kumaraswamy", concentration1=positive, concentration0=positive),
    Case("LKJCholesky", lambda D, concentration: D.LKJCholesky(3, concentration),
         {"concentration": positive}),
    simple("Laplace", loc=real, scale=positive),
    simple("LogNormal", loc=real, scale=positive),
    simple("LogisticNormal", loc=of(real, 3), scale=of(positive, 3)),
    simple("LowRankMultivariateNormal", **VECTOR, cov_factor=of(real, 3, 2),
           cov_diag=of(positive, 3)),
    Case("MixtureSameFamily", mixture,
         {"weights": of(unit, 4), "loc": of(real, 4), "scale": of(positive, 4)}, vary=False),
    Case("MixtureSameFamily of vectors", mixture_of_vectors,
         {"weights": of(unit, 4), "loc": of(real, 4, 2), "scale": of(positive, 4, 2)}, vary=False),
    Case("Multinomial probs", lambda D, probs: D.Multinomial(7, probs), {"probs": of(unit, 4)}),
    Case("Multinomial logits", lambda D, logits: D.Multinomial(7, logits=logits),
         {"logits": of(real, 4)}),
    simple("MultivariateNormal", "MultivariateNormal covariance", **VECTOR,
           covariance_matrix=definite(3)),
    simple("MultivariateNormal", "MultivariateNormal precision", **VECTOR,
           precision_matrix=definite(3)),
    simple("MultivariateNormal", "MultivariateNormal factor", **VECTOR, scale_tril=factor(3)),
    *either("NegativeBinomial", unit, real, total_count=counts),
    simple("Normal", loc=real, scale=positive),
    *either("OneHotCategorical", of(unit, 4), of(real, 4)),
    *either("OneHotCategoricalStraightThrough", of(unit, 4), of(real, 4)),
    simple("Pareto", scale=positive, alpha=positive),
    with_temperature("RelaxedBernoulli", probs=unit),
    with_temperature("RelaxedBernoulli", logits=real),
    with_temperature("RelaxedOneHotCategorical", probs=of(unit, 4)),
    with_temperature("RelaxedOneHotCategorical", logits=of(real, 4)),
    simple("StudentT", df=positive, loc=real, scale=positive),
    simple("Poisson", rate=positive),
    Case("Uniform", uniform, {"low": real, "width": positive}),
    simple("VonMises", loc=real, concentration=positive),
    simple("Weibull", scale=positive, concentration=positive),
    simple("Wishart", "Wishart covariance", df=above(3.0), covariance_matrix=definite(3)),
    simple("Wishart", "Wishart precision", df=above(3.0), precision_matrix=definite(3)),
    simple("Wishart", "Wishart factor", df=above(3.0), scale_tril=factor(3)),
    Case("TransformedDistribution", transformed, {"loc": real, "scale": positive}),
    Case("TransformedDistribution of vectors", broken_stick,
         {"loc": of(real, 3), "scale": of(positive, 3)}),
]  # fmt: skip

BATCHES = [(), (1,), (3,), (2, 3)]


@dataclass(frozen=True)
class Drawn:
    """Parameters for a case, as arrays."""

    case: Case
    arrays: dict[str, np.ndarray]
    batch: tuple[int, ...]
    shorter: frozenset[str] = frozenset()
    """Parameters without the first dim of the batch."""

    def whole(self) -> Drawn:
        """The same numbers, repeated where a parameter lacks a dim."""
        arrays = {
            name: np.repeat(array[None], self.batch[0], 0) if name in self.shorter else array
            for name, array in self.arrays.items()
        }
        return Drawn(self.case, arrays, self.batch)

    def parameters(self, library: Any) -> dict[str, Any]:
        """As leaves of the library."""
        made = {}
        for name, array in self.arrays.items():
            tensor = library.tensor(array)
            made[name] = tensor.requires_grad_() if array.dtype.kind == "f" else tensor
        return made

    def make(self, library: Any, parameters: dict[str, Any] | None = None) -> Any:
        values = self.parameters(library) if parameters is None else parameters
        return self.case.make(library.distributions, **values)


def draw(
    case: Case, rng: np.random.Generator, dtype: str, batch: tuple[int, ...] | None = None
) -> Drawn:
    """Parameters of a drawn batch shape; some have fewer dims, and are broadcast."""
    if batch is None:
        batch = BATCHES[rng.integers(len(BATCHES))]
    arrays, shortened = {}, set()
    for number, (name, sample) in enumerate(case.parameters.items()):
        shorter = number > 0 and case.vary and rng.random() < 0.3 and bool(batch)
        array = np.asarray(sample(rng, batch[1:] if shorter else batch))
        arrays[name] = array.astype(dtype) if array.dtype.kind == "f" else array
        if shorter:
            shortened.add(name)
    return Drawn(case, arrays, batch, frozenset(shortened))
