"""Gamma, Dirichlet and binomial numbers, and how a drawn number moves with its parameter.

Samplers that reject have no derivative of their own. The implicit one takes its place: with the
uniform number behind a sample held fixed, the sample moves by `-(dF/da) / p`, F being the
distribution function and p the density (Figurnov, Mohamed and Mnih, 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.elementwise.arithmetic import underived
from flambeau._ops.random.draws import stream_of
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import kernel
from flambeau._ops.table.pointwise import broadcast_shape


def _gamma_slope(grad: Any, self: Any, result: Any) -> Any:
    return grad * ops._standard_gamma_grad(self, result)


@kernel("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
        batch="elements", method=False,
        backward={"self": _gamma_slope})  # fmt: skip
def _standard_gamma(concentration: np.ndarray, generator: Any) -> np.ndarray:
    """Gamma numbers of scale 1."""
    stream = stream_of(generator)
    return stream.numbers.standard_gamma(concentration, stream)  # type: ignore[no-any-return]


@kernel("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
        batch="elements", method=False,
        backward={"self": underived("_standard_gamma_grad"),
                  "output": underived("_standard_gamma_grad")})  # fmt: skip
def _standard_gamma_grad(concentration: np.ndarray, output: np.ndarray) -> np.ndarray:
    """How gamma numbers move with their concentration."""
    from flambeau._ops.random import implicit_gradients as implicit_slopes

    _same_type(concentration, output)
    return implicit_slopes.gamma(concentration, output)


@kernel(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    method=False,
    underived=True,
)
def _sample_dirichlet(concentration: np.ndarray, generator: Any) -> np.ndarray:
    """Shares that sum to one along the last dim."""
    stream = stream_of(generator)
    return stream.numbers.dirichlet(concentration, stream)  # type: ignore[no-any-return]


@kernel(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", method=False, underived=True
)
def _dirichlet_grad(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """How a share moves with its concentration, over what the other shares have."""
    from flambeau._ops.random import implicit_gradients as implicit_slopes

    return implicit_slopes.dirichlet(x, alpha, total)


@kernel(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    batch="elements",
    method=False,
    underived=True,
)
def binomial(count: np.ndarray, prob: np.ndarray, generator: Any) -> np.ndarray:
    """Successes in `count` trials of probability `prob` each.

    Both have one shape, which is that of the result.

    >>> import flambeau as torch
    >>> torch.binomial(torch.tensor([10., 10.]), torch.tensor([0., 1.]))
    tensor([ 0., 10.])
    """
    for name, values in (("count", count), ("prob", prob)):
        if values.dtype.kind not in "fV":
            kind = dt.from_numpy_dtype(values.dtype).scalar_name
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {kind}"
            )
    _same_type(count, prob)
    shape = broadcast_shape([count.shape, prob.shape])
    counts, chances = np.broadcast_to(count, shape), np.broadcast_to(prob, shape)
    stream = stream_of(generator)
    return stream.numbers.binomial(counts, chances, stream)  # type: ignore[no-any-return]


def _same_type(first: np.ndarray, second: np.ndarray) -> None:
    if first.dtype != second.dtype:
        found, expected = (dt.from_numpy_dtype(x.dtype).scalar_name for x in (second, first))
        raise RuntimeError(f"Found dtype {found} but expected {expected}")
