"""Bounds and mixtures of two or three tensors: `clamp`, `maximum`, `lerp`, `addcmul`, `where`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.layout import contiguous_strides
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching import copies
from flambeau._ops.table import binder
from flambeau._ops.table.namespace import get_inplace, ops
from flambeau._ops.table.number_operands import scalar_tensor
from flambeau._ops.table.op import InAten, alias, composite, kernel, pointwise
from flambeau._ops.table.outputs import FOUND, write_out
from flambeau._ops.table.pointwise import (
    LIMIT,
    broadcast_shape,
    common_dtype,
    number_of,
    result_strides,
)
from flambeau._ops.table.scalars import check_fits, filling
from flambeau._ops.table.twins import twin
from flambeau._runtime import choice, cpu
from flambeau._tensor.tensor import Tensor, method, wrap
from flambeau.autograd.history import check_inplace

NO_COMPLEX: Any = {"complex": NotImplementedError("clamp is not supported for complex types")}


def kept(grad: Tensor, condition: Tensor) -> Any:
    """The gradient where a condition holds, else 0."""
    return ops._where(condition, grad, wrap(np.zeros((), grad._data.dtype)))


def reached(tensor: Any, condition: Any) -> Any:
    """The tensor where a condition holds, else 0: for a slope that `where` takes only there. What
    is infinite elsewhere would make nan of the zeros that come back from `where`.
    """
    return ops.masked_fill(tensor, ops.logical_not(condition), 0)


def stepped(grad: Any, source: Any) -> Any:
    """A gradient that is a step function of a tensor, whose own gradient therefore exists and is 0;
    and so for gradients of any order. Only where gradients are recorded does it make a difference.
    """
    return ops._stepped(grad, source) if modes.grad.enabled else grad


def beside(grad: Any, source: Any) -> Any:
    """A gradient that a tensor has no influence on, but whose own gradient by it exists and is 0.
    Only where gradients are recorded does it make a difference.
    """
    return ops._beside(grad, source) if modes.grad.enabled else grad


@kernel("_stepped(Tensor self, Tensor source) -> Tensor",
        batch="elements", method=False, function=False,
        node="StepBackward0", backward={
    "self": lambda grad, source: stepped(grad, source),
    "source": lambda grad, source_shape: ops.new_zeros(grad, source_shape),
})  # fmt: skip
def _stepped(data: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The same numbers."""
    return data.copy()


@kernel("_beside(Tensor self, Tensor source) -> Tensor",
        batch="elements", method=False, function=False,
        node="BesideBackward0", backward={
    "self": lambda grad: grad,
    "source": lambda grad, source_shape: ops.new_zeros(grad, source_shape),
})  # fmt: skip
def _beside(data: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The same numbers."""
    return data.copy()


IN_ATEN = {
    "_clamp_low": lambda self, low: InAten("clamp", (self, low)),
    "_clamp_high": lambda self, high: InAten("clamp", (self, None, high)),
    "_clamp_both": lambda *values: InAten("clamp", values),
}
for _name in tuple(IN_ATEN):  # with tensors for numbers
    IN_ATEN[f"{_name}_tensors" if _name == "_clamp_both" else f"{_name}_tensor"] = IN_ATEN[_name]


def _clamp_row(name: str, node: str, types: str, scalar: bool) -> dict[str, Any]:
    label = f"clamp_{types}_cpu" if scalar else "clamp_cpu"
    return {"node": node, "refusals": NO_COMPLEX, "label": label, "numbers": "none",
            "aten": IN_ATEN.get(name), "dtypes": "int float" if scalar else "bool int float",
            "public": name, "shown": "clamp", "several": True,
            "out_type": FOUND if scalar else ""}  # fmt: skip


_LOW = {"self": lambda grad, self, min: kept(grad, self >= min)}
_HIGH = {"self": lambda grad, self, max: kept(grad, self <= max)}
_BOTH = {"self": lambda grad, self, min, max: kept(
    grad, ops.logical_and(self >= min, self <= max))}  # fmt: skip


@pointwise("_clamp_low(Tensor self, Scalar min) -> Tensor",
           out_writer="clamp", method=False, backward=_LOW,
           **_clamp_row("_clamp_low", "ClampBackward1", "min_scalar", True))  # fmt: skip
def clamp_low(self: Any, min: Any) -> Any:
    """At least `min`."""
    return E.maximum(min, self)


@pointwise("_clamp_high(Tensor self, Scalar max) -> Tensor",
           out_writer="clamp", method=False, backward=_HIGH,
           **_clamp_row("_clamp_high", "ClampBackward1", "max_scalar", True))  # fmt: skip
def clamp_high(self: Any, max: Any) -> Any:
    """At most `max`."""
    return E.minimum(max, self)


@pointwise("_clamp_both(Tensor self, Scalar min, Scalar max) -> Tensor", backward=_BOTH,
           method=False, **_clamp_row("_clamp_both", "ClampBackward1", "scalar", True))  # fmt: skip
def clamp_both(self: Any, min: Any, max: Any) -> Any:
    """From `min` to `max`; `max` where they are the wrong way round."""
    return E.minimum(max, E.maximum(min, self))


_LOW_TENSOR = {**_LOW, "min": lambda grad, self, min: kept(grad, self < min)}
_HIGH_TENSOR = {**_HIGH, "max": lambda grad, self, max: kept(grad, self > max)}
_BOTH_TENSORS = {
    **_BOTH,
    "min": lambda grad, self, min, max: kept(grad, ops.logical_and(min < max, self < min)),
    "max": lambda grad, self, min, max: kept(grad, ops.logical_or(self > max, max < min)),
}  # fmt: skip


@pointwise("_clamp_low_tensor(Tensor self, Tensor min) -> Tensor", devices="bounds", method=False,
           backward=_LOW_TENSOR,
           **_clamp_row("_clamp_low_tensor", "ClampBackward0", "", False))  # fmt: skip
def clamp_low_tensor(self: Any, min: Any) -> Any:
    """At least `min`."""
    return E.maximum(min, self)


@pointwise("_clamp_high_tensor(Tensor self, Tensor max) -> Tensor", devices="bounds", method=False,
           backward=_HIGH_TENSOR,
           **_clamp_row("_clamp_high_tensor", "ClampBackward0", "", False))  # fmt: skip
def clamp_high_tensor(self: Any, max: Any) -> Any:
    """At most `max`."""
    return E.minimum(max, self)


@pointwise("_clamp_both_tensors(Tensor self, Tensor min, Tensor max) -> Tensor",
           devices="bounds", method=False,
           backward=_BOTH_TENSORS,
           **_clamp_row("_clamp_both_tensors", "ClampBackward0", "", False))  # fmt: skip
def clamp_both_tensors(self: Any, min: Any, max: Any) -> Any:
    """From `min` to `max`; `max` where they are the wrong way round."""
    return E.minimum(max, E.maximum(min, self))


def _check_bound(operands: Any) -> None:
    """A bound that is a number has to fit into the type of the result."""
    input, bound = operands
    if bound.__class__ in (int, float):
        _check_beside(bound, input)


@pointwise("clamp_min(Tensor self, Scalar min) -> Tensor", order=1, backward=_LOW,
           check=_check_bound,
           **_clamp_row("clamp_min", "ClampMinBackward0", "min_scalar", True))  # fmt: skip
def clamp_min(self: Any, min: Any) -> Any:
    """At least `min`."""
    return E.maximum(min, self)


@pointwise("clamp_max(Tensor self, Scalar max) -> Tensor", order=1, backward=_HIGH,
           check=_check_bound,
           **_clamp_row("clamp_max", "ClampMaxBackward0", "max_scalar", True))  # fmt: skip
def clamp_max(self: Any, max: Any) -> Any:
    """At most `max`."""
    return E.minimum(max, self)


@pointwise("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", regular=True,
           fused=True, order=0, backward=_LOW_TENSOR,
           **_clamp_row("clamp_min", "ClampMinBackward1", "", False))  # fmt: skip
def clamp_min_tensor(self: Any, min: Any) -> Any:
    """At least `min`, element by element.

    >>> import flambeau as torch
    >>> torch.clamp_min(torch.tensor([1, 5]), 3)
    tensor([3, 5])
    """
    return E.maximum(min, self)


@pointwise("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", regular=True, fused=True, order=0,
           backward=_HIGH_TENSOR,
           **_clamp_row("clamp_max", "ClampMaxBackward1", "", False))  # fmt: skip
def clamp_max_tensor(self: Any, max: Any) -> Any:
    """At most `max`, element by element.

    >>> import flambeau as torch
    >>> torch.clamp_max(torch.tensor([1, 5]), 3)
    tensor([1, 3])
    """
    return E.minimum(max, self)


def _clamp_choice(input: Any, min: Any, max: Any) -> tuple[str, tuple[Any, ...]]:
    """The row for these bounds, and the bounds that it takes."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min.__class__ not in PLAIN or max.__class__ not in PLAIN:
        low, high = [_bound(value) for value in _numbers_for_scalars(min, max)]
        if (low is None, high is None) != (min is None, max is None):
            raise _clamp_error(input, min, max)
        min, max = low, high
    suffix = ""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        if not (min is None or max is None or isinstance(min, Tensor) is isinstance(max, Tensor)):
            raise _clamp_error(input, min, max)
        suffix = "_tensor"
    for bound in (min, max):
        if bound.__class__ in (int, float) and not SMALL <= bound <= LARGE:
            _check_beside(bound, input)
    if max is None:
        return f"_clamp_low{suffix}", (min,)
    if min is None:
        return f"_clamp_high{suffix}", (max,)
    return ("_clamp_both_tensors" if suffix else "_clamp_both"), (min, max)


SMALL, LARGE = 0, 127
"""Numbers from one to the other fit into every type."""


def _check_beside(bound: Any, input: Any) -> None:
    """A number that a tensor is compared with has to fit into the type of the result."""
    if input.__class__ is Tensor and input._data.dtype.kind not in "cW":
        check_fits(bound, common_dtype([input, bound]).numpy_dtype)


PLAIN = frozenset((int, float, type(None)))
"""Classes of bounds that are taken as they are."""


def _bound(value: Any) -> Any:
    if value is None or isinstance(value, (Tensor, int, float)):
        return value
    return number_of(value)


def _clamp_error(input: Any, min: Any, max: Any) -> TypeError:
    got = ", ".join(binder.type_name(v) for v in (input, min, max))
    return TypeError(f"clamp() received an invalid combination of arguments - got ({got}), but "
                     "expected one of:\n * (Tensor input, Tensor min = None, Tensor max = None, *, "
                     "Tensor out = None)\n * (Tensor input, Number min = None, Number max = None, "
                     "*, Tensor out = None)\n")  # fmt: skip


def _numbers_for_scalars(min: Any, max: Any) -> tuple[Any, Any]:
    """A 0-dim tensor beside a number counts as a number."""
    bounds = [min, max]
    for position, other in ((0, max), (1, min)):
        bound = bounds[position]
        beside_number = other is not None and not isinstance(other, Tensor)
        if beside_number and isinstance(bound, Tensor) and not bound._data.ndim:
            bounds[position] = bound._data.item()
    return bounds[0], bounds[1]


@composite(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    regular=True,
    fused=True,
    bare=True,
    elementwise=True,
)
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Keep elements from `min` to `max`, numbers or tensors; None is no bound.

    The result has the shape of `input`, with which bounds that are tensors broadcast.

    The gradient passes at the bounds themselves.

    >>> import flambeau as torch
    >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    name, bounds = _clamp_choice(input, min, max)
    return getattr(ops, name)(input, *bounds, out=out)


@method
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp` in place: what is below `min` becomes `min`, what is above `max` becomes `max`.

    Bounds are numbers, or tensors whose shapes broadcast to that of this one.

    >>> import flambeau as torch
    >>> x = torch.tensor([-2, 0, 2])
    >>> torch.clamp_(x, -1, 1)
    tensor([-1,  0,  1])
    """
    if min is None and max is None:
        check_inplace(input, input.requires_grad)
    name, bounds = _clamp_choice(input, min, max)
    return get_inplace(name)(input, *bounds)  # type: ignore[no-any-return]


Tensor.clip_ = twin(clamp_, "Tensor.clip_")  # type: ignore[attr-defined]
alias("clip", "clamp")


# ---- the greater and the lesser


def _refused(name: str) -> Any:
    return {"complex": RuntimeError(f"{name} not implemented for complex tensors.")}


def _greater_grad(grad: Any, self: Any, other: Any) -> Any:
    """All where `self` is greater, half at a tie."""
    half = ops.where(self == other, grad / 2, grad)
    return ops.where(self < other, 0.0, half)


@pointwise("maximum(Tensor self, Tensor other) -> Tensor",
           regular=True, fused=True, dtypes="bool int float",
           numbers="none", inplace=False, refusals=_refused("maximum"), backward={
    "self": lambda grad, self, other: _greater_grad(grad, self, other),
    "other": lambda grad, self, other: _greater_grad(grad, other, self),
})  # fmt: skip
def maximum(self: Any, other: Any) -> Any:
    """The greater of two; nan where either is. At ties each gets half of the gradient.

    >>> import flambeau as torch
    >>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    tensor([3, 5])
    """
    return E.maximum(self, other)


@pointwise("minimum(Tensor self, Tensor other) -> Tensor",
           regular=True, fused=True, dtypes="bool int float",
           numbers="none", inplace=False, refusals=_refused("minimum"), backward={
    "self": lambda grad, self, other: _greater_grad(grad, other, self),
    "other": lambda grad, self, other: _greater_grad(grad, self, other),
})  # fmt: skip
def minimum(self: Any, other: Any) -> Any:
    """The lesser of two; nan where either is. At ties each gets half of the gradient.

    >>> import flambeau as torch
    >>> torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    tensor([1, 2])
    """
    return E.minimum(self, other)


def _first(condition: Any, other: Any) -> Any:
    return ops.logical_or(condition, ops.isnan(other))


@pointwise("fmax(Tensor self, Tensor other) -> Tensor", dtypes="bool int float",
           numbers="none", inplace=False, refusals=_refused("fmax"), backward={
    "self": lambda grad, self, other: kept(grad, _first(self >= other, other)),
    "other": lambda grad, self, other: kept(grad, ops.logical_not(_first(self >= other, other))),
})  # fmt: skip
def fmax(self: Any, other: Any) -> Any:
    """The greater of two; where one is nan, the other.

    >>> import flambeau as torch
    >>> torch.fmax(torch.tensor([1., float("nan")]), torch.tensor([0., 2.]))
    tensor([1., 2.])
    """
    return E.fmax(self, other)


@pointwise("fmin(Tensor self, Tensor other) -> Tensor", dtypes="bool int float",
           numbers="none", inplace=False, refusals=_refused("fmin"), backward={
    "self": lambda grad, self, other: kept(grad, _first(self <= other, other)),
    "other": lambda grad, self, other: kept(grad, ops.logical_not(_first(self <= other, other))),
})  # fmt: skip
def fmin(self: Any, other: Any) -> Any:
    """The lesser of two; where one is nan, the other.

    >>> import flambeau as torch
    >>> torch.fmin(torch.tensor([1., float("nan")]), torch.tensor([0., 2.]))
    tensor([0., 2.])
    """
    return E.fmin(self, other)


DIFFERENT = "heaviside is not yet implemented for tensors with different dtypes."


@pointwise("heaviside(Tensor self, Tensor values) -> Tensor",
           out_writer="aten::heaviside", numbers="none",
           dtypes="bool int float", public="_heaviside", method=False, underived=True,
           out_type=DIFFERENT)  # fmt: skip
def heaviside_step(self: Any, values: Any) -> Any:
    """0 below 0, 1 above, `values` at 0."""
    return E.heaviside_step(self, values)


add_primitive("heaviside_step", lambda x, values: np.where(x == 0, values, x > 0).astype(x.dtype))


def _check_heaviside(input: Tensor, values: Tensor, out: Any = None) -> None:
    if any(tensor is not None and tensor.dtype.is_complex for tensor in (input, values, out)):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError(DIFFERENT)


@composite("heaviside.step(Tensor self, Tensor values) -> Tensor")
def heaviside(input: Tensor, values: Tensor, *, out: Any = None) -> Any:
    """0 where `input` is negative, 1 where it is positive, `values` where it is 0.

    The shapes broadcast.

    >>> import flambeau as torch
    >>> torch.heaviside(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    _check_heaviside(input, values, out)
    return ops._heaviside(input, values, out=out)


@method
def heaviside_(self: Tensor, values: Tensor) -> Tensor:
    """`heaviside` in place; the shape of `values` broadcasts to that of this tensor.

    >>> import flambeau as torch
    >>> torch.tensor([-1.0, 0.0, 1.0]).heaviside_(torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    binder.require_tensor("heaviside_", "values", 1, values)
    _check_heaviside(self, values)
    return get_inplace("_heaviside")(self, values)  # type: ignore[no-any-return]


# ---- mixtures


def _lerp(start: np.ndarray, end: np.ndarray, weight: np.ndarray) -> Any:
    """From the nearer end, so that weights 0 and 1 are exact."""
    span = end - start
    near = np.abs(weight) < 0.5  # noqa: PLR2004
    if near.ndim == 0:
        return start + weight * span if near else end - span * (1 - weight)
    return np.where(near, start + weight * span, end - span * (1 - weight))


add_primitive("lerp", _lerp)
_LERP = {
    "self": lambda grad, weight: grad * (1 - _conj(weight)),
    "end": lambda grad, weight: grad * _conj(weight),
}


def _conj(weight: Any) -> Any:
    return conj(weight) if isinstance(weight, Tensor) else weight.conjugate()


def _check_mixture(operands: list[Any]) -> None:
    """Types are not promoted; a weight without dims may have another one."""
    start = operands[0]._data.dtype
    for name, other in zip(("end", "weight"), operands[1:3], strict=True):
        if not isinstance(other, Tensor) or other._data.dtype == start:
            continue
        if name == "end" or other._data.ndim:
            want, have = (tensor.dtype.c_name for tensor in (operands[0], other))
            raise RuntimeError(f"expected dtype {want} for `{name}` but got dtype {have}")


@pointwise("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
           order=1,
           dtypes="float complex", numbers="none", promote="tensors", label="lerp_kernel_scalar",
           check=_check_mixture, node="LerpBackward0", backward=_LERP)  # fmt: skip
def lerp(self: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`.

    >>> import flambeau as torch
    >>> torch.lerp(torch.tensor([0.0]), torch.tensor([10.0]), 0.25)
    tensor([2.5000])
    """
    return E.lerp(self, end, weight)


@pointwise("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
           regular=True, fused=True,
           order=0,
           dtypes="float complex", numbers="none", label="lerp_kernel_tensor",
           check=_check_mixture, node="LerpBackward1", backward={
    **_LERP,
    "weight": lambda grad, self, end: grad * conj(end - self),
})  # fmt: skip
def lerp_tensor(self: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`, with a weight for each element."""
    return E.lerp(self, end, weight)


@pointwise("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
           regular=True,
           fused=True,
           devices="first factor", complex_half=True, earlier=True, autocast="cuda=widest",
           dtypes="int float complex", numbers="none", promote="tensors",
           label="addcmul_cpu_out", backward={
    "self": lambda grad: grad,
    "tensor1": lambda grad, tensor2, value: grad * conj(tensor2 * value),
    "tensor2": lambda grad, tensor1, value: grad * conj(tensor1 * value),
})  # fmt: skip
def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """`input + value * tensor1 * tensor2`.

    >>> import flambeau as torch
    >>> torch.addcmul(torch.ones(1), torch.tensor([2.0]), torch.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    return self + value * tensor1 * tensor2


_NO_INTEGERS = RuntimeError(
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
    "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be "
    "implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer "
    "inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv "
    "behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all "
    "dtypes."
)


def _check_quotient(operands: list[Any]) -> None:
    """Torch refuses integers over integers whatever they are added to."""
    if all(isinstance(v, Tensor) and v._data.dtype.kind in "biu" for v in operands[1:3]):
        raise _NO_INTEGERS


@pointwise("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
           fused=True,
           earlier=True, autocast="cuda=widest",
           dtypes="float complex", numbers="none", promote="tensors", label="addcdiv_cpu_out",
           refusals={"int": _NO_INTEGERS, "bool": _NO_INTEGERS}, check=_check_quotient, backward={
    "self": lambda grad: grad,
    "tensor1": lambda grad, tensor2, value: grad * conj(value / tensor2),
    "tensor2": lambda grad, tensor1, tensor2, value: -grad * conj(
        value * tensor1 / (tensor2 * tensor2)),
})  # fmt: skip
def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """`input + value * tensor1 / tensor2`.

    >>> import flambeau as torch
    >>> torch.addcdiv(torch.ones(1), torch.tensor([6.0]), torch.tensor([3.0]), value=0.5)
    tensor([2.])
    """
    return self + value * tensor1 / tensor2


# ---- where


@kernel("_where(Tensor condition, Tensor self, Tensor other) -> Tensor", devices="numbers",
        batch="elements", node="WhereBackward0", inline="alike",
        aten=lambda *values: InAten("where", values),
        method=False, backward={
    "self": lambda grad, condition: kept(grad, condition),
    "other": lambda grad, condition: ops._where(
        condition, wrap(np.zeros((), grad._data.dtype)), grad),
})  # fmt: skip
def where_kernel(condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Elements of one or the other, of one type."""
    if choice.Learning.thread or max(condition.size, x.size, y.size) >= LIMIT:
        shape = broadcast_shape([condition.shape, x.shape, y.shape])
        strides = result_strides([condition, x, y], shape) if len(shape) > 1 else None
        wanted = contiguous_strides(shape) if strides is None else strides
        placed = cpu.empty_strided(shape, wanted, x.dtype)
        if copies.choose(placed, condition, x, y):
            return placed
    plain = condition.flags.c_contiguous and x.flags.c_contiguous and y.flags.c_contiguous
    if plain and condition.shape == x.shape == y.shape:
        return np.where(condition, x, y)
    try:
        data = np.where(condition, x, y)
    except ValueError:
        broadcast_shape([condition.shape, x.shape, y.shape])
        raise
    if data.ndim < 2:  # noqa: PLR2004
        return data
    strides = result_strides([condition, x, y], data.shape)
    if strides is None:
        return data
    placed = cpu.empty_strided(data.shape, strides, data.dtype)
    placed[...] = data
    return placed


def _condition(condition: Any) -> Any:
    binder.require_tensor("where", "condition", 1, condition)
    if condition._data.dtype.kind == "b":
        return condition
    if condition.dtype is not dt.uint8:
        raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor "
                           f"with dtype {condition.dtype.scalar_name}")  # fmt: skip
    warnings.warn("where received a uint8 condition tensor. This behavior is deprecated and will "
                  "be removed in a future version of PyTorch. Use a boolean condition instead.",
                  UserWarning, stacklevel=3)  # fmt: skip
    return wrap(condition._data.astype(bool))


def _of_type(value: Any, element: dt.dtype) -> Any:
    if not isinstance(value, Tensor):
        return wrap(filling(value, element.numpy_dtype))
    return value if value.dtype is element else value.to(element)  # type: ignore[attr-defined]


def _number_beside(value: Any, other: Any) -> Any:
    """A number that leaves the type of the tensor beside it alone as a 0-dim tensor."""
    if other.__class__ is not Tensor or value.__class__ not in (float, int):
        return value
    numpy_dtype = other._data.dtype
    number = scalar_tensor(value, numpy_dtype)
    if number is not None and not (numpy_dtype.kind in "fV" and numpy_dtype.itemsize < 4):
        check_fits(value, numpy_dtype)
    return value if number is None else number


def _where_operand(value: Any, name: str, position: int) -> Any:
    if isinstance(value, Tensor):
        return value
    number = number_of(value)
    if number is None:
        raise binder.no_tensor("where", name, position, value)
    return number


@composite("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", regular=True,
           fused=True, bare=True,
           method=False,
           elementwise=True)  # fmt: skip
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elements of `input` where the condition holds, else of `other`; numbers are allowed.

    The three shapes broadcast, and two types meet as in a sum. With the condition alone: the
    indices where it holds, a tensor for each dim.

    >>> import flambeau as torch
    >>> x = torch.tensor([[1.0, -2.0], [-3.0, 4.0]])
    >>> torch.where(x > 0, x, 0.0)
    tensor([[1., 0.],
            [0., 4.]])
    >>> torch.where(x > 0)
    (tensor([0, 1]), tensor([0, 1]))
    """
    if input is None and other is None:
        return ops.nonzero(condition, as_tuple=True)
    condition = _condition(condition)
    input, other = _number_beside(input, other), _number_beside(other, input)
    if input.__class__ is other.__class__ is Tensor and input._data.dtype == other._data.dtype:
        result = ops._where(condition, input, other)
        return result if out is None else write_out(where, out, result, (condition, input, other))
    input, other = _where_operand(input, "input", 2), _where_operand(other, "other", 3)
    element = common_dtype([input, other])
    result = ops._where(condition, _of_type(input, element), _of_type(other, element))
    return result if out is None else write_out(where, out, result, (condition, input, other))


@method
def where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """Elements of this tensor where the condition holds, else of `other`, a tensor or a number.

    The three shapes broadcast.

    >>> import flambeau as torch
    >>> x = torch.tensor([-1.0, 2.0])
    >>> x.where(x > 0, 0.0)
    tensor([0., 2.])
    """
    return where.body(condition, self, other)


where_method.__name__ = "where"
del Tensor.where_method  # type: ignore[attr-defined]
Tensor.where = where_method  # type: ignore[attr-defined]
