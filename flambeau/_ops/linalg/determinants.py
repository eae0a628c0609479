"""Determinants, their logarithms, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.linalg import by_name as kernels
from flambeau._ops.linalg.checks import check_floating, check_square
from flambeau._ops.linalg.systems import adjoint, expanded, fresh, fresh_all, named
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import EXACT


def _det_backward(grad: Any, A: Any, result: Any) -> Any:
    """conj(det) A^-H G, or the adjugate's adjoint by the SVD where a matrix is singular."""
    if not A._data.size:
        return ops.zeros_like(A)
    if A._data.shape[-1] == 1:
        return ops.expand(expanded(grad), A._data.shape)
    if (result._data != 0).all():
        inverse = ops.linalg.inv_ex(A)[0]
        return expanded(grad * conj(result)) * adjoint(inverse)
    left, values, right = ops.linalg.svd(A, False)
    phase = ops.linalg.det(left) * ops.linalg.det(right)
    size = values._data.shape[-1]
    others = [_product_without(values, i, size) for i in range(size)]
    scaled = left * ops.stack(others, -1).unsqueeze(-2)
    return expanded(grad * conj(phase)) * ops.matmul(scaled, right)


def _product_without(values: Any, position: int, size: int) -> Any:
    kept = [values.select(-1, i) for i in range(size) if i != position]
    return ops.stack(kept, -1).prod(-1) if kept else ops.ones_like(values.select(-1, 0))


@kernel(
    "linalg_det(Tensor A) -> Tensor",
    out_writer="_linalg_det",
    batch=(2,),
    namespace="linalg",
    public="det",
    out=True,
    out_type=EXACT,
    backward={"A": _det_backward},
)
def linalg_det(a: np.ndarray) -> np.ndarray:
    """The determinants of square matrices.

    >>> import flambeau as torch
    >>> torch.linalg.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    return fresh(kernels.det(a))


@composite("det(Tensor self) -> Tensor")
def det(input: Any) -> Any:
    """The determinants of square matrices: `linalg.det`.

    >>> import flambeau as torch
    >>> torch.det(torch.tensor([[1., 2.], [3., 4.]]))
    tensor(-2.)
    """
    return ops.linalg.det(input)


def _slogdet_backward(grads: Any, A: Any, sign: Any, given: Any) -> Any:
    """w A^-H with w = g_log - i Im(conj(g_sign) sign): see d log det = tr(A^-1 dA).

    The sign of a real matrix has no gradient."""
    if given[1] is None and A._data.dtype.kind != "c":
        return None
    of_sign, of_log = grads
    weight = of_log
    if A._data.dtype.kind == "c":
        weight = of_log - 1j * (conj(of_sign) * sign).imag
    return expanded(weight) * adjoint(ops.linalg.inv_ex(A)[0])


@kernel(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    batch=(2,),
    namespace="linalg",
    public="slogdet",
    out=True,
    backward={"A": _slogdet_backward},
)
def linalg_slogdet(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(sign, log |det|) of square matrices.

    >>> import flambeau as torch
    >>> torch.linalg.slogdet(torch.tensor([[-1.0, 0.0], [0.0, 1.0]])).sign
    tensor(-1.)
    """
    return fresh_all(kernels.slogdet(a))


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)")
def slogdet(input: Any, *, out: Any = None) -> Any:
    """(sign, log |det|) of square matrices: `linalg.slogdet`.

    >>> import flambeau as torch
    >>> torch.slogdet(torch.tensor([[1., 2.], [3., 4.]]))
    torch.return_types.slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.6931))
    """
    result = named(slogdet, *ops.linalg.slogdet(input))
    return write(slogdet, out, result)


@composite("logdet(Tensor self) -> Tensor")
def logdet(input: Any) -> Any:
    """The logarithm of the determinant; NaN where a real matrix has a negative one.

    >>> import flambeau as torch
    >>> torch.logdet(torch.tensor([[2., 0.], [0., 3.]]))
    tensor(1.7918)
    """
    check_square(input._data, "logdet")
    check_floating(input._data, "logdet", half_too=False)
    sign, logabsdet = ops.linalg.slogdet(input)
    if input._data.dtype.kind == "c":
        return ops.log(sign) + logabsdet
    return ops.where(sign == -1, math.nan, logabsdet)
