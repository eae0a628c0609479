"""Trigonometric and hyperbolic functions, and angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import alias, pointwise


@pointwise("sin(Tensor self) -> Tensor", sparse_entries="distinct", regular=True,
           fused=True, label="sin_vml_cpu", promote="float", backward={
    "self": lambda grad, self: grad * conj(ops.cos(self)),
})  # fmt: skip
def sin(self: Any) -> Any:
    """The sine.

    >>> import flambeau as torch
    >>> torch.sin(torch.zeros(2))
    tensor([0., 0.])
    """
    return E.sin(self)


@pointwise("cos(Tensor self) -> Tensor", regular=True,
           fused=True, label="cos_vml_cpu", promote="float", backward={
    "self": lambda grad, self: grad * -conj(ops.sin(self)),
})  # fmt: skip
def cos(self: Any) -> Any:
    """The cosine.

    >>> import flambeau as torch
    >>> torch.cos(torch.zeros(2))
    tensor([1., 1.])
    """
    return E.cos(self)


@pointwise("tan(Tensor self) -> Tensor", sparse_entries="distinct",
           label="tan_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, result: grad * conj(1 + result * result),
})  # fmt: skip
def tan(self: Any) -> Any:
    """The tangent.

    >>> import flambeau as torch
    >>> torch.tan(torch.zeros(2))
    tensor([0., 0.])
    """
    return E.tan(self)


@pointwise("asin(Tensor self) -> Tensor", sparse_entries="distinct",
           label="asin_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, self: grad * conj(ops.rsqrt(1 - self * self)),
})  # fmt: skip
def asin(self: Any) -> Any:
    """The angle in radians whose sine is given; nan outside of -1 to 1.

    >>> import flambeau as torch
    >>> torch.asin(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """
    return E.arcsin(self)


@pointwise("acos(Tensor self) -> Tensor",
           label="acos_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, self: grad * -conj(ops.rsqrt(1 - self * self)),
})  # fmt: skip
def acos(self: Any) -> Any:
    """The angle in radians whose cosine is given; nan outside of -1 to 1.

    >>> import flambeau as torch
    >>> torch.acos(torch.tensor([1.0, 0.0]))
    tensor([0.0000, 1.5708])
    """
    return E.arccos(self)


@pointwise("atan(Tensor self) -> Tensor",
           sparse_entries="distinct", label="atan_vml_cpu", promote="float", backward={
    "self": lambda grad, self: grad / conj(self * self + 1),
})  # fmt: skip
def atan(self: Any) -> Any:
    """The angle in radians whose tangent is given.

    >>> import flambeau as torch
    >>> torch.atan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """
    return E.arctan(self)


@pointwise("sinh(Tensor self) -> Tensor", sparse_entries="distinct",
           label="sinh_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, self: grad * conj(ops.cosh(self)),
})  # fmt: skip
def sinh(self: Any) -> Any:
    """The hyperbolic sine.

    >>> import flambeau as torch
    >>> torch.sinh(torch.zeros(2))
    tensor([0., 0.])
    """
    return E.sinh(self)


@pointwise("cosh(Tensor self) -> Tensor",
           label="cosh_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, self: grad * conj(ops.sinh(self)),
})  # fmt: skip
def cosh(self: Any) -> Any:
    """The hyperbolic cosine.

    >>> import flambeau as torch
    >>> torch.cosh(torch.zeros(2))
    tensor([1., 1.])
    """
    return E.cosh(self)


@pointwise("tanh(Tensor self) -> Tensor", sparse_entries="distinct", regular=True,
           fused=True, label="tanh_vml_cpu", promote="float", backward={
    "self": lambda grad, result: grad * conj(ops._tanh_slope(result)),
})  # fmt: skip
def tanh(self: Any) -> Any:
    """The hyperbolic tangent.

    >>> import flambeau as torch
    >>> torch.tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return E.tanh(self)


@pointwise("_tanh_slope(Tensor self) -> Tensor", method=False, node="TanhBackwardBackward0",
           backward={"self": lambda grad, self: grad * conj(-2 * self)})  # fmt: skip
def tanh_slope(self: Any) -> Any:
    """The derivative of tanh from its value: `1 - y * y`."""
    return 1 - self * self


@pointwise("asinh(Tensor self) -> Tensor",
           sparse_entries="distinct", label="asinh_cpu", promote="float",
           node_inplace="AsinhBackward1", backward={
    "self": lambda grad, self: grad * conj(ops.rsqrt(self * self + 1)),
})  # fmt: skip
def asinh(self: Any) -> Any:
    """The inverse of the hyperbolic sine.

    >>> import flambeau as torch
    >>> torch.asinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    return E.arcsinh(self)


def _acosh_slope(x: Any) -> Any:
    if x._data.dtype.kind in "cW":
        return ops.rsqrt(x + 1) * ops.rsqrt(x - 1)
    return ops.rsqrt(x * x - 1)


@pointwise("acosh(Tensor self) -> Tensor", label="acosh_cpu", promote="float",
           node_inplace="AcoshBackward1", backward={
    "self": lambda grad, self: grad * conj(_acosh_slope(self)),
})  # fmt: skip
def acosh(self: Any) -> Any:
    """The inverse of the hyperbolic cosine; nan below 1.

    >>> import flambeau as torch
    >>> torch.acosh(torch.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    return E.arccosh(self)


@pointwise("atanh(Tensor self) -> Tensor",
           sparse_entries="distinct", label="atanh_cpu", promote="float",
           node_inplace="AtanhBackward1", backward={
    "self": lambda grad, self: grad / conj(1 - self * self),
})  # fmt: skip
def atanh(self: Any) -> Any:
    """The inverse of the hyperbolic tangent.

    >>> import flambeau as torch
    >>> torch.atanh(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    return E.arctanh(self)


def _inverse_square(x: Any, y: Any) -> Any:
    """`1 / (x*x + y*y)`, and 0 at the origin."""
    square = x * x + y * y
    return ops.where(square == 0, 0.0, ops.reciprocal(square))


@pointwise("atan2(Tensor self, Tensor other) -> Tensor",
           autocast="cuda=widest", promote="float", numbers="none",
           dtypes="bool int float", label="atan2_cpu", backward={
    "self": lambda grad, self, other: grad * other * _inverse_square(self, other),
    "other": lambda grad, self, other: grad * -self * _inverse_square(self, other),
})  # fmt: skip
def atan2(self: Any, other: Any) -> Any:
    """The angle of the point (other, input), from -pi to pi.

    >>> import flambeau as torch
    >>> torch.atan2(torch.tensor([1.0]), torch.tensor([-1.0]))
    tensor([2.3562])
    """
    return E.arctan2(self, other)


@pointwise("hypot(Tensor self, Tensor other) -> Tensor", dtypes="float", numbers="none",
           label="hypot_cpu", backward={
    "self": lambda grad, self, result: grad * (self / result),
    "other": lambda grad, other, result: grad * (other / result),
})  # fmt: skip
def hypot(self: Any, other: Any) -> Any:
    """`sqrt(input**2 + other**2)` without overflow.

    >>> import flambeau as torch
    >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
    tensor([5.])
    """
    return E.hypot(self, other)


def _sinc(x: np.ndarray) -> Any:
    scaled = x * np.asarray(math.pi, x.dtype)
    one = np.ones((), x.dtype)
    return np.where(x == 0, one, np.sin(scaled) / np.where(x == 0, one, scaled))


add_primitive("sinc", _sinc)


def _sinc_grad(grad: Any, self: Any) -> Any:
    scaled = self * math.pi
    slope = (scaled * ops.cos(scaled) - ops.sin(scaled)) / (scaled * self)
    return ops.where(scaled * self == 0, 0.0, grad * conj(slope))


@pointwise(
    "sinc(Tensor self) -> Tensor", label="sinc_cpu", promote="float", backward={"self": _sinc_grad}
)
def sinc(self: Any) -> Any:
    """`sin(pi * x) / (pi * x)`, and 1 at 0.

    >>> import flambeau as torch
    >>> torch.sinc(torch.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return E.sinc(self)


_NO_DEGREES = {"complex": RuntimeError("deg2rad is not supported for complex tensors.")}
_NO_RADIANS = {"complex": RuntimeError("rad2deg is not supported for complex tensors.")}


@pointwise("deg2rad(Tensor self) -> Tensor",
           sparse_entries="distinct", promote="float", dtypes="bool int float",
           node="Deg2RadBackward0", refusals=_NO_DEGREES, backward={
    "self": lambda grad: grad * (math.pi / 180)})  # fmt: skip
def deg2rad(self: Any) -> Any:
    """Degrees as radians.

    >>> import flambeau as torch
    >>> torch.deg2rad(torch.tensor([180.0]))
    tensor([3.1416])
    """
    return self * (math.pi / 180)


@pointwise("rad2deg(Tensor self) -> Tensor",
           sparse_entries="distinct", promote="float", dtypes="bool int float",
           node="Rad2DegBackward0", refusals=_NO_RADIANS, backward={
    "self": lambda grad: grad * (180 / math.pi)})  # fmt: skip
def rad2deg(self: Any) -> Any:
    """Radians as degrees.

    >>> import flambeau as torch
    >>> torch.rad2deg(torch.tensor([3.14159265]))
    tensor([180.])
    """
    return self * (180 / math.pi)


for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
    alias(f"arc{_name}", f"a{_name}")
alias("arctan2", "atan2")
