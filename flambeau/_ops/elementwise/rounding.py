"""Rounding, signs, absolute values, and questions about single numbers."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._core import dtype as dt
from flambeau._ops.elementwise.arithmetic import zero_like
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Body, Op, alias, kernel, pointwise
from flambeau._ops.table.outputs import FOUND, NOT_BOOL
from flambeau._runtime import cpu

ROUNDED = {"self": zero_like}
FLOAT32 = np.dtype(np.float32)


def for_floats(name: str, function: Any) -> None:
    """A primitive that leaves integers as they are."""

    def primitive(x: np.ndarray) -> Any:
        return np.array(x) if x.dtype.kind in "iu" else function(x)

    add_primitive(name, primitive, floats=function)


for _name in ("floor", "ceil", "trunc", "rint"):
    for_floats(f"{_name}_floats", getattr(np, _name))


def _no_complex(name: str) -> dict[str, Exception]:
    return {"complex": NotImplementedError(f"{name} is not supported for complex inputs")}


@pointwise("floor(Tensor self) -> Tensor", sparse_entries="distinct", fused=True, out_type=FOUND,
           dtypes="int float", label="floor_vml_cpu",
           refusals=_no_complex("floor"), backward=ROUNDED)  # fmt: skip
def floor(self: Any) -> Any:
    """Round down.

    >>> import flambeau as torch
    >>> torch.floor(torch.tensor([-0.5, 1.2]))
    tensor([-1.,  1.])
    """
    return E.floor_floats(self)


@pointwise("ceil(Tensor self) -> Tensor", sparse_entries="distinct",
           fused=True, out_type=FOUND, dtypes="int float", label="ceil_vml_cpu",
           refusals=_no_complex("ceil"), backward=ROUNDED)  # fmt: skip
def ceil(self: Any) -> Any:
    """Round up.

    >>> import flambeau as torch
    >>> torch.ceil(torch.tensor([-0.5, 1.2]))
    tensor([-0., 2.])
    """
    return E.ceil_floats(self)


@pointwise("trunc(Tensor self) -> Tensor", sparse_entries="distinct", out_type=FOUND,
           dtypes="int float", label="trunc_vml_cpu",
           refusals=_no_complex("trunc"), backward=ROUNDED)  # fmt: skip
def trunc(self: Any) -> Any:
    """Round towards zero.

    >>> import flambeau as torch
    >>> torch.trunc(torch.tensor([-1.7, 1.7]))
    tensor([-1.,  1.])
    """
    return E.trunc_floats(self)


@pointwise("frac(Tensor self) -> Tensor",
           sparse_entries="distinct", out_type=FOUND, dtypes="float", label="frac_cpu",
           backward={"self": lambda grad: grad})  # fmt: skip
def frac(self: Any) -> Any:
    """The part after the point, with the sign of the input.

    >>> import flambeau as torch
    >>> torch.frac(torch.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """
    return self - E.trunc(self)


@pointwise("round(Tensor self) -> Tensor", sparse_entries="distinct", out_type=FOUND,
           order=0, dtypes="int float", label="round_vml_cpu",
           backward=ROUNDED)  # fmt: skip
def round(self: Any) -> Any:
    """Round to the nearest integer; halves to the even one.

    >>> import flambeau as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.])
    """
    return E.rint_floats(self)


def _round_to(x: np.ndarray, decimals: np.ndarray) -> Any:
    """Scale, round, scale back; a division where that is exact, as torch computes."""
    places = int(decimals.item())
    if places == 0:
        return np.rint(x)
    scale = x.dtype.type(10.0 ** builtins.abs(places))
    if places < 0:
        return np.rint(x / scale) * scale
    return np.rint(x * scale) / scale


add_primitive("round_to", _round_to)


@pointwise("round.decimals(Tensor self, *, int decimals) -> Tensor", out_type=FOUND,
           dtypes="float", order=1,
           promote="tensors", label="round_cpu", backward=ROUNDED,
           node="RoundBackward1")  # fmt: skip
def round_decimals(self: Any, decimals: Any) -> Any:
    """Round to a number of decimal places; negative places round to tens, hundreds, ...

    The gradient is 0, as that of all roundings.

    >>> import flambeau as torch
    >>> torch.round(torch.tensor([1.234, 56.78]), decimals=1)
    tensor([ 1.2000, 56.8000])
    """
    return E.round_to(self, decimals)


# ---- questions


def question(name: str, **options: Any) -> Callable[[Body], Op]:
    """A row that answers with a bool for each element, and is not written in place."""
    return pointwise(f"{name}(Tensor self) -> Tensor", promote="bool", inplace=False, **options)


def question_of_reals(name: str, refusal: Exception) -> Callable[[Body], Op]:
    """One that complex numbers have no answer to."""
    return question(name, sparse_entries="distinct", out_type=NOT_BOOL, dtypes="bool int float",
                    refusals={"complex": refusal})  # fmt: skip


# ---- signs


def _sign(x: np.ndarray) -> Any:
    if x.dtype.kind == "b":
        return np.array(x)
    signs = np.sign(x)
    return np.where(np.isnan(x), x.dtype.type(0), signs) if x.dtype.kind == "f" else signs


def _sgn(x: np.ndarray) -> Any:
    return np.sign(x) if x.dtype.kind in "cW" else _sign(x)


add_primitive("sign_of", _sign)
add_primitive("sgn", _sgn)


@pointwise("sign(Tensor self) -> Tensor", sparse_entries="distinct", fused=True, out_type=FOUND,
           dtypes="bool int float", backward=ROUNDED, refusals={
    "complex": NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex "
                                   "numbers. Please use torch.sgn instead.")})  # fmt: skip
def sign(self: Any) -> Any:
    """-1, 0 or 1.

    >>> import flambeau as torch
    >>> torch.sign(torch.tensor([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """
    return E.sign_of(self)


def _sgn_grad(grad: Any, self: Any, result: Any) -> Any:
    """Complex: the part of the gradient across the direction of z, divided by |z|."""
    if self._data.dtype.kind not in "cW":
        return ops.zeros_like(grad)
    along = ops.real(grad / result)
    slope = (grad - along * result) / ops.abs(self)
    return ops.where(self == 0, 0.0, slope)


@pointwise(
    "sgn(Tensor self) -> Tensor",
    sparse_entries="distinct",
    complex_half=True,
    out_type=FOUND,
    backward={"self": _sgn_grad},
)
def sgn(self: Any) -> Any:
    """`sign`, and `input / abs(input)` for complex numbers.

    >>> import flambeau as torch
    >>> torch.sgn(torch.tensor([3 + 4j, 0]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return E.sgn(self)


@question_of_reals(
    "signbit", NotImplementedError("signbit is not implemented for complex tensors.")
)
def signbit(self: Any) -> Any:
    """Whether the sign bit is set; -0.0 has it.

    >>> import flambeau as torch
    >>> torch.signbit(torch.tensor([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """
    return E.signbit(self)


def _abs_type(inputs: Any) -> str:
    """Sizes of complex numbers are written to any float type."""
    return "" if inputs[0]._data.dtype.kind in "cW" else FOUND


@pointwise("abs(Tensor self) -> Tensor", sparse_entries="distinct", regular=True, fused=True,
           complex_half=True, dtypes="int float complex", label="abs_cpu",
           out_type=_abs_type, backward={
    "self": lambda grad, self: grad * ops.sgn(self),
})  # fmt: skip
def abs(self: Any) -> Any:
    """The absolute value; of complex numbers, a real one. The gradient at 0 is 0.

    >>> import flambeau as torch
    >>> torch.abs(torch.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """
    return E.absolute(self)


def _as_float(x: np.ndarray) -> np.ndarray:
    return x.astype(FLOAT32) if x.dtype in dt.NUMPY_HALVES else x


@question("isnan", sparse_entries="distinct", complex_half=True, out=False)
def isnan(self: Any) -> Any:
    """Whether elements are nan.

    >>> import flambeau as torch
    >>> torch.isnan(torch.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    return E.isnan(self)


@question("isinf", sparse_entries="distinct", complex_half=True, out=False)
def isinf(self: Any) -> Any:
    """Whether elements are infinite.

    >>> import flambeau as torch
    >>> torch.isinf(torch.tensor([1.0, float("-inf")]))
    tensor([False,  True])
    """
    return E.isinf(self)


@question("isfinite", complex_half=True, out=False)
def isfinite(self: Any) -> Any:
    """Whether elements are neither infinite nor nan.

    >>> import flambeau as torch
    >>> torch.isfinite(torch.tensor([1.0, float("inf"), float("nan")]))
    tensor([ True, False, False])
    """
    return E.isfinite(self)


@question_of_reals("isposinf", RuntimeError("isposinf does not support complex inputs."))
def isposinf(self: Any) -> Any:
    """Whether elements are positive infinity.

    >>> import flambeau as torch
    >>> torch.isposinf(torch.tensor([-float("inf"), float("inf"), 1]))
    tensor([False,  True, False])
    """
    return E.logical_and(E.isinf(self), self > 0)


@question_of_reals("isneginf", RuntimeError("isneginf does not support complex inputs."))
def isneginf(self: Any) -> Any:
    """Whether elements are negative infinity.

    >>> import flambeau as torch
    >>> torch.isneginf(torch.tensor([-float("inf"), float("inf"), 1]))
    tensor([ True, False, False])
    """
    return E.logical_and(E.isinf(self), self < 0)


add_primitive("isreal", lambda x: np.isreal(x) | np.zeros(x.shape, bool))


@question("isreal", complex_half=True, out=False)
def isreal(self: Any) -> Any:
    """Whether the imaginary part is 0.

    >>> import flambeau as torch
    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    return E.isreal(self)


def laid_out(result: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A result in memory laid out as the input's."""
    strides = cpu.preserved_strides(like)
    if strides is None:
        return np.array(result, order="C", copy=None)
    placed = cpu.empty_strided(like.shape, strides, result.dtype)
    placed[...] = result
    return placed


@kernel("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)"
        " -> Tensor", sparse_entries="distinct", inplace=True, out=True, elementwise=True,
        out_type="nan_to_num: dtype of out: {have} should be same as input: {want}", backward={
    "self": lambda grad, self: grad * ops.isfinite(self),
})  # fmt: skip
def nan_to_num(data: np.ndarray, nan: Any, posinf: Any, neginf: Any) -> np.ndarray:
    """nan and infinities replaced: by 0 and the type's limits where nothing is given.

    >>> import flambeau as torch
    >>> torch.nan_to_num(torch.tensor([float("nan"), 1.0]), nan=0.5)
    tensor([0.5000, 1.0000])
    """
    if data.dtype.kind in "biu":
        return laid_out(data.copy(), data)
    low, high = _limits(data.dtype)
    values = (0.0 if nan is None else nan, high if posinf is None else posinf,
              low if neginf is None else neginf)  # fmt: skip
    if data.dtype.kind in "cW":
        result = np.empty(data.shape, data.dtype)
        result.real = _replaced(data.real, values)
        result.imag = _replaced(data.imag, values)
        return laid_out(result, data)
    return laid_out(_replaced(_as_float(data), values).astype(data.dtype, copy=False), data)


@cache
def _limits(numpy_dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the largest number of a type, or of a complex type's parts."""
    limits = dt.finfo(dt.from_numpy_dtype(numpy_dtype).to_real())
    return limits.min, limits.max


def _replaced(x: np.ndarray, values: tuple[float, float, float]) -> np.ndarray:
    nan, posinf, neginf = values
    result = np.array(x)
    if np.isfinite(x).all():
        return result
    result[np.isnan(x)] = nan
    result[x == np.inf] = posinf
    result[x == -np.inf] = neginf
    return result


# ---- floating-point numbers from parts


def _copysign_grad(grad: Any, self: Any, result: Any) -> Any:
    return grad * ops.where(self == 0, 0.0, result / self)


@pointwise("copysign.Tensor(Tensor self, Tensor other) -> Tensor", promote="float",
           dtypes="bool int float", label="copysign_cpu",
           number_nodes={"other": "CopysignBackward1"}, backward={
    "self": _copysign_grad,
    "other": lambda grad: ops.zeros_like(grad),
})  # fmt: skip
def copysign(self: Any, other: Any) -> Any:
    """The size of `input` with the sign of `other`.

    >>> import flambeau as torch
    >>> torch.copysign(torch.tensor([2.0]), -1)
    tensor([-2.])
    """
    return E.copysign(self, other)


@pointwise("nextafter(Tensor self, Tensor other) -> Tensor", dtypes="float", numbers="none",
           label="nextafter_cpu", backward={
    "self": lambda grad, self, other: ops.where(self == other, 0.0, grad),
    "other": zero_like,
})  # fmt: skip
def nextafter(self: Any, other: Any) -> Any:
    """The next number of this type towards `other`.

    >>> import flambeau as torch
    >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) > 1
    tensor([True])
    """
    return E.nextafter(self, other)


@kernel("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", out=True,
        out_type="torch.frexp() expects {part} to have dtype {c_want} but got {c_have}",
        nondifferentiable=("exponent",), backward={
    "self": lambda grad, exponent: grad / ops.exp2(exponent.to(grad.dtype)),
})  # fmt: skip
def frexp(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A mantissa from 0.5 to 1 and an int32 exponent: `input = mantissa * 2**exponent`.

    Takes any shape; both results have the same.

    >>> import flambeau as torch
    >>> torch.frexp(torch.tensor([8.0, 0.75]))
    torch.return_types.frexp(
    mantissa=tensor([0.5000, 0.7500]),
    exponent=tensor([4, 0], dtype=torch.int32))
    """
    if data.dtype.kind not in "fV":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(_as_float(data))
    mantissa = np.asarray(mantissa).astype(data.dtype)
    exponent = np.where(np.isfinite(mantissa), exponent, 0).astype(np.int32)
    return laid_out(mantissa, data), laid_out(exponent, data)


alias("absolute", "abs")
alias("fix", "trunc")
alias("special.round", "round")
