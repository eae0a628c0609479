"""Bounds and mixtures of two or three tensors: `clamp`, `maximum`, `lerp`, `addcmul`, `where`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._core import modes
from flambeau._ops.table import binder
from flambeau._ops.table.namespace import get_inplace, ops
from flambeau._ops.table.op import (
    InAten,
    alias,
    composite,
    internal,
    pointwise,
)
from flambeau._ops.table.outputs import FOUND
from flambeau._ops.table.pointwise import (
    common_dtype,
    number_of,
)
from flambeau._ops.table.scalars import check_fits
from flambeau._ops.table.twins import twin
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


@internal("_stepped(Tensor self, Tensor source) -> Tensor",
          batch="elements",
          node="StepBackward0", backward={
    "self": lambda grad, source: stepped(grad, source),
    "source": lambda grad, source_shape: ops.new_zeros(grad, source_shape),
})  # fmt: skip
def _stepped(data: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The same numbers."""
    return data.copy()


@internal("_beside(Tensor self, Tensor source) -> Tensor",
          batch="elements",
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
    called = sys._getframe(2).f_code.co_qualname  # of the code that has asked: see `twins`
    given = [] if called.startswith(binder.METHOD) else [binder.plain_type_name(input)]
    if min is not None:
        given.append(binder.plain_type_name(min))
    if max is not None:
        given.append(f"{'max=' if min is None else ''}{binder.plain_type_name(max)}")
    name = called.rpartition(".")[2]
    return TypeError(f"{name}() received an invalid combination of arguments - got "
                     f"({', '.join(given)}), but expected one of:\n"
                     " * (Tensor input, Tensor min = None, Tensor max = None, *, "
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
