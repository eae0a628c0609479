"""What is drawn from a generator of the CPU: `Generator.numbers`."""

from __future__ import annotations

from flambeau._core.random_fill import (
    bernoulli_,
    bernoulli_tensor_,
    cauchy_,
    dropout_mask_,
    exponential_,
    geometric_,
    log_normal_,
    normal_,
    uniform_,
)
from flambeau._core.random_integer import random_, random_from_to_
from flambeau._core.random_sample import (
    binomial,
    dirichlet,
    multinomial,
    poisson,
    randperm,
    rrelu_noise,
    standard_gamma,
)

__all__ = [
    "bernoulli_", "bernoulli_tensor_", "binomial", "cauchy_", "dirichlet", "dropout_mask_",
    "exponential_", "geometric_", "log_normal_", "multinomial", "normal_", "poisson", "random_",
    "random_from_to_", "randperm", "rrelu_noise", "standard_gamma", "uniform_",
]  # fmt: skip
