"""Softmax and its relatives, stable for large inputs and for rows of -inf."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.dims import wrap_dim
from flambeau._ops.namespace import ops
from flambeau._ops.op import composite, kernel, reduction
from flambeau._ops.outputs import EXACT
from flambeau._ops.reductions import fused
from flambeau._ops.templates.precision import narrow, refuse, widen

BLOCK = 1 << 16
"""Elements of a part of a large input: several passes over it stay in the cache."""


def _checked(data: np.ndarray, dim: int, dtype: dt.dtype | None, name: str) -> Any:
    """The wrapped dim and the type of the result."""
    result = data.dtype if dtype is None else dtype.numpy_dtype
    dim = wrap_dim(dim, data.ndim)
    if result.kind not in "fV":
        last = "_lastdim" if dim >= data.ndim - 1 else ""
        raise refuse(f"{name}{last}_kernel_impl", result)
    return dim, result


def _rounded(data: np.ndarray, result: np.dtype[Any]) -> np.ndarray:
    """The values in a half type that was asked for: `dtype` casts the input first."""
    if result in dt.NUMPY_HALVES and data.dtype != result:
        return narrow(data, result)
    return data


def _kernels(data: np.ndarray, result: np.dtype[Any]) -> Any:
    """The compiled forms, where they are the faster ones; else None."""
    return fused("softmax", data, result) if data.ndim else None


def _widened(data: np.ndarray, result: np.dtype[Any]) -> np.ndarray:
    """The values in the type to compute in."""
    working = np.dtype(np.float32) if result in dt.NUMPY_HALVES else result
    if data.dtype != working:
        data = data.astype(working)
    return data


@reduction(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    out_type=EXACT,
    autocast="cuda=float32_or_dtype",
    backward={
        "self": lambda grad, result, dim: ops._softmax_backward_data(
            grad, result, dim, result.dtype
        ),
    },
)
def softmax(data: np.ndarray, dim: int, dtype: dt.dtype | None) -> np.ndarray:
    """`exp(x) / exp(x).sum(dim)`; `dtype` casts the input first.

    >>> import flambeau as torch
    >>> torch.softmax(torch.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    dim, result = _checked(data, dim, dtype, "softmax")
    if dtype is not None:
        data = _rounded(data, result)
    kernels = _kernels(data, result)
    if kernels is not None:
        return kernels.softmax(data, dim, result)
    data = _widened(data, result)
    if data.size == 0:
        return np.empty(data.shape, result)
    if data.ndim == 0:
        return np.asarray(np.exp(data - data), result)
    values = np.empty(data.shape, data.dtype)
    _in_blocks(_softmax_rows, dim, data, values)
    return values if result == values.dtype else narrow(values, result)


def _softmax_rows(dim: int, data: np.ndarray, out: np.ndarray) -> None:
    np.subtract(data, np.maximum.reduce(data, axis=dim, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= np.add.reduce(out, axis=dim, keepdims=True)


def _in_blocks(function: Callable[..., None], dim: int, *arrays: np.ndarray) -> None:
    """Call `function(dim, *arrays)` on parts along the first dim that stay in the cache."""
    first = arrays[0]
    if first.size <= BLOCK or dim == 0:
        function(dim, *arrays)
        return
    step = max(BLOCK * first.shape[0] // first.size, 1)
    for start in range(0, first.shape[0], step):
        function(dim, *[array[start : start + step] for array in arrays])


@reduction(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    out_type=EXACT,
    autocast="cuda=float32_or_dtype",
    backward={
        "self": lambda grad, result, dim: ops._log_softmax_backward_data(
            grad, result, dim, result.dtype
        ),
    },
)
def log_softmax(data: np.ndarray, dim: int, dtype: dt.dtype | None) -> np.ndarray:
    """`x - logsumexp(x, dim)`; `dtype` casts the input first."""
    dim, result = _checked(data, dim, dtype, "log_softmax")
    if dtype is not None:
        data = _rounded(data, result)
    kernels = _kernels(data, result)
    if kernels is not None:
        return kernels.log_softmax(data, dim, result)
    data = _widened(data, result)
    if data.size == 0:
        return np.empty(data.shape, result)
    if data.ndim == 0:
        return np.asarray(data - data, result)
    values = log_softmax_array(data, dim)
    return values if result == values.dtype else narrow(values, result)


def log_softmax_array(data: np.ndarray, dim: int) -> np.ndarray:
    """Logarithms of the softmax of a float array, in new memory."""
    values = np.empty(data.shape, data.dtype)
    _in_blocks(_log_softmax_rows, dim, data, values)
    return values


def _log_softmax_rows(dim: int, data: np.ndarray, out: np.ndarray) -> None:
    np.subtract(data, np.maximum.reduce(data, axis=dim, keepdims=True), out=out)
    total = np.add.reduce(np.exp(out), axis=dim, keepdims=True)
    out -= np.log(total, out=total)


# ---- gradients


def _softmax_double_backward(grad: Any, grad_output: Any, output: Any, dim: int) -> Any:
    """d/d output of `output * (g - sum(g * output))`."""
    inner = (grad_output * output).sum(dim, keepdim=True)
    outer = (grad * output).sum(dim, keepdim=True)
    return grad * (grad_output - inner) - grad_output * outer


@kernel(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)"
    " -> Tensor",
    node="SoftmaxBackwardDataBackward0",
    backward={
        "grad_output": lambda grad, output, dim, input_dtype: ops._softmax_backward_data(
            grad.to(output.dtype), output, dim, input_dtype
        ),
        "output": _softmax_double_backward,
    },
)
def softmax_backward_data(
    grad_output: np.ndarray, output: np.ndarray, dim: int, input_dtype: dt.dtype
) -> np.ndarray:
    """`output * (grad - (grad * output).sum(dim))`."""
    kernels = _kernels(output, grad_output.dtype)
    if kernels is not None:
        dim = wrap_dim(dim, output.ndim)
        return kernels.softmax_backward(output, grad_output, dim, input_dtype.numpy_dtype)
    grad, values, dim = _pair(grad_output, output, dim)
    result = np.empty(values.shape, values.dtype)
    _in_blocks(_softmax_gradient, dim, values, grad, result)
    return _finished(result, output, input_dtype)


def _softmax_gradient(dim: int, values: np.ndarray, grad: np.ndarray, out: np.ndarray) -> None:
    np.multiply(grad, values, out=out)
    total = np.add.reduce(out, axis=dim, keepdims=True)
    out -= np.multiply(values, total)


@kernel(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim,"
    " ScalarType input_dtype) -> Tensor",
    node="LogSoftmaxBackwardDataBackward0",
    backward={
        "grad_output": lambda grad, output, dim: (
            grad - (grad * output.exp()).sum(dim, keepdim=True)
        ),
        "output": lambda grad, grad_output, output, dim: (
            -grad * output.exp() * grad_output.sum(dim, keepdim=True)
        ),
    },
)
def log_softmax_backward_data(
    grad_output: np.ndarray, output: np.ndarray, dim: int, input_dtype: dt.dtype
) -> np.ndarray:
    """`grad - exp(output) * grad.sum(dim)`."""
    kernels = _kernels(output, grad_output.dtype)
    if kernels is not None:
        dim = wrap_dim(dim, output.ndim)
        return kernels.log_softmax_backward(output, grad_output, dim, input_dtype.numpy_dtype)
    grad, values, dim = _pair(grad_output, output, dim)
    result = np.empty(values.shape, values.dtype)
    _in_blocks(_log_softmax_gradient, dim, values, grad, result)
    return _finished(result, output, input_dtype)


def _log_softmax_gradient(dim: int, values: np.ndarray, grad: np.ndarray, out: np.ndarray) -> None:
    np.exp(values, out=out)
    out *= np.add.reduce(grad, axis=dim, keepdims=True)
    np.subtract(grad, out, out=out)


def _pair(grad: np.ndarray, output: np.ndarray, dim: int) -> Any:
    """Both arrays in the type to compute in, 0-dim ones as 1-dim."""
    if output.ndim == 0:
        grad, output = grad.reshape(1), output.reshape(1)
    return widen(grad), widen(output), wrap_dim(dim, output.ndim)


def _finished(result: np.ndarray, output: np.ndarray, dtype: dt.dtype) -> np.ndarray:
    """The result in the input's type; what was made 1-dim is 0-dim again."""
    result = narrow(result, dtype.numpy_dtype)
    return np.array(result[0]) if output.ndim == 0 else result


# ---- composed


def softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dim that old calls without `dim` mean, with torch's warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


@composite(
    "softmax(Tensor self, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    namespace="nn.functional",
)
def functional_softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """`torch.softmax`; without `dim` the dim is guessed, which is deprecated."""
    if dim is None:
        dim = softmax_dim("softmax", input.dim(), _stacklevel)
    return ops.softmax(input, dim, dtype)


@composite(
    "log_softmax(Tensor self, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    namespace="nn.functional",
)
def functional_log_softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """`torch.log_softmax`; without `dim` the dim is guessed, which is deprecated."""
    if dim is None:
        dim = softmax_dim("log_softmax", input.dim(), _stacklevel)
    return ops.log_softmax(input, dim, dtype)


@composite(
    "softmin(Tensor self, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    namespace="nn.functional",
)
def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The softmax of `-input`."""
    if dim is None:
        dim = softmax_dim("softmin", input.dim(), _stacklevel)
    return ops.softmax(-input, dim, dtype)


@composite("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", namespace="special")
def special_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """`torch.softmax`."""
    return ops.softmax(input, dim, dtype)


@composite(
    "log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", namespace="special"
)
def special_log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """`torch.log_softmax`."""
    return ops.log_softmax(input, dim, dtype)


@composite("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", method=False)
def safe_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Softmax in which rows that are -inf throughout give 0 instead of NaN."""
    result = ops.softmax(input, dim, dtype)
    blocked = (input == float("-inf")).all(dim, keepdim=True)
    return ops.masked_fill(result, blocked, 0.0)


@composite(
    "gumbel_softmax(Tensor logits, float tau=1, bool hard=False, float eps=1e-10,"
    " int dim=-1) -> Tensor",
    method=False,
    namespace="nn.functional",
)
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Samples of the Gumbel-softmax distribution; `hard` ones are one-hot, gradients soft."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    exponential = ops.empty_like(logits).exponential_()
    gumbels = (logits - exponential.log()) / tau
    soft = ops.softmax(gumbels, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one_hot = ops.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
