"""Normalisation by the root mean square: `rms_norm`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.settings import warn_once
from flambeau._ops.launching.memory_formats import in_format_of, is_suggested_last
from flambeau._ops.launching.precision import refuse
from flambeau._ops.normalization.batch import row_dots
from flambeau._ops.normalization.samples import (
    check_normalized_shape,
    check_shape_type,
    flat_rows,
    wanted_gradients,
)
from flambeau._ops.reductions.sums import fused
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, internal
from flambeau._ops.table.pointwise import wants_grad


def _rms_gradients(grad: Any, input: Any, normalized_shape: Any, weight: Any, eps: float | None,
                   result1: Any, wanted: Any) -> Any:  # fmt: skip
    if wants_grad((grad, input, weight)):
        return _composed_rms_norm(grad, input, len(normalized_shape), weight, eps, wanted)
    return ops._rms_norm_backward(grad, input, normalized_shape, result1, weight, wanted)


def _composed_rms_norm(grad: Any, input: Any, count: int, weight: Any, eps: float | None,
                       mask: Any) -> Any:  # fmt: skip
    """The gradients by public operators, from the input alone."""
    dims = list(range(input.dim() - count, input.dim()))
    outer = list(range(input.dim() - count))
    eps = dt.finfo(input.dtype).eps if eps is None else eps
    rstd = (input.pow(2).mean(dims, keepdim=True) + eps).rsqrt()
    normalised = input * rstd
    scaled = grad if weight is None else grad * weight
    along = (scaled * normalised).mean(dims, keepdim=True)
    of_weight = grad * normalised
    return (
        rstd * (scaled - normalised * along) if mask[0] else None,
        (of_weight.sum(outer) if outer else of_weight) if mask[1] else None,
    )


def _rms_parts(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    """Both results by public operators."""
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    eps = dt.finfo(input.dtype).eps if eps is None else eps
    rstd = (input.pow(2).mean(dims, keepdim=True) + eps).rsqrt()
    result = input * rstd
    return (result if weight is None else result * weight), rstd


@internal(
    "_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)"
    " -> (Tensor, Tensor)",
    batch=(0, None),
    node="MulBackward0",
    saved_names=dict.fromkeys(("input", "weight", "result1", "normalized_shape", "eps")),
    nondifferentiable=("result1",),
    backward={("input", "weight"): _rms_gradients},
    decomposition=_rms_parts,
)
def rms_norm_kernel(input: np.ndarray, normalized_shape: Sequence[int], weight: np.ndarray | None,
                    eps: float | None) -> Any:  # fmt: skip
    """Rows over their root mean square, times the weight; and what they were multiplied by."""
    eps = float(np.finfo(input.dtype).eps) if eps is None else eps
    kernels = fused("norm", input)
    if kernels is not None:
        count = math.prod(normalized_shape)
        result, rstd = kernels.rms_norm(input, count, weight, eps, input.dtype)
        return in_format_of(result, input), rstd
    rows = flat_rows(input, len(normalized_shape))
    rstd = 1 / np.sqrt(row_dots(rows, rows) / max(rows.shape[1], 1) + rows.dtype.type(eps))
    result = rows * rstd[:, None]
    if weight is not None:
        result *= weight.reshape(-1)
    return in_format_of(result.reshape(input.shape), input), rstd


@internal(
    "_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd,"
    " Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
)
def rms_norm_backward(grad_out: np.ndarray, input: np.ndarray, normalized_shape: Sequence[int],
                      rstd: np.ndarray, weight: np.ndarray | None,
                      output_mask: Any) -> Any:  # fmt: skip
    """Gradients of input and weight."""
    shape = tuple(normalized_shape)
    kernels = fused("norm", input)
    if kernels is not None:
        found = kernels.rms_norm_backward(input, grad_out, math.prod(shape), weight, rstd)
        return wanted_gradients(found, input.dtype, shape, output_mask)
    rows, grad = flat_rows(input, len(shape)), flat_rows(grad_out, len(shape))
    normalised = rows * rstd[:, None]
    scaled = grad if weight is None else grad * weight.reshape(-1)
    along = row_dots(scaled, normalised) / max(rows.shape[1], 1)
    result = (scaled - normalised * along[:, None]) * rstd[:, None]
    of_weight = np.add.reduce(grad * normalised, 0, np.float64)
    return wanted_gradients((result.reshape(input.shape), of_weight), input.dtype, shape,
                            output_mask)  # fmt: skip


def _in_one_row(input: Any, weight: Any) -> bool:
    """Whether all is computed in one type: half types, complex numbers and mixtures are not."""
    data = input._data
    if data.dtype.kind != "f" or data.dtype.itemsize < 4:
        return False
    return weight is None or weight._data.dtype == data.dtype


def _warn_of_mixture(input: Any, weight: Any) -> None:
    if input.dtype is weight.dtype or input.is_complex():
        return
    given, other = (tensor.dtype.c_name for tensor in (input, weight))
    warn_once(f"Mismatch dtype between input and weight: input dtype = {given}, weight dtype = "
              f"{other}, Cannot dispatch to fused implementation.", about="rms_norm")  # fmt: skip


@composite(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)"
    " -> Tensor",
    fused=True,
    autocast="cuda=float32",
    method=False,
)
def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Any:
    """`input / sqrt(mean(input ** 2) + eps) * weight` over the last dims.

    Without `eps` it is the machine epsilon of the type that is computed in.

    >>> import flambeau as torch
    >>> torch.rms_norm(torch.tensor([[3., 4.]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    check_shape_type("rms_norm", normalized_shape)
    check_normalized_shape(input.shape, normalized_shape, weight, None, "")
    if input._data.dtype.kind not in "fVc":
        raise refuse("rms_norm", input._data.dtype)
    if _in_one_row(input, weight):
        return ops._rms_norm(input, normalized_shape, weight, eps)[0]
    if weight is not None:
        _warn_of_mixture(input, weight)
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    raised = input.float() if input.dtype in dt.HALVES else input
    if eps is None:
        eps = dt.finfo(raised.dtype.to_real()).eps
    rstd = (raised.pow(2).mean(dims, keepdim=True) + eps).rsqrt()
    result = raised * rstd
    if weight is not None:
        result = result * weight
    if not is_suggested_last(input._data):
        result = result.contiguous()
    return result if result.dtype is input.dtype else result.to(input.dtype)
