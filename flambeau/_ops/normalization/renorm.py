"""`renorm`: slices along a dim scaled down to a largest norm."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.reductions.norms import norm_backward
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite
from flambeau._ops.table.outputs import EXACT
from flambeau._tensor.tensor import Tensor

TINY = 1e-7
"""What is added to a norm before it divides."""


def _norms(input: Any, p: Any, dim: int) -> tuple[Any, list[int]]:
    """The norm of each slice along `dim`, and the other dims."""
    ndim = input._data.ndim
    kept = wrap_dim(dim, ndim)
    others = [d for d in range(ndim) if d != kept]
    wide = dt.float32 if input._data.dtype in dt.NUMPY_HALVES else None
    return ops.linalg.vector_norm(input, p, others, True, dtype=wide), others


def _renorm_backward(grad: Any, self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Where a slice x is scaled: maxnorm (grad / n - (grad . x) d|x| / n**2), n = |x| + 1e-7."""
    norm, others = _norms(self, p, dim)
    if self.dtype.is_floating_point:
        self, grad = self.to(norm.dtype), grad.to(norm.dtype)
    product = conj(self) * grad
    along = ops.sum(product.real if self.dtype.is_complex else product, others, True)
    slope = norm_backward(along, self, p, norm, others, True)
    inverse = (norm + TINY).reciprocal()
    return ops.where(norm > maxnorm, maxnorm * inverse * (grad - inverse * slope), grad)


def _check(input: Tensor, p: Any, maxnorm: Any) -> None:
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input._data.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input._data.ndim} "
                           "dimensions")  # fmt: skip


@composite(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    autocast="cuda=float32",
    inplace=True,
    out=True,
    out_type=EXACT,
    backward={"self": _renorm_backward},
)
def renorm(input: Tensor, p: Any, dim: int, maxnorm: Any) -> Any:
    """Each slice along `dim` whose p-norm is above `maxnorm`, scaled down to it.

    >>> import flambeau as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000]])
    """
    _check(input, p, maxnorm)
    norm, _ = _norms(input, p, dim)
    factor = ops.where(norm > maxnorm, maxnorm / (norm + TINY), 1.0)
    scaled = input * (factor if input.dtype.is_complex else factor.to(input.dtype))
    return scaled.contiguous()
