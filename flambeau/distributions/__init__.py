"""`torch.distributions`: probabilities and samples, with gradients; imported when first used."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from flambeau._core.missing import lazily

HOME = {
    "distribution": "Distribution",
    "exp_family": "ExponentialFamily",
    "bernoulli": "Bernoulli",
    "beta": "Beta",
    "binomial": "Binomial",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Dirichlet",
    "exponential": "Exponential",
    "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma",
    "generalized_pareto": "GeneralizedPareto",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kumaraswamy": "Kumaraswamy",
    "lkj_cholesky": "LKJCholesky",
    "laplace": "Laplace",
    "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "poisson": "Poisson",
    "uniform": "Uniform",
    "von_mises": "VonMises",
    "weibull": "Weibull",
    "wishart": "Wishart",
    "transformed_distribution": "TransformedDistribution",
    "constraint_registry": "biject_to transform_to",
    "kl": "kl_divergence register_kl",
    "transforms": (
        "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
        "CumulativeDistributionTransform ExpTransform IndependentTransform "
        "LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform "
        "SigmoidTransform SoftplusTransform TanhTransform SoftmaxTransform StackTransform "
        "StickBreakingTransform Transform identity_transform"
    ),
    "constraints": "",
    "utils": "",
}
"""File -> the names of this package that are in it."""

_FILE_OF = {name: file for file, names in HOME.items() for name in names.split()}

__all__ = list(_FILE_OF)


__getattr__ = lazily(__name__, _FILE_OF, HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILE_OF, *HOME})


class _Whole(ModuleType):
    """Who looks through the package's names, as Pyro does, finds all of them."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        own: dict[str, Any] = ModuleType.__dict__["__dict__"].__get__(self)
        for name in __all__:
            if name not in own:
                __getattr__(name)
        return own


sys.modules[__name__].__class__ = _Whole
