"""Addition to exponentiation: the rows behind Python's arithmetic operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._core import modes
from flambeau._ops.table import binder, unformulated
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.namespace import get_inplace, ops
from flambeau._ops.table.op import REGISTRY, InAten, alias, composite, pointwise
from flambeau._ops.table.outputs import FOUND
from flambeau._ops.table.pointwise import broadcast_shape, wants_grad
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import check_inplace


def zero_like(grad: Any) -> Any:
    """The gradient of a function that is constant almost everywhere."""
    return ops.zeros_like(grad)


def underived(name: str) -> Any:
    """The formula for an argument that torch has no derivative for: an error when it is needed."""

    def formula() -> Any:
        raise NotImplementedError(unformulated.DECLARED.format(name=name))

    formula.refuses = True  # type: ignore[attr-defined]  # where it is not asked for, it may not run
    return formula


def conj(tensor: Tensor) -> Tensor:
    """The conjugate as formulas need it: real tensors are themselves."""
    return ops._conj_physical(tensor) if tensor._data.dtype.kind in "cW" else tensor  # type: ignore[no-any-return]


@pointwise("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", regular=True,
           fused=True, complex_half=True,
           earlier=True, numbers="all",
           saved_facts={"alpha": 1}, backward={
    "self": lambda grad: grad,
    "other": lambda grad: grad,
})  # fmt: skip
def add(self: Any, other: Any) -> Any:
    """`input + alpha * other`, broadcasting.

    Types promote; `alpha` must be an integer beside integer tensors.

    >>> import flambeau as torch
    >>> torch.add(torch.tensor([1, 2]), torch.tensor([10, 20]), alpha=2)
    tensor([21, 42])
    """
    return self + other


NO_BOOL_SUBTRACTION: dict[str, Exception] = {"bool": RuntimeError(
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
    "`logical_xor()` operator instead.")}  # fmt: skip
NO_BOOL_NEGATION: dict[str, Exception] = {"bool": RuntimeError(
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
    "mask, use the `~` or `logical_not()` operator instead.")}  # fmt: skip


def _check_subtraction(operands: list[Any]) -> None:
    flags = [isinstance(v, bool) or (isinstance(v, Tensor) and v._data.dtype.kind == "b")
             for v in operands]  # fmt: skip
    if any(flags) and not all(flags):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If "
                           "you are trying to invert a mask, use the `~` or `logical_not()` "
                           "operator instead.")  # fmt: skip


@pointwise("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
           regular=True, fused=True,
           complex_half=True, earlier=True, dtypes="int float complex", label="sub", numbers="all",
           refusals=NO_BOOL_SUBTRACTION, saved_facts={"alpha": 1},
           check=_check_subtraction, backward={
    "self": lambda grad: grad,
    "other": lambda grad: -grad,
})  # fmt: skip
def sub(self: Any, other: Any) -> Any:
    """`input - alpha * other`, broadcasting. Not defined for bool: use `^` or `logical_xor`.

    >>> import flambeau as torch
    >>> torch.sub(torch.tensor([3, 4]), 1)
    tensor([2, 3])
    """
    return self - other


@pointwise("rsub.Tensor(Tensor self, Tensor other) -> Tensor", regular=True, fused=True,
           complex_half=True, dtypes="int float complex",
           public="_rsub", shown="rsub", method=False, inplace=False, out=False, label="sub",
           node="RsubBackward0", number_nodes={"other": "RsubBackward1"},
           refusals=NO_BOOL_SUBTRACTION, saved_facts={"alpha": 1},
           check=_check_subtraction, backward={
    "self": lambda grad: -grad,
    "other": lambda grad: grad,
})  # fmt: skip
def reversed_sub(self: Any, other: Any) -> Any:
    """`other - input`."""
    return other - self


def _checked_factor(name: str, other: Any, alpha: Any) -> Any:
    """`alpha` given by position, which torch takes beside a number alone."""
    if not binder.is_plain_number(other) or not binder.is_plain_number(alpha):
        raise TypeError(f"{name}() takes alpha by position only beside another number")
    return alpha


@composite(
    "rsub.alpha(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    bare=True,
    complex_half=True,
    method=False,
)
def rsub(input: Tensor, other: Any, number: Any = None, *, alpha: Any = 1) -> Any:
    """`other - alpha * input`: subtraction with its operands exchanged.

    The shapes broadcast.

    Beside a number, `alpha` may be given by position, too.

    >>> import flambeau as torch
    >>> torch.rsub(torch.tensor([1, 2]), 10)
    tensor([9, 8])
    """
    alpha = alpha if number is None else _checked_factor("rsub", other, number)
    from flambeau._ops.table.number_operands import scaled

    require_tensor("rsub", "input", 1, input)
    if alpha.__class__ is not int or alpha != 1:
        input = scaled(other, input, alpha, REGISTRY["rsub.Tensor"])
    return ops._rsub(input, other)


@pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor", regular=True, fused=True,
           complex_half=True, numbers="all", exact_number=True,
           backward={
    "self": lambda grad, other: grad * conj(other),
    "other": lambda grad, self: grad * conj(self),
})  # fmt: skip
def mul(self: Any, other: Any) -> Any:
    """Multiply element by element, broadcasting; bools multiply as `and`.

    >>> import flambeau as torch
    >>> torch.mul(torch.tensor([1., 2.]), 3)
    tensor([3., 6.])
    """
    return self * other


@pointwise("div.Tensor(Tensor self, Tensor other) -> Tensor", fused=True,
           label="div_cpu", promote="float", numbers="all",
           exact_number=True, backward={
    "self": lambda grad, other: grad / conj(other),
    "other": lambda grad, self, other: -grad * conj(self / other / other),
})  # fmt: skip
def div(self: Any, other: Any) -> Any:
    """True division, element by element, broadcasting; integers give the default float type.

    >>> import flambeau as torch
    >>> torch.div(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    return self / other


@composite("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", bare=True,
           order=1, inplace=True, numbers="all")  # fmt: skip
def div_with_mode(input: Any, other: Any, *, rounding_mode: str | None, out: Any = None) -> Any:
    """Division rounded to "trunc" (towards zero) or "floor", or not at all (None)."""
    if rounding_mode is None:
        return _named(ops.div(input, other, out=out))
    return getattr(ops, _rounded_row(rounding_mode))(input, other, out=out)


def _named(result: Any) -> Any:
    """A quotient under the name of division with a mode."""
    node = getattr(result, "_node", None)
    if node is not None and node.title == "DivBackward0":
        from flambeau._ops.views.strided import renamed

        renamed(node, "DivBackward2")
    return result


ROUNDED = ("trunc", "floor")


def _rounded_row(rounding_mode: str) -> str:
    if rounding_mode not in ROUNDED:
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
                           f"found '{rounding_mode}'")  # fmt: skip
    return f"_div_{rounding_mode}"


def div_with_mode_(self: Any, other: Any, *, rounding_mode: str | None) -> Any:
    """The same in place."""
    if rounding_mode is None:
        return _named(get_inplace("div")(self, other))
    if rounding_mode not in ROUNDED:
        check_inplace(self, wants_grad((self, other)))
    return get_inplace(_rounded_row(rounding_mode))(self, other)


div_with_mode.in_place = div_with_mode_


def _integer_check(dividend: np.ndarray, divisor: np.ndarray) -> None:
    if divisor.dtype.kind not in "iu":
        return
    if not (divisor.all() if divisor.ndim else divisor.item()):
        broadcast_shape([dividend.shape, divisor.shape])  # its error comes first
        raise RuntimeError("ZeroDivisionError")


def _floor_divide(a: np.ndarray, b: np.ndarray) -> Any:
    _integer_check(a, b)
    return np.floor_divide(a, b) if a.dtype.kind != "f" else _float_floor(a, b)


def _float_floor(a: np.ndarray, b: np.ndarray) -> Any:
    """Exact floor of the quotient; where the divisor is 0, IEEE division decides."""
    return np.where(b == 0, np.divide(a, b), np.floor_divide(a, b))


def _trunc_divide(a: np.ndarray, b: np.ndarray) -> Any:
    _integer_check(a, b)
    if a.dtype.kind == "u":
        return np.floor_divide(a, b)
    if a.dtype.kind == "i":
        quotient = np.floor_divide(a, b)
        return quotient + ((quotient < 0) & (quotient * b != a))
    return np.trunc(np.divide(a, b))


def _remainder(a: np.ndarray, b: np.ndarray) -> Any:
    """Floats: `fmod`, moved by the divisor where the signs differ; zeros keep the dividend's."""
    _integer_check(a, b)
    if a.dtype.kind != "f":
        return np.remainder(a, b)
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def _fmod(a: np.ndarray, b: np.ndarray) -> Any:
    _integer_check(a, b)
    return np.fmod(a, b)


add_primitive("floor_division", _floor_divide)
add_primitive("trunc_division", _trunc_divide)
add_primitive("checked_remainder", _remainder)
add_primitive("checked_fmod", _fmod, floats=np.fmod)


WITHOUT_SLOPE = {
    "self": lambda grad, other: zero_like(grad),
    "other": lambda grad, self, other: zero_like(grad),
}
"""The gradients of rounded quotients; torch keeps the operands for them."""


@pointwise("_div_trunc(Tensor self, Tensor other) -> Tensor", dtypes="int float",
           label="div_trunc_cpu", node="DivBackward2", exact_number=True, numbers="all",
           aten=lambda *values: InAten("div", values, {"rounding_mode": "trunc"}),
           saved_facts={"rounding_mode": "trunc"},
           backward=WITHOUT_SLOPE)  # fmt: skip
def div_trunc(self: Any, other: Any) -> Any:
    """The quotient rounded towards zero."""
    return E.trunc_division(self, other)


@pointwise("_div_floor(Tensor self, Tensor other) -> Tensor", dtypes="int float",
           label="div_floor_cpu", node="DivBackward2", exact_number=True, numbers="all",
           aten=lambda *values: InAten("div", values, {"rounding_mode": "floor"}),
           saved_facts={"rounding_mode": "floor"},
           backward=WITHOUT_SLOPE)  # fmt: skip
def div_floor(self: Any, other: Any) -> Any:
    """The quotient rounded down."""
    return E.floor_division(self, other)


# Sums, products and quotients with numbers inside of composites and of operators over lists: a
# history keeps nothing but the number.


@composite("_plus_number(Tensor self, Scalar other) -> Tensor", method=False, function=False,
           inplace=True, node="AddBackward1", backward={"self": lambda grad: grad})  # fmt: skip
def plus_number(input: Tensor, number: Any) -> Any:
    """`input + number`."""
    return input + number


@composite("_minus_number(Tensor self, Scalar other) -> Tensor", method=False, function=False,
           inplace=True, node="SubBackward1", backward={"self": lambda grad: grad})  # fmt: skip
def minus_number(input: Tensor, number: Any) -> Any:
    """`input - number`."""
    return input - number


@composite("_times_number(Tensor self, Scalar other) -> Tensor", method=False, function=False,
           inplace=True, node="MulBackward1", backward={
    "self": lambda grad, other: grad * other.conjugate(),
})  # fmt: skip
def times_number(input: Tensor, number: Any) -> Any:
    """`input * number`."""
    return input * number


@composite("_over_number(Tensor self, Scalar other) -> Tensor", method=False, function=False,
           inplace=True, node="DivBackward1", backward={
    "self": lambda grad, other: grad / other.conjugate(),
})  # fmt: skip
def over_number(input: Tensor, number: Any) -> Any:
    """`input / number`."""
    return input / number


@pointwise("floor_divide(Tensor self, Tensor other) -> Tensor",
           out_writer="aten::floor_divide", dtypes="int float",
           label="div_floor_cpu", numbers="all", exact_number=True, underived=True,
           several=True)  # fmt: skip
def floor_divide(self: Any, other: Any) -> Any:
    """The quotient rounded down. Integer division by zero raises.

    >>> import flambeau as torch
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return E.floor_division(self, other)


@pointwise("remainder.Tensor(Tensor self, Tensor other) -> Tensor", dtypes="int float",
           label="remainder_cpu", numbers="both", node="RemainderBackward1",
           number_nodes={"other": "RemainderBackward0"}, backward={
    "self": lambda grad: grad,
    "other": lambda grad, self, other: -grad * ops.div(self, other, rounding_mode="floor"),
})  # fmt: skip
def remainder(self: Any, other: Any) -> Any:
    """Python's `%`: the result has the divisor's sign.

    >>> import flambeau as torch
    >>> torch.remainder(torch.tensor([7, -7]), 3)
    tensor([1, 2])
    """
    return E.checked_remainder(self, other)


@pointwise("fmod.Tensor(Tensor self, Tensor other) -> Tensor", dtypes="int float",
           label="fmod_cpu", node="FmodBackward1",
           number_nodes={"other": "FmodBackward0"}, backward={
    "self": lambda grad: grad,
    "other": lambda grad, self, other: -grad * ops.div(self, other, rounding_mode="trunc"),
})  # fmt: skip
def fmod(self: Any, other: Any) -> Any:
    """C's `fmod`: the result has the dividend's sign.

    >>> import flambeau as torch
    >>> torch.fmod(torch.tensor([7, -7]), 3)
    tensor([ 1, -1])
    """
    return E.checked_fmod(self, other)


@pointwise("neg(Tensor self) -> Tensor", sparse_entries="any", regular=True, fused=True,
           complex_half=True, out_type=FOUND, dtypes="int float complex",
           refusals=NO_BOOL_NEGATION, backward={
    "self": lambda grad: -grad,
})  # fmt: skip
def neg(self: Any) -> Any:
    """Change every sign. Not defined for bool: use `~` or `logical_not`.

    >>> import flambeau as torch
    >>> torch.neg(torch.tensor([1, -2]))
    tensor([-1,  2])
    """
    return -self


@pointwise("reciprocal(Tensor self) -> Tensor", fused=True,
           label="reciprocal_cpu", autocast="cuda=float32", promote="float", backward={
    "self": lambda grad, result: -grad * conj(result * result),
})  # fmt: skip
def reciprocal(self: Any) -> Any:
    """`1 / input`; integers give the default float type.

    >>> import flambeau as torch
    >>> torch.reciprocal(torch.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """
    return E.inverse(self)


def _inverse(x: np.ndarray) -> Any:
    return np.divide(x.dtype.type(1), x)


add_primitive("inverse", _inverse, floats=np.reciprocal)


@pointwise("square(Tensor self) -> Tensor",
           sparse_entries="distinct", regular=True, fused=True, out_writer="pow",
           label="pow", node="PowBackward0", promote="int", saved_facts={"exponent": 2}, backward={
    "self": lambda grad, self: grad * conj(2 * (ops.pow(self, 1) if modes.grad.enabled else self)),
})  # fmt: skip
def square(self: Any) -> Any:
    """`input * input`.

    >>> import flambeau as torch
    >>> torch.square(torch.tensor([2, -3]))
    tensor([4, 9])
    """
    return E.square(self)


@composite("positive(Tensor self) -> Tensor", complex_half=True)
def positive(input: Any) -> Any:
    """The tensor itself. Not defined for bool.

    The shape stays.

    >>> import flambeau as torch
    >>> torch.positive(torch.tensor([-1.0]))
    tensor([-1.])
    """
    if input._data.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


for _new, _old in (("subtract", "sub"), ("multiply", "mul"), ("divide", "div"),
                   ("true_divide", "div"), ("negative", "neg")):  # fmt: skip
    alias(_new, _old)
