"""Functions with an inverse and a Jacobian, for samples and for unconstrained parameters."""

from __future__ import annotations

from flambeau.distributions import constraints
from flambeau.distributions.transforms.base import Transform, _InverseTransform
from flambeau.distributions.transforms.matrices import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from flambeau.distributions.transforms.numbers import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    _clipped_sigmoid,
)
from flambeau.distributions.transforms.parts import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    identity_transform,
)
from flambeau.distributions.transforms.simplex import SoftmaxTransform, StickBreakingTransform
from flambeau.distributions.utils import _sum_rightmost

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftplusTransform", "TanhTransform", "SoftmaxTransform",
    "StackTransform", "StickBreakingTransform", "Transform", "identity_transform",
]  # fmt: skip

# Users see the classes here, not in the files that hold them.
for _name in __all__[:-1]:
    globals()[_name].__module__ = __name__
