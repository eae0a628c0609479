"""What is drawn from a generator of a CUDA device: `PhiloxGenerator.numbers`."""

from __future__ import annotations

from flambeau._core.philox_fill import (
    bernoulli_,
    cauchy_,
    exponential_,
    geometric_,
    log_normal_,
    normal_,
    random_,
    random_from_to_,
    uniform_,
)
from flambeau._core.philox_sample import (
    bernoulli_tensor_,
    binomial,
    dirichlet,
    dropout_mask_,
    multinomial,
    poisson,
    randperm,
    rrelu_noise,
    standard_gamma,
)
from flambeau._core.random_numbers import __all__  # the CPU's stream draws under the same names
