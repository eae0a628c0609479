"""Softmax and its relatives, stable for large inputs and for rows of -inf."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from flambeau._compiler.expr import absolute, exp, log, where
from flambeau._compiler.fuse import amax, total
from flambeau._core import dtype as dt
from flambeau._core import layout
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.reductions.sums import restore_dims
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, alias, composite, functional
from flambeau._ops.table.outputs import EXACT
from flambeau._ops.table.rows import rows


def _in_aten(name: str, self: Any, dim: int, dtype: Any = None) -> InAten:
    """`_softmax`, which casts nothing; its last argument is for GPUs."""
    return InAten(name, (self if dtype is None else self.to(dtype), dim, False))


def _softmax_grad(grad: Any, result: Any, dim: int) -> Any:
    return ops._softmax_backward_data(grad, result, dim, result.dtype)


@rows(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    regular=True,
    fused=True,
    out_writer="aten::softmax",
    device_check="_softmax",
    label="softmax",
    out=True,
    out_type=EXACT,
    autocast="cuda=float32_or_dtype",
    aten=partial(_in_aten, "_softmax"),
    backward={"self": _softmax_grad},
)
def softmax(x: Any) -> Any:
    """`exp(x) / exp(x).sum(dim)`: shares that sum to 1 along `dim`. The shape stays.

    Nothing overflows: the largest element of each row is subtracted first, which changes no
    quotient. `dtype` casts the input before; integers need it.

    >>> import flambeau as torch
    >>> torch.softmax(torch.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    weight = exp(x - amax(x))
    return weight * (1 / total(weight))


@rows(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    label="softmax",
    method=False,
    node="SafeSoftmaxBackward0",
    backward={"self": _softmax_grad},
)
def safe_softmax(x: Any) -> Any:
    """Softmax in which rows that are -inf throughout give 0 instead of NaN."""
    peak = amax(x)
    blocked = peak == float("-inf")
    weight = exp(x - where(blocked, 0.0, peak))
    return weight * (1 / where(blocked, 1.0, total(weight)))


@rows(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    regular=True,
    fused=True,
    out_writer="aten::log_softmax",
    device_check="_log_softmax",
    label="log_softmax",
    out=True,
    out_type=EXACT,
    autocast="cuda=float32_or_dtype",
    aten=partial(_in_aten, "_log_softmax"),
    backward={
        "self": lambda grad, result, dim: ops._log_softmax_backward_data(
            grad, result, dim, result.dtype
        ),
    },
)
def log_softmax(x: Any) -> Any:
    """`x - logsumexp(x, dim)`; `dtype` casts the input first.

    >>> import flambeau as torch
    >>> torch.log_softmax(torch.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    shifted = x - amax(x)
    return shifted - log(total(exp(shifted)))


# ---- the logarithm of a sum of exponentials


def _complex_logsumexp(data: np.ndarray, axes: tuple[int, ...]) -> Any:
    peak = (
        np.maximum.reduce(data.real, axes, keepdims=True) if data.size else data.real.dtype.type(0)
    )
    shift = np.where(np.isinf(peak), peak.dtype.type(0), peak)
    return np.log(np.add.reduce(np.exp(data - shift), axes, keepdims=True)) + shift


def _logsumexp_backward(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    grad = restore_dims(grad, self._data.ndim, dim, keepdim)
    result = restore_dims(result, self._data.ndim, dim, keepdim)
    return grad * conj(ops.exp(self - result))


@rows(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    out=True,
    of_complex=_complex_logsumexp,
    autocast="cuda=float32",
    backward={"self": _logsumexp_backward},
)
def logsumexp(x: Any) -> Any:
    """`log(sum(exp(input)))`, shifted by a finite maximum so that nothing overflows.

    Without the dims `dim`, or with sizes 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.logsumexp(torch.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    peak = amax(x)
    shift = where(absolute(peak) == float("inf"), 0, peak)
    return log(total(exp(x - shift))) + shift


alias("special.logsumexp", "logsumexp")


# ---- gradients


def _softmax_double_backward(grad: Any, grad_output: Any, output: Any, dim: int) -> Any:
    """d/d output of `output * (g - sum(g * output))`."""
    inner = (grad_output * output).sum(dim, keepdim=True)
    outer = (grad * output).sum(dim, keepdim=True)
    return grad * (grad_output - inner) - grad_output * outer


@rows(
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
def softmax_backward_data(grad_output: Any, output: Any) -> Any:
    """`output * (grad - (grad * output).sum(dim))`."""
    return output * (grad_output - total(grad_output * output))


@rows(
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
def log_softmax_backward_data(grad_output: Any, output: Any) -> Any:
    """`grad - exp(output) * grad.sum(dim)`."""
    return grad_output - exp(output) * total(grad_output)


# ---- composed


def softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dim that old calls without `dim` mean, with torch's warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


@functional()
def functional_softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: dt.dtype | None = None
) -> Any:
    """`torch.softmax`; without `dim` the dim is guessed, which is deprecated.

    >>> import flambeau as torch
    >>> torch.nn.functional.softmax(torch.tensor([[1., 1.], [3., 3.]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if dim is None:
        dim = softmax_dim("softmax", input.dim(), _stacklevel)
    return ops.softmax(input, dim, dtype)


@functional()
def functional_log_softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: dt.dtype | None = None
) -> Any:
    """`torch.log_softmax`; without `dim` the dim is guessed, which is deprecated.

    >>> import flambeau as torch
    >>> torch.nn.functional.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = softmax_dim("log_softmax", input.dim(), _stacklevel)
    return ops.log_softmax(input, dim, dtype)


@functional()
def softmin(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: dt.dtype | None = None
) -> Any:
    """The softmax of `-input`.

    The shape stays.

    >>> import flambeau as torch
    >>> torch.nn.functional.softmin(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = softmax_dim("softmin", input.dim(), _stacklevel)
    return ops.softmax(-input, dim, dtype)


@composite(
    "softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    namespace="special",
)
def special_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """`torch.softmax`."""
    return ops.softmax(input, dim, dtype)


@composite(
    "log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    namespace="special",
)
def special_log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """`torch.log_softmax`."""
    return ops.log_softmax(input, dim, dtype)


@functional(undetermined=True)
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Samples of the Gumbel-softmax distribution; `hard` ones are one-hot, gradients soft.

    The shape stays.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.functional.gumbel_softmax(torch.zeros(3), hard=True).sum()
    tensor(1.)
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    rows = layout.contiguous_format
    exponential = ops.empty_like(logits, memory_format=rows).exponential_()
    gumbels = (logits - exponential.log()) / tau
    soft = ops.softmax(gumbels, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one_hot = ops.zeros_like(logits, memory_format=rows).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
