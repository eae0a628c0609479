"""Activation functions with corners: the rectifier and its kin, `prelu`, `glu`, `rrelu`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.generator import Generator
from flambeau._ops.elementwise.bounds import beside, kept, reached, stepped
from flambeau._ops.random.draws import stream_of
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, composite, internal, pointwise
from flambeau._ops.table.outputs import FOUND
from flambeau._ops.table.scalars import real
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import Tensor, on_device_of, wrap

FLOATS: dict[str, Any] = {"dtypes": "float", "method": False, "function": False,
                          "promote": "tensors"}  # fmt: skip


# ---- the rectifier and its kin


@pointwise("relu(Tensor self) -> Tensor", sparse_entries="distinct",
           regular=True, fused=True, dtypes="int float", out=False, refusals={
    "bool": RuntimeError("Boolean inputs not supported for relu"),
    "complex": NotImplementedError("clamp is not supported for complex types"),
}, backward={"self": lambda grad, result: ops._relu_grad(grad, result)})  # fmt: skip
def relu(self: Any) -> Any:
    """`max(input, 0)`. The gradient at 0 is 0.

    >>> import flambeau as torch
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return E.maximum(0, self)


@pointwise("_relu_grad(Tensor grad_output, Tensor output) -> Tensor", method=False,
           numbers="none", inplace=False, node="ThresholdBackwardBackward0",
           aten=lambda grad, output: InAten("threshold_backward", (grad, output, 0)),
           backward={
    "grad_output": lambda grad, output: ops._relu_grad(grad, output),
    "output": lambda grad: ops.zeros_like(grad),
})  # fmt: skip
def relu_grad(grad_output: Any, output: Any) -> Any:
    """The gradient where the output is positive (or nan)."""
    return E.where(output <= 0, 0, grad_output)


@pointwise("_threshold_grad(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
           method=False, numbers="none", inplace=False, node="ThresholdBackwardBackward0",
           aten=lambda *values: InAten("threshold_backward", values),
           backward={
    "grad_output": lambda grad, self, threshold: ops._threshold_grad(grad, self, threshold),
    "self": lambda grad: ops.zeros_like(grad),
})  # fmt: skip
def threshold_grad(grad_output: Any, self: Any, threshold: Any) -> Any:
    """The gradient where the input is above the threshold (or nan)."""
    return E.where(self <= threshold, 0, grad_output)


@composite("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
           method=False, function=False)  # fmt: skip
def threshold_backward(grad_output: Any, self: Any, threshold: Any) -> Any:
    """ATen's name for the gradient of `threshold` and `relu`."""
    return ops._threshold_grad(grad_output, self, threshold)


@pointwise("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
           dtypes="int float", method=False, promote="tensors", label="threshold_cpu",
           node_inplace="ThresholdBackward1", backward={
    "self": lambda grad, self, threshold: ops._threshold_grad(grad, self, threshold),
})  # fmt: skip
def threshold(self: Any, threshold: Any, value: Any) -> Any:
    """The input where it is above the threshold, else `value`.

    >>> import flambeau as torch
    >>> torch.nn.functional.threshold(torch.tensor([-1., 2.]), 0., -5.)
    tensor([-5.,  2.])
    """
    return E.where(self <= threshold, value, self)


def _leaky_grad(grad: Any, self: Any, negative_slope: Any) -> Any:
    return stepped(ops.where(self > 0, grad, grad * negative_slope), self)


def _leaky_grad_of_result(grad: Any, result: Any, negative_slope: Any) -> Any:
    """The result tells which side the input was on, unless the slope turned it round."""
    if negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is "
            "not supported. This is caused by calling in-place forward function with a negative "
            "slope, please call out-of-place version instead. File an issue at "
            "https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu "
            "backward calculation with negative slope"
        )
    return _leaky_grad(grad, result, negative_slope)


@pointwise("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
           regular=True, fused=True, **FLOATS,
           label="leaky_relu_cpu", node_inplace="LeakyReluBackward1",
           backward={"self": _leaky_grad}, backward_inplace={"self": _leaky_grad_of_result},
           )  # fmt: skip
def leaky_relu(self: Any, negative_slope: Any) -> Any:
    """The input where it is positive, else `negative_slope * input`."""
    return E.where(self > 0, self, self * negative_slope)


@pointwise("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
           regular=True, fused=True,
           method=False, function=False, dtypes="int float", promote="tensors",
           exact_number=False, refusals={
    "complex": NotImplementedError("clamp is not supported for complex types"),
}, backward={
    "self": lambda grad, self, min_val, max_val: stepped(
        ops.where(ops.logical_or(self <= min_val, self >= max_val), 0.0, grad), self),
})  # fmt: skip
def hardtanh(self: Any, min_val: Any, max_val: Any) -> Any:
    """The input kept from `min_val` to `max_val`. The gradient at the bounds is 0."""
    return E.minimum(max_val, E.maximum(min_val, self))


@pointwise("hardsigmoid(Tensor self) -> Tensor", regular=True,
           fused=True, **FLOATS, label="hardsigmoid_cpu", backward={
    "self": lambda grad, self: stepped(
        kept(grad / 6, ops.logical_and(self > -3, self < 3)), self),
})  # fmt: skip
def hardsigmoid(self: Any) -> Any:
    """`(input + 3) / 6`, kept from 0 to 1."""
    return E.minimum(E.maximum(self + 3, 0), 6) / 6


def _hardswish_grad(grad: Any, self: Any) -> Any:
    bent = reached(self, ops.abs(self) <= 3) if modes.grad.enabled else self
    inside = ops.where(self < 3, grad * (bent / 3 + 0.5), grad)
    return ops.where(self <= -3, 0.0, inside)


@pointwise("hardswish(Tensor self) -> Tensor",
           regular=True, fused=True, **FLOATS, label="hardswish_cpu",
           backward={"self": _hardswish_grad})  # fmt: skip
def hardswish(self: Any) -> Any:
    """`input * (input + 3) / 6`, the factor kept from 0 to 1."""
    return self * E.minimum(E.maximum(self + 3, 0), 6) / 6


def _shrink_grad(grad: Any, self: Any, lambd: Any) -> Any:
    inside = ops.logical_and(self >= -lambd, self <= lambd)
    return stepped(ops.where(inside, 0.0, grad), self)


@pointwise("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", dtypes="float", inplace=False,
           promote="tensors", label="hardshrink_cpu", exact_number=False, out_type=FOUND,
           backward={"self": _shrink_grad})  # fmt: skip
def hardshrink(self: Any, lambd: Any) -> Any:
    """The input, and 0 from `-lambd` to `lambd`.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([-1., 0.2, 1.]))
    tensor([-1.,  0.,  1.])
    """
    return E.where(E.logical_and(self >= -lambd, self <= lambd), 0, self)


@pointwise("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", **FLOATS, inplace=False,
           label="softshrink_check", out_type=FOUND, backward={"self": _shrink_grad})  # fmt: skip
def softshrink(self: Any, lambd: Any) -> Any:
    """The input moved towards 0 by `lambd`, and 0 from `-lambd` to `lambd`."""
    inner = E.where(E.isnan(self), self, 0)
    return E.where(self > lambd, self - lambd, E.where(self < -lambd, self + lambd, inner))


def _elu_grad(grad: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    below = reached(self, self < 0) if modes.grad.enabled else self
    slope = input_scale * alpha * scale * ops.exp(below * input_scale)
    return ops.where(self <= 0, grad * slope, grad * scale)


def _elu_grad_of_result(grad: Any, result: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """The slope below 0 is the result's distance from the bound, unless the bound is above 0."""
    if alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not "
            "supported. This is caused by calling in-place forward function with a negative "
            "slope, please call out-of-place version instead."
        )
    slope = input_scale * (result + alpha * scale)
    return ops.where(result <= 0, grad * slope, grad * scale)


@pointwise("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
           regular=True,
           fused=True,
           **FLOATS, label="elu_cpu", node_inplace="EluBackward1",
           backward={"self": _elu_grad}, backward_inplace={"self": _elu_grad_of_result},
           )  # fmt: skip
def elu(self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """`scale * alpha * (exp(x * input_scale) - 1)` where the input is negative, else
    `scale * input`."""
    below = E.expm1(self * input_scale) * (alpha * scale)
    return E.where(self < 0, below, self * scale)


@pointwise("_celu(Tensor self, Scalar alpha, Scalar inverse) -> Tensor", node="CeluBackward0",
           saved_names={"inverse": None},
           node_inplace="CeluBackward1",
           aten=lambda self, alpha, inverse: InAten("celu", (self, alpha)),
           shown="celu", numbers="none",
           dtypes="float", method=False, promote="tensors", label="elu_cpu", backward={
    "self": lambda grad, self, alpha, inverse: _elu_grad(grad, self, alpha, 1, inverse),
}, backward_inplace={
    "self": lambda grad, result, alpha, inverse: _elu_grad_of_result(
        grad, result, alpha, 1, inverse),
})  # fmt: skip
def celu_with_inverse(self: Any, alpha: Any, inverse: Any) -> Any:
    """`elu` with `1 / alpha` as the scale of the input."""
    return E.where(self < 0, E.expm1(self * inverse) * alpha, self)


SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@composite("selu(Tensor self) -> Tensor", fused=True, method=False, elementwise=True)
def selu(input: Tensor) -> Any:
    """`elu` with the constants that keep mean 0 and variance 1.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return ops.elu(input, SELU_ALPHA, SELU_SCALE)


def selu_(input: Tensor) -> Any:
    """`selu` in place.

    The shape stays.

    >>> import flambeau as torch
    >>> x = torch.tensor([-1., 1.])
    >>> torch.selu_(x)
    tensor([-1.1113,  1.0507])
    """
    return inplace("elu")(input, SELU_ALPHA, SELU_SCALE)


@composite(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor", fused=True, method=False, elementwise=True
)
def celu(input: Tensor, alpha: float = 1.0) -> Any:
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.celu(torch.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])
    """
    _check_celu(alpha)
    return ops._celu(input, alpha, 1.0 / alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Any:
    """`celu` in place.

    The shape stays.

    >>> import flambeau as torch
    >>> x = torch.tensor([-1., 2.])
    >>> torch.celu_(x)
    tensor([-0.6321,  2.0000])
    """
    _check_celu(alpha)
    return inplace("_celu")(input, alpha, 1.0 / alpha)


def _check_celu(alpha: float) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


def inplace(name: str) -> Any:
    """The in-place form of a row that is not a method."""
    from flambeau._ops.table.namespace import get_inplace

    return get_inplace(name)


# ---- with weights, halves and noise


@pointwise("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", method=False, inplace=False,
           dtypes="float", numbers="none", label="prelu_cpu", backward={
    "self": lambda grad, self, weight: beside(ops.where(self > 0, grad, grad * weight), self),
    "weight": lambda grad, self, weight: ops.where(self > 0, 0.0, grad * self),
})  # fmt: skip
def prelu_kernel(self: Any, weight: Any) -> Any:
    """The input where it is positive, else `weight * input`."""
    return E.where(self > 0, self, self * weight)


@composite("prelu(Tensor self, Tensor weight) -> Tensor", builtin=True, autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Any:
    """The input where it is positive, else multiplied by a weight for all or for each channel.

    Shapes: input (N, C, *) with weight (C,), or any with weight (1,).

    >>> import flambeau as torch
    >>> torch.prelu(torch.tensor([-2., 3.]), torch.tensor([0.5]))
    tensor([-1.,  3.])
    """
    if input.dtype is not weight.dtype:
        raise RuntimeError("prelu: Type promoting not supported. Got "
                           f"{input.dtype.scalar_name} and {weight.dtype.scalar_name}")  # fmt: skip
    _check_prelu(input._data, weight._data)
    if weight._data.ndim != input._data.ndim:
        trailing = max(input._data.ndim - 2, 0)
        leading = 1 if input._data.ndim > 1 else 0
        shape = (1,) * leading + (weight._data.size,) * (input._data.ndim > 0) + (1,) * trailing
        weight = weight.reshape(shape)  # type: ignore[attr-defined]
    return ops._prelu_kernel(input, weight)


def _check_prelu(data: np.ndarray, weight: np.ndarray) -> None:
    if weight.size != 1:
        if data.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = data.shape[1] if data.ndim > 1 else 1
        if channels != weight.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.size} and channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{weight.ndim}")  # fmt: skip


def _glu_grad(grad: Any, self: Any, dim: int) -> Any:
    first, gate = ops.chunk(self, 2, dim)
    open_ = ops.sigmoid(gate)
    return ops.cat([grad * open_, grad * first * open_ * (1 - open_)], dim)


@internal("glu(Tensor self, int dim=-1) -> Tensor", out=True,
          backward={"self": _glu_grad})  # fmt: skip
def glu(data: np.ndarray, dim: int) -> np.ndarray:
    """The first half along a dim times the sigmoid of the second."""
    from flambeau._ops.table.dims import wrap_dim
    from flambeau._ops.table.pointwise import refusal

    if data.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = wrap_dim(dim, data.ndim)
    if data.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size "
                           f"{data.shape[dim]}")  # fmt: skip
    if data.dtype.kind not in "fV":
        raise refusal(glu, dt.from_numpy_dtype(data.dtype))
    first, gate = np.split(_widened(data), 2, dim)
    return np.asarray(first / (1 + np.exp(-gate))).astype(data.dtype, copy=False)


def _widened(data: np.ndarray) -> np.ndarray:
    return data.astype(np.float32) if data.dtype in dt.NUMPY_HALVES else data


@internal("rrelu_with_noise(Tensor self, Tensor noise) -> Tensor",
          batch="elements",
          decomposition=lambda self, noise: self * noise,
          inplace=True, node_inplace="RreluWithNoiseBackward1", backward={
    "self": lambda grad, self, noise: stepped(grad * noise, self),
}, backward_inplace={
    "self": lambda grad, result, noise: stepped(grad * noise, result),
})  # fmt: skip
def rrelu_with_noise(data: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The input times slopes drawn before: 1 where it is positive."""
    return np.multiply(data, noise)


def _slopes(input: Tensor, lower: float, upper: float, generator: Any) -> Tensor:
    """Slopes for elements that are not positive, drawn in torch's order; 1 for the others."""
    if input.dtype is dt.float16 and not input.is_cuda:
        raise NotImplementedError("\"rrelu_with_noise_out_cpu\" not implemented for 'Half'")
    if math.isinf(upper - lower) and not bool((input > 0).all()):
        raise RuntimeError("Expected to - from <= std::numeric_limits<T>::max() to be true, but "
                           "got false.")  # fmt: skip
    stream = Generator() if input.is_meta else stream_of(generator, "rrelu", input)
    noise = stream.numbers.rrelu_noise(numbers_under(input._data), lower, upper, stream)
    return on_device_of(wrap(noise), input)


@composite("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
           "bool training=False, Generator? generator=None) -> Tensor",
           batch="examples", method=False)  # fmt: skip
def rrelu(input: Tensor, lower: float = 0.125, upper: float = 1.0 / 3, training: bool = False,
          generator: Any = None) -> Any:  # fmt: skip
    """Leaky ReLU with slopes drawn from `lower` to `upper`; their mean when not training.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.rrelu(torch.tensor([-1., 1.]), 0.1, 0.3)
    tensor([-0.2000,  1.0000])
    """
    lower, upper = real(lower), real(upper)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    _check_slopes(lower, upper)
    if not training:
        return _in_rows(ops._rrelu_even(input, (lower + upper) / 2))
    return _in_rows(ops.rrelu_with_noise(input, _slopes(input, lower, upper, generator)))


def _in_rows(result: Any) -> Any:
    """A new result in row-major memory; nobody else has its memory yet."""
    if result._data.__class__ is np.ndarray:
        result._data = np.asarray(result._data, order="C")
    return result


def rrelu_(input: Tensor, lower: float = 0.125, upper: float = 1.0 / 3, training: bool = False,
           generator: Any = None) -> Any:  # fmt: skip
    """`rrelu` in place. Bounds that are infinite count where an element is not positive.

    The shape stays.

    >>> import flambeau as torch
    >>> x = torch.tensor([-1., 1.])
    >>> torch.rrelu_(x, 0.1, 0.3)
    tensor([-0.2000,  1.0000])
    """
    lower, upper = real(lower), real(upper)
    _check_slopes(lower, upper)
    if not training:
        return inplace("_rrelu_even")(input, (lower + upper) / 2)
    return inplace("rrelu_with_noise")(input, _slopes(input, lower, upper, generator))


def _check_slopes(lower: float, upper: float) -> None:
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")


@pointwise("_rrelu_even(Tensor self, Scalar slope) -> Tensor", dtypes="float", method=False,
           promote="tensors", label="leaky_relu_cpu", shown="rrelu", node="RreluWithNoiseBackward0",
           node_inplace="RreluWithNoiseBackward1", backward={
    "self": lambda grad, self, slope: _leaky_grad(grad, self, slope),
}, backward_inplace={
    "self": lambda grad, result, slope: _leaky_grad_of_result(grad, result, slope),
})  # fmt: skip
def rrelu_even(self: Any, slope: Any) -> Any:
    """Leaky ReLU with the mean slope."""
    return E.where(self > 0, self, self * slope)
