"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching import precision
from flambeau._ops.reductions.adding import complex_logaddexp
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, pointwise
from flambeau._ops.table.outputs import write_out
from flambeau._ops.table.pointwise import common_dtype, number_of
from flambeau._ops.table.scalars import checked_number
from flambeau._tensor.tensor import Tensor, method

LN2 = math.log(2)
LN10 = math.log(10)


@pointwise("exp(Tensor self) -> Tensor", regular=True, fused=True,
           label="exp_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, result: grad * conj(result),
})  # fmt: skip
def exp(self: Any) -> Any:
    """e to the power of each element.

    >>> import flambeau as torch
    >>> torch.exp(torch.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return E.exp(self)


@pointwise("exp2(Tensor self) -> Tensor", promote="float", backward={
    "self": lambda grad, result: grad * conj(result) * LN2,
})  # fmt: skip
def exp2(self: Any) -> Any:
    """2 to the power of each element.

    >>> import flambeau as torch
    >>> torch.exp2(torch.tensor([0., 3.]))
    tensor([1., 8.])
    """
    return E.exp2(self)


@pointwise("expm1(Tensor self) -> Tensor", sparse_entries="distinct", fused=True,
           label="expm1_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, result: grad * (conj(result) + 1),
})  # fmt: skip
def expm1(self: Any) -> Any:
    """`exp(input) - 1`, exact for small inputs.

    >>> import flambeau as torch
    >>> torch.expm1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    return E.expm1(self)


@pointwise("log(Tensor self) -> Tensor", fused=True,
           label="log_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, self: grad / conj(self),
})  # fmt: skip
def log(self: Any) -> Any:
    """The natural logarithm.

    >>> import flambeau as torch
    >>> torch.log(torch.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    return E.log(self)


@pointwise("log2(Tensor self) -> Tensor", fused=True,
           label="log2_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, self: grad / (conj(self) * LN2),
})  # fmt: skip
def log2(self: Any) -> Any:
    """The logarithm to base 2.

    >>> import flambeau as torch
    >>> torch.log2(torch.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return E.log2(self)


@pointwise("log10(Tensor self) -> Tensor", fused=True,
           label="log10_vml_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, self: grad / (conj(self) * LN10),
})  # fmt: skip
def log10(self: Any) -> Any:
    """The logarithm to base 10.

    >>> import flambeau as torch
    >>> torch.log10(torch.tensor([1., 10.]))
    tensor([0., 1.])
    """
    return E.log10(self)


@pointwise("log1p(Tensor self) -> Tensor",
           sparse_entries="distinct", fused=True, label="log1p_vml_cpu",
           autocast="cuda=float32", promote="float", node="Log1PBackward0", backward={
    "self": lambda grad, self: grad / conj(self + 1),
})  # fmt: skip
def log1p(self: Any) -> Any:
    """`log(1 + input)`, exact for small inputs.

    >>> import flambeau as torch
    >>> torch.log1p(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    return E.log1p(self)


@pointwise("sqrt(Tensor self) -> Tensor", sparse_entries="distinct",
           fused=True, label="sqrt_vml_cpu", promote="float", backward={
    "self": lambda grad, result: grad / (2 * conj(result)),
})  # fmt: skip
def sqrt(self: Any) -> Any:
    """The square root; the gradient at 0 is infinite.

    >>> import flambeau as torch
    >>> torch.sqrt(torch.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """
    return E.sqrt(self)


def _inverse_root(x: np.ndarray) -> Any:
    return np.divide(x.dtype.type(1), np.sqrt(x))


add_primitive("inverse_root", _inverse_root)


@pointwise("rsqrt(Tensor self) -> Tensor", fused=True,
           label="rsqrt_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, result: -0.5 * grad * conj(result * result * result),
})  # fmt: skip
def rsqrt(self: Any) -> Any:
    """`1 / sqrt(input)`.

    >>> import flambeau as torch
    >>> torch.rsqrt(torch.tensor([4.0]))
    tensor([0.5000])
    """
    return E.inverse_root(self)


# ---- logistic


def _sigmoid(x: np.ndarray) -> Any:
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


add_primitive("sigmoid", _sigmoid)


@pointwise("sigmoid(Tensor self) -> Tensor", regular=True,
           fused=True, label="sigmoid_cpu", promote="float", backward={
    "self": lambda grad, result: ops._sigmoid_slope(result) * grad
    if result._data.dtype.kind not in "cW" else grad * conj((1 - result) * result),
})  # fmt: skip
def sigmoid(self: Any) -> Any:
    """`1 / (1 + exp(-input))`.

    >>> import flambeau as torch
    >>> torch.special.expit(torch.tensor([0.0]))
    tensor([0.5000])
    """
    return E.sigmoid(self)


@pointwise("_sigmoid_slope(Tensor self) -> Tensor", method=False, node="SigmoidBackwardBackward0",
           backward={"self": lambda grad, self: grad * conj(1 - 2 * self)})  # fmt: skip
def sigmoid_slope(self: Any) -> Any:
    """The derivative of the sigmoid from its value: `y * (1 - y)`."""
    return self * (1 - self)


@pointwise("_logit(Tensor self) -> Tensor", shown="logit",
           out_writer="logit", promote="float", dtypes="bool int float",
           label="logit_cpu", method=False, node="LogitBackward0",
           saved_facts={"eps": None}, backward={
    "self": lambda grad, self: ops.where(
        ops.logical_and(self >= 0, self <= 1), grad / (self * (1 - self)), float("nan")),
})  # fmt: skip
def logit_all(self: Any) -> Any:
    """`log(x / (1 - x))`; nan outside of 0 to 1."""
    return E.log(self / (1 - self))


@pointwise("_logit_eps(Tensor self, float eps) -> Tensor", out_writer="logit", promote="float",
           shown="logit", dtypes="bool int float", label="logit_cpu", method=False,
           node="LogitBackward0",
           backward={
    "self": lambda grad, self, eps: ops.where(
        ops.logical_or(self < eps, self > 1 - eps), 0.0, grad / (self * (1 - self))),
})  # fmt: skip
def logit_inside(self: Any, eps: Any) -> Any:
    """`logit` of the input kept within eps and 1 - eps."""
    inside = E.where(self < eps, eps, E.where(self > 1 - eps, 1 - eps, self))
    return E.log(inside / (1 - inside))


@composite("logit(Tensor self, float? eps=None) -> Tensor", elementwise=True)
def logit(input: Tensor, eps: float | None = None, *, out: Any = None) -> Any:
    """`log(x / (1 - x))`, of the input kept within eps and 1 - eps where eps is given.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.special.logit(torch.tensor([0.5]))
    tensor([0.])
    """
    if eps is None or eps < 0:  # which keeps nothing inside
        return ops._logit(input, out=out)
    return ops._logit_eps(input, float(eps), out=out)


@method
def logit_(input: Tensor, eps: float | None = None) -> Tensor:
    """`logit` in place, element by element: the log of `x / (1 - x)`.

    >>> import flambeau as torch
    >>> x = torch.tensor([0.5, 0.9])
    >>> torch.logit_(x)
    tensor([0.0000, 2.1972])
    """
    from flambeau._ops.table.namespace import get_inplace

    if eps is None:
        return get_inplace("_logit")(input)  # type: ignore[no-any-return]
    return get_inplace("_logit_eps")(input, float(eps))  # type: ignore[no-any-return]


# ---- powers


def _power(base: np.ndarray, exponent: np.ndarray) -> Any:
    """Integer powers wrap round; negative exponents of integers give 1, -1 or 0."""
    kind = base.dtype.kind
    if kind == "b":
        return base | ~exponent
    if kind in "cW":
        return np.where((base == 0) & (exponent == 0), complex("nan+nanj"), np.power(base, exponent)
                        ).astype(base.dtype)  # fmt: skip
    if kind == "f":
        return np.power(base, exponent)
    if kind == "i" and (exponent < 0).any():
        return _integer_power(base, exponent)
    return np.power(base, exponent)


def _integer_power(base: np.ndarray, exponent: np.ndarray) -> Any:
    positive = np.power(base, np.where(exponent < 0, 0, exponent).astype(base.dtype))
    signed = np.where(exponent % 2 == 0, 1, base)
    reciprocal = np.where((base == 1) | (base == -1), signed, 0).astype(base.dtype)
    return np.where(exponent < 0, reciprocal, positive)


add_primitive("checked_power", _power)

_FAST_POWERS: dict[Any, Any] = {
    2: np.square, 1: np.positive, 0.5: np.sqrt, -0.5: _inverse_root,
    -1: lambda x: x.dtype.type(1) / x, -2: lambda x: x.dtype.type(1) / (x * x),
}  # fmt: skip


def _number_power(base: np.ndarray, exponent: np.ndarray) -> Any:
    """A power by one number: squares, roots and cubes without `pow`."""
    kind = base.dtype.kind
    number = exponent.item()
    if kind == "i" and number < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if kind in "cW" and number == 0:
        return np.ones_like(base)
    if kind in "fc" and number in _FAST_POWERS:
        return _FAST_POWERS[number](base)
    if kind == "f" and number == 3:
        return base * base * base
    return _power(base, exponent)


add_primitive("number_power", _number_power)


def _check_exponent(operands: list[Any]) -> None:
    base, exponent = operands
    kind = base._data.dtype.kind
    if kind in "iu" and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    whole = kind in "iu" and isinstance(exponent, int)
    if whole or (base._data.dtype in dt.NUMPY_HALVES and not isinstance(exponent, complex)):
        checked_number(exponent, base._data.dtype)
    if (kind == "W" or isinstance(exponent, complex)) and exponent not in (0, 1):
        _no_complex_halves(operands, _POWER_LABELS.get(exponent, "pow"))


def _check_base(operands: list[Any]) -> None:
    base, exponent = operands
    if (exponent._data.dtype.kind == "W" or isinstance(base, complex)) and (
        base != 1 or base is True
    ):
        _no_complex_halves(operands, "pow")


_POWER_LABELS = {0.5: "sqrt_vml_cpu", -0.5: "rsqrt_cpu", -1: "reciprocal_cpu"}


def _no_complex_halves(operands: list[Any], label: str) -> None:
    """complex32 has the powers 0 and 1, and those of 1, which are filled or copied."""
    if common_dtype(operands) is dt.complex32:
        raise precision.refuse(label, dt.complex32.numpy_dtype)


def _power_grad(grad: Any, self: Any, exponent: Any) -> Any:
    """d/dx x**n = n * x**(n-1), and 0 for n = 0 even where x is 0."""
    if exponent == 0 and exponent is not False:
        return ops.zeros_like(self)
    if exponent == 2 and not modes.grad.enabled and not isinstance(exponent, complex):
        return grad * (2 * conj(self))
    slope = exponent * ops.pow(self, exponent - 1)
    return grad * conj(slope)


def _power_grad_base(grad: Any, self: Any, exponent: Any) -> Any:
    slope = grad * conj(exponent * ops.pow(self, exponent - 1))
    return ops.where(exponent == 0, ops.zeros_like(slope), slope)


def _not_negative(exponent: Any) -> Any:
    if exponent._data.dtype.kind not in "cW":
        return exponent >= 0
    return ops.logical_and(ops.real(exponent) >= 0, ops.imag(exponent) == 0)


def _power_grad_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    """d/dn x**n = x**n * log(x), and 0 where x is 0 and the power is defined."""
    flat = ops.logical_and(self == 0, _not_negative(exponent))
    slope = result * ops.log(_as_complex_as(self, result))
    return grad * conj(ops.where(flat, ops.zeros_like(slope), slope))


def _as_complex_as(base: Any, result: Any) -> Any:
    """A real base whose power is complex as a complex number: a negative one has a logarithm."""
    if result._data.dtype.kind not in "cW" or base._data.dtype.kind in "cW":
        return base
    return base.to(result.dtype)


def _power_grad_of_number(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    base = complex(self) if isinstance(self, complex) else self
    if base == 0:
        slope = result * float("-inf")
        return grad * conj(ops.where(_not_negative(exponent), ops.zeros_like(slope), slope))
    return grad * conj(result * _log_of_number(base, result))


def _log_of_number(base: Any, like: Any) -> Any:
    import cmath

    if like._data.dtype.kind in "cW":
        return cmath.log(base)
    return math.log(base) if base > 0 else float("nan")


@pointwise("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
           complex_half=True, autocast="cuda=float32", order=1, exact_number=False,
           node="PowBackward0", check=_check_exponent, backward={"self": _power_grad})  # fmt: skip
def pow_number(self: Any, exponent: Any) -> Any:
    """Each element to the power of a number.

    >>> import flambeau as torch
    >>> torch.pow(torch.tensor([2.0, 3.0]), 2)
    tensor([4., 9.])
    """
    return E.number_power(self, exponent)


@pointwise("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", fused=True,
           autocast="cuda=float32", order=0, numbers="none",
           node="PowBackward1", dtypes="int float complex", backward={
    "self": _power_grad_base,
    "exponent": _power_grad_exponent,
})  # fmt: skip
def pow_tensor(self: Any, exponent: Any) -> Any:
    """Each element to the power of another, broadcasting."""
    return E.checked_power(self, exponent)


@pointwise("pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
           complex_half=True, autocast="cuda=float32", order=2, inplace=False, exact_number=False,
           row_major=True,  # as PyTorch lays it out, whatever the exponents are
           dtypes="int float complex", method=False, node="PowBackward2", check=_check_base,
           backward={"exponent": _power_grad_of_number})  # fmt: skip
def pow_of_number(self: Any, exponent: Any) -> Any:
    """A number to the power of each element."""
    return E.checked_power(self, exponent)


def _wide(value: Any) -> Any:
    """Float64 or complex128, as `float_power` computes."""
    value = value if isinstance(value, Tensor) else number_of(value)
    element = common_dtype([value])
    wide = dt.complex128 if element.is_complex else dt.float64
    if isinstance(value, Tensor):
        return value.to(wide)  # type: ignore[attr-defined]
    return complex(value) if element.is_complex else float(value)


@composite("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", out_writer="pow")
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """A power in double precision, whatever the types of the arguments.

    The shapes broadcast.

    >>> import flambeau as torch
    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    base, power = _wide(input), _wide(exponent)
    if any(common_dtype([v]).is_complex for v in (base, power)) and isinstance(base, Tensor):
        base = base.to(dt.complex128)  # type: ignore[attr-defined]
    result = ops.pow(base, power)
    if out is None:
        return result
    if out.dtype is not result.dtype:
        raise RuntimeError(f"the output given to float_power has dtype {_word(out)} but the "
                           f"operation's result requires dtype {_word(result)}")  # fmt: skip
    return write_out(float_power, out, result)


def _word(tensor: Tensor) -> str:
    return tensor.dtype.scalar_name


@method
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power` in place, for tensors of double precision.

    The shape of `exponent`, if it is a tensor, broadcasts to that of this tensor.

    >>> import flambeau as torch
    >>> torch.tensor([1.0, 2.0], dtype=torch.float64).float_power_(2)
    tensor([1., 4.], dtype=torch.float64)
    """
    result = float_power.body(self, exponent)
    if self.dtype is not result.dtype:
        raise RuntimeError(f"the base given to float_power_ has dtype {_word(self)} but the "
                           f"operation's result requires dtype {_word(result)}")  # fmt: skip
    return self.pow_(exponent)  # type: ignore[attr-defined, no-any-return]


@composite("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", inplace=True, out=True, backward={
    "self": lambda grad, other: grad * conj(ops.pow(2.0, other)),
    "other": lambda grad, result: grad * conj(result) * LN2,
})  # fmt: skip
def ldexp(input: Tensor, other: Tensor) -> Any:
    """`input * 2**other`.

    The two shapes broadcast.

    >>> import flambeau as torch
    >>> torch.ldexp(torch.tensor([1.5]), torch.tensor([3]))
    tensor([12.])
    """
    require_tensor("ldexp", "input", 1, input)
    require_tensor("ldexp", "other", 2, other)
    if input.is_floating_point() and other._data.dtype.kind in "biu":
        return _shifted(input, other)
    return input * ops.pow(2.0, other)


def _shifted(input: Any, places: Any) -> Any:
    """Real numbers times whole powers of two: of their own type, whatever that of the powers."""
    if places._data.dtype.kind == "b":
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
    return (input.double() * ops.pow(2.0, places.double())).to(input.dtype)


# ---- sums of exponentials, products with logarithms


def _logaddexp(x: np.ndarray, y: np.ndarray) -> Any:
    if x.dtype.kind not in "cW":
        return np.logaddexp(x, y)
    return complex_logaddexp(x, y, y).astype(x.dtype)


add_primitive("complex_logaddexp", _logaddexp)


@pointwise("logaddexp(Tensor self, Tensor other) -> Tensor", dtypes="float complex",
           numbers="none", inplace=False, label="logaddexp_cpu", backward={
    "self": lambda grad, self, other: grad / conj(1 + ops.exp(other - self)),
    "other": lambda grad, self, other: grad / conj(1 + ops.exp(self - other)),
})  # fmt: skip
def logaddexp(self: Any, other: Any) -> Any:
    """`log(exp(input) + exp(other))` without overflow.

    >>> import flambeau as torch
    >>> torch.logaddexp(torch.tensor([1000.0]), torch.tensor([1000.0]))
    tensor([1000.6932])
    """
    return E.complex_logaddexp(self, other)


@pointwise("logaddexp2(Tensor self, Tensor other) -> Tensor", dtypes="float", numbers="none",
           inplace=False, label="logaddexp2_cpu", backward={
    "self": lambda grad, self, other: grad / (1 + ops.pow(2, other - self)),
    "other": lambda grad, self, other: grad / (1 + ops.pow(2, self - other)),
})  # fmt: skip
def logaddexp2(self: Any, other: Any) -> Any:
    """`log2(2**input + 2**other)` without overflow.

    >>> import flambeau as torch
    >>> torch.logaddexp2(torch.tensor([3.0]), torch.tensor([3.0]))
    tensor([4.])
    """
    return E.logaddexp2(self, other)


def _xlogy(x: np.ndarray, y: np.ndarray) -> Any:
    product = np.where(x == 0, np.zeros((), x.dtype), x * np.log(y))
    return np.where(np.isnan(y), y, product)


def _xlog1py(x: np.ndarray, y: np.ndarray) -> Any:
    product = np.where(x == 0, np.zeros((), x.dtype), x * np.log1p(y))
    return np.where(np.isnan(y), y, product)


add_primitive("xlogy", _xlogy)
add_primitive("xlog1py", _xlog1py)

_XLOGY: dict[Any, Any] = {
    "self": lambda grad, self, other: ops.where(
        ops.logical_and(self == 0, other <= 0), 0.0, ops.xlogy(grad, other)),
    "other": lambda grad, self, other: grad * self / other,
}  # fmt: skip


@pointwise("xlogy.Tensor(Tensor self, Tensor other) -> Tensor", promote="float", order=0,
           dtypes="bool int float", numbers="both", label="xlogy_cpu", backward=_XLOGY,
           number_nodes={"self": "XlogyBackward1", "other": "XlogyBackward2"})  # fmt: skip
def xlogy(self: Any, other: Any) -> Any:
    """`input * log(other)`, and 0 where `input` is 0.

    >>> import flambeau as torch
    >>> torch.special.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    return E.xlogy(self, other)


@pointwise("special_xlog1py(Tensor self, Tensor other) -> Tensor", promote="float",
           dtypes="bool int float", numbers="both", label="xlog1py_cpu", inplace=False,
           namespace="special", public="xlog1py", node="SpecialXlog1PyBackward0",
           number_nodes={"self": "SpecialXlog1PyBackward1", "other": "SpecialXlog1PyBackward2"},
           backward={
    "self": lambda grad, self, other: ops.where(
        ops.logical_and(self == 0, other <= -1), 0.0, ops.special.xlog1py(grad, other)),
    "other": lambda grad, self, other: grad * self / (other + 1),
})  # fmt: skip
def xlog1py(self: Any, other: Any) -> Any:
    """`input * log1p(other)`, and 0 where `input` is 0."""
    return E.xlog1py(self, other)
