"""Smooth activation functions. The derivative of most is a row of its own, so that one kernel
computes it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._ops.activations.pointwise import FLOATS
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, functional, pointwise
from flambeau._ops.table.outputs import FOUND
from flambeau._tensor.tensor import Tensor

ROOT_HALF = math.sqrt(0.5)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBE = 0.044715


def _erf(x: np.ndarray) -> np.ndarray:
    from flambeau._ops.special.by_name import erf

    return erf(x)


add_primitive("erf", _erf)


def _density(x: Any) -> Any:
    return E.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))


@pointwise("_gelu(Tensor self) -> Tensor", node="GeluBackward0", dtypes="float", method=False,
           label="GeluKernelImpl", shown="gelu", aten=lambda self: InAten("gelu", (self,)),
           saved_facts={"approximate": "none"}, backward={
    "self": lambda grad, self: ops._gelu_grad(grad, self),
})  # fmt: skip
def gelu_exact(self: Any) -> Any:
    """`x * Phi(x)`, Phi being the normal distribution function."""
    return self * 0.5 * (1 + E.erf(self * ROOT_HALF))


@pointwise("_gelu_grad(Tensor grad_output, Tensor self) -> Tensor", node="GeluBackwardBackward0",
           method=False, inplace=False, backward={
    "grad_output": lambda grad, self: ops._gelu_grad(grad, self),
    "self": lambda grad, grad_output, self: grad * grad_output * ops.exp(self * self * -0.5)
    * ((2 - self * self) / math.sqrt(2 * math.pi)),
})  # fmt: skip
def gelu_grad(grad_output: Any, self: Any) -> Any:
    """The gradient times the slope, `Phi(x) + x * phi(x)`."""
    return grad_output * (0.5 * (1 + E.erf(self * ROOT_HALF)) + self * _density(self))


def _tanh_inner(x: Any) -> Any:
    return TANH_SCALE * (x + TANH_CUBE * x * x * x)


@pointwise("_gelu_tanh(Tensor self) -> Tensor", node="GeluBackward0", dtypes="float",
           method=False, label="GeluKernelImpl",
           aten=lambda self: InAten("gelu", (self,), {"approximate": "tanh"}),
           saved_facts={"approximate": "tanh"}, backward={
    "self": lambda grad, self: grad * ops._gelu_tanh_slope(self),
})  # fmt: skip
def gelu_tanh(self: Any) -> Any:
    """GELU with tanh in place of the error function."""
    return 0.5 * self * (1 + E.tanh(_tanh_inner(self)))


def _gelu_tanh_curve(grad: Any, self: Any) -> Any:
    square = self * self
    tanh = ops.tanh(_tanh_inner(self))
    slope = TANH_SCALE * (1 + 3 * TANH_CUBE * square)
    bend = TANH_SCALE * 6 * TANH_CUBE * self
    flat = 1 - tanh * tanh
    return grad * flat * (slope + 0.5 * self * (bend - 2 * tanh * slope * slope))


@pointwise("_gelu_tanh_slope(Tensor self) -> Tensor", node="GeluBackwardBackward0",
           method=False, inplace=False, backward={"self": _gelu_tanh_curve})  # fmt: skip
def gelu_tanh_slope(self: Any) -> Any:
    """The derivative of GELU's tanh form."""
    tanh = E.tanh(_tanh_inner(self))
    slope = TANH_SCALE * (1 + 3 * TANH_CUBE * self * self)
    return 0.5 * (1 + tanh) + 0.5 * self * (1 - tanh * tanh) * slope


@pointwise("silu(Tensor self) -> Tensor", regular=True,
           fused=True, dtypes="float complex", method=False, function=False,
           label="silu_cpu", backward={
    "self": lambda grad, self: grad * conj(ops._silu_slope(self)),
})  # fmt: skip
def silu(self: Any) -> Any:
    """`input * sigmoid(input)`."""
    return self / (1 + E.exp(-self))


def _silu_curve(grad: Any, self: Any) -> Any:
    sigmoid = ops.sigmoid(self)
    return grad * conj(sigmoid * (1 - sigmoid) * (2 + self * (1 - 2 * sigmoid)))


@pointwise("_silu_slope(Tensor self) -> Tensor", node="SiluBackwardBackward0", method=False,
           inplace=False, backward={"self": _silu_curve})  # fmt: skip
def silu_slope(self: Any) -> Any:
    """The derivative of `silu`."""
    sigmoid = 1 / (1 + E.exp(-self))
    return sigmoid * (1 + self * (1 - sigmoid))


@pointwise("mish(Tensor self) -> Tensor", fused=True, **FLOATS, label="mish_cpu", backward={
    "self": lambda grad, self: grad * ops._mish_slope(self),
})  # fmt: skip
def mish(self: Any) -> Any:
    """`input * tanh(softplus(input))`."""
    return self * E.tanh(E.log1p(E.exp(self)))


def _mish_curve(grad: Any, self: Any) -> Any:
    tanh, sigmoid = ops.tanh(ops.nn.functional.softplus(self)), ops.sigmoid(self)
    flat = 1 - tanh * tanh
    inner = 2 + self * (1 - sigmoid) - 2 * self * tanh * sigmoid
    return grad * flat * sigmoid * inner


@pointwise("_mish_slope(Tensor self) -> Tensor", node="MishBackwardBackward0", method=False,
           inplace=False, backward={"self": _mish_curve})  # fmt: skip
def mish_slope(self: Any) -> Any:
    """The derivative of `mish`."""
    tanh = E.tanh(E.log1p(E.exp(self)))
    return tanh + self / (1 + E.exp(-self)) * (1 - tanh * tanh)


def _softplus_curve(grad: Any, self: Any, beta: Any, threshold: Any) -> Any:
    slope = ops._softplus_slope(self, beta, threshold)
    return grad * beta * slope * (1 - slope)


@pointwise("_softplus_slope(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
           node="SoftplusBackwardBackward0", method=False, inplace=False, promote="tensors",
           backward={"self": _softplus_curve})  # fmt: skip
def softplus_slope(self: Any, beta: Any, threshold: Any) -> Any:
    """The derivative of `softplus`: sigmoid, and e^x where that is subnormal."""
    power = E.exp(E.minimum(self * beta, threshold))
    return E.where(self * beta > threshold, 1, power / (1 + power))


def _softplus_grad(grad: Any, self: Any, beta: Any, threshold: Any) -> Any:
    return grad * ops._softplus_slope(self, beta, threshold)


@pointwise("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", builtin=True,
           regular=True, fused=True,
           autocast="cuda=float32", dtypes="float",
           promote="tensors", namespace="nn.functional", label="softplus_cpu", inplace=False,
           out_type=FOUND, backward={"self": _softplus_grad})  # fmt: skip
def softplus(self: Any, beta: Any, threshold: Any) -> Any:
    """`log(1 + exp(beta * x)) / beta`; the input itself where `beta * x > threshold`.

    >>> import flambeau as torch
    >>> torch.nn.functional.softplus(torch.tensor([0.0]))
    tensor([0.6931])
    """
    scaled = self * beta
    return E.where(scaled > threshold, self, E.log1p(E.exp(scaled)) / beta)


@pointwise("_log_sigmoid_slope(Tensor self) -> Tensor", node="LogSigmoidBackwardBackward0",
           method=False, inplace=False, backward={
    "self": lambda grad, self, result: grad * result * (result - 1),
})  # fmt: skip
def log_sigmoid_slope(self: Any) -> Any:
    """The derivative of `logsigmoid`: sigmoid of -x, and e^-x where that is subnormal."""
    power = E.exp(-abs(self))
    return E.where(self < 0, 1, power) / (1 + power)


@pointwise("log_sigmoid(Tensor self) -> Tensor",
           builtin=True, fused=True, public="logsigmoid", inplace=False,
           namespace="nn.functional", dtypes="float", label="log_sigmoid_cpu", row_major=True,
           node="LogSigmoidBackward0", out_type="expected scalar type {want} but found {have}",
           backward={
    "self": lambda grad, self: grad * ops._log_sigmoid_slope(self),
})  # fmt: skip
def logsigmoid(self: Any) -> Any:
    """`log(sigmoid(input))` without overflow.

    >>> import flambeau as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([0., -100.]))
    tensor([  -0.6931, -100.0000])
    """
    return E.minimum(self, 0) - E.log1p(E.exp(-abs(self)))


@functional()
def softsign(input: Tensor) -> Any:
    """`x / (1 + |x|)`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.softsign(torch.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)  # type: ignore[attr-defined]


@functional()
def tanhshrink(input: Tensor) -> Any:
    """`x - tanh(x)`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()  # type: ignore[attr-defined]
