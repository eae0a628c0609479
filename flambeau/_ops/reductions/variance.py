"""Variance and standard deviation: `var`, `std`, `var_mean`, `std_mean`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flambeau._core.parts import imaginary_part, part_type, real_part
from flambeau._core.settings import warn_user
from flambeau._ops.reductions.adding import add_up
from flambeau._ops.reductions.sums import (
    compiled,
    expand_reduced,
    finished,
    reduced_count,
    restore_dims,
    working_array,
    write,
)
from flambeau._ops.table.dims import wrap_dims
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Body, InAten, Op, composite, reduction


def _variance(data: np.ndarray, dim: Any, correction: Any, keepdim: bool, name: str) -> Any:
    """(variance, mean) in two passes, in the working type; `correction` None stands for 1."""
    if data.dtype.kind in "biu":
        label = name if "mean" in name else "std and var"
        raise RuntimeError(f"{label} only support floating point and complex dtypes")
    axes = wrap_dims(dim, data.ndim)
    count = data.size if len(axes) == data.ndim else math.prod([data.shape[d] for d in axes])
    freedom = count - (1 if correction is None else correction)
    if freedom <= 0 or (data.size == 0 and count):  # nothing is reduced where nothing comes out
        _warn_freedom(name)
    kernels = compiled(data, axes, "variance") if data.dtype.kind not in "cW" else None
    if kernels is not None:
        found = kernels.moments(data, axes, keepdim, count - freedom)
        if found is not None:
            return found[1], found[0]
    data = working_array(data)
    if data.dtype == np.float32:  # a mean in float32 is too far off where it is large
        data = data.astype(np.float64)
    mean = add_up(data, axes, data.dtype, True) / data.dtype.type(count)
    centered = data - mean
    squares = centered * centered
    if data.dtype.kind in "cW":
        squares = real_part(centered) ** 2 + imaginary_part(centered) ** 2
    total = add_up(squares, axes, squares.dtype, keepdim)
    divisor = total.dtype.type(freedom if freedom > 0 else 0)
    return total / divisor, mean if keepdim else np.squeeze(mean, axes)


def _warn_freedom(name: str) -> None:
    warn_user(
        f"{name}(): degrees of freedom is <= 0. Correction should be strictly "
        "less than the reduction factor (input numel divided by output numel)."
    )


def _real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind in "fV" else part_type(dtype)


def _var_backward(grad: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """2 (x - mean) / (n - correction)."""
    correction = 1 if correction is None else correction
    freedom = reduced_count(self._data.shape, dim) - correction
    if dim is not None:
        grad = restore_dims(grad, self._data.ndim, dim, keepdim)
    if (dim is None or not self._data.ndim) and freedom <= 0:  # nothing is divided by nothing
        return grad * ops.where(self == ops.mean(self, dim, True), float("nan"), float("inf"))
    centered = self - ops.mean(self, dim, True)
    return (2.0 / freedom if freedom else math.inf) * grad * centered


def _std_backward(grad: Any, self: Any, result: Any, dim: Any, correction: Any,
                  keepdim: bool) -> Any:  # fmt: skip
    grad = ops.masked_fill(grad / (result * 2), result == 0, 0)
    return _var_backward(grad, self, dim, correction, keepdim)


def _in_aten(name: str, self: Any, dim: Any = None, correction: Any = None,
             keepdim: bool = False) -> InAten:  # fmt: skip
    dims = [dim] if isinstance(dim, int) else dim and list(dim)
    told: dict[str, Any] = {"keepdim": True} if keepdim else {}
    return InAten(name, (self, dims), {"correction": correction, **told})


CORRECTION = {
    "correction": lambda values: 1 if values["correction"] is None else values["correction"]
}
"""What users see of it: the number that it stands for."""


def _behind(name: str, returns: str, backward: Callable[..., Any]) -> Callable[[Body], Op]:
    """The row behind one of the public forms below."""
    title = name.title().replace("_", "")
    return reduction(
        f"_{name}(Tensor self, int[1]? dim=None, Scalar? correction=None, bool keepdim=False)"
        f" -> {returns}",
        node=f"{title}Backward0",
        saved_facts=CORRECTION,
        aten=partial(_in_aten, name),
        method=False,
        out=False,
        backward={"self": backward},
    )


@_behind("var", "Tensor", _var_backward)
def var_kernel(data: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> np.ndarray:
    """The row behind `var`."""
    values, _ = _variance(data, dim, correction, keepdim, "var")
    return finished(values, _real_type(data.dtype))


@_behind("std", "Tensor", _std_backward)
def std_kernel(data: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> np.ndarray:
    """The row behind `std`."""
    values, _ = _variance(data, dim, correction, keepdim, "std")
    return finished(np.sqrt(values), _real_type(data.dtype))


def _mean_backward(grad: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    shape = self._data.shape
    return expand_reduced(grad, shape, dim, keepdim) / reduced_count(shape, dim)


def _var_mean_backward(given: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    if given[0] is None:
        return _mean_backward(given[1], self, dim, keepdim)
    found = _var_backward(given[0], self, dim, correction, keepdim)
    return found if given[1] is None else found + _mean_backward(given[1], self, dim, keepdim)


def _std_mean_backward(given: Any, self: Any, result0: Any, dim: Any, correction: Any,
                       keepdim: bool) -> Any:  # fmt: skip
    if given[0] is None:
        return _mean_backward(given[1], self, dim, keepdim)
    found = _std_backward(given[0], self, result0, dim, correction, keepdim)
    return found if given[1] is None else found + _mean_backward(given[1], self, dim, keepdim)


@_behind("var_mean", "(Tensor, Tensor)", _var_mean_backward)
def var_mean_kernel(data: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    """The row behind `var_mean`."""
    values, mean = _variance(data, dim, correction, keepdim, "var_mean")
    return finished(values, _real_type(data.dtype)), finished(mean, data.dtype)


@_behind("std_mean", "(Tensor, Tensor)", _std_mean_backward)
def std_mean_kernel(data: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    """The row behind `std_mean`."""
    values, mean = _variance(data, dim, correction, keepdim, "std_mean")
    return finished(np.sqrt(values), _real_type(data.dtype)), finished(mean, data.dtype)


# ---- the public forms: (unbiased), (dim, unbiased, keepdim), (dim, *, correction, keepdim)


def _settle(name: str, dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """(dim, correction) of the three forms; a bool in the place of `dim` is `unbiased`."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is None:
        return dim, correction
    if correction is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments - got both "
                        "unbiased and correction")  # fmt: skip
    return dim, int(unbiased)


_PUBLIC = "Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"


@composite(f"var.correction({_PUBLIC}) -> Tensor", several=True, takes={1: (bool,)})
def var(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: Any = None, out: Any = None) -> Any:  # fmt: skip
    """The variance over all dims, or over those given: squared distances from the mean over
    n - correction (1 unless given; `unbiased=False` stands for 0).

    >>> import flambeau as torch
    >>> torch.var(torch.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, correction = _settle("var", dim, unbiased, correction)
    return write(var, out, ops._var(input, dim, correction, keepdim))


@composite(f"std.correction({_PUBLIC}) -> Tensor", several=True, takes={1: (bool,)})
def std(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: Any = None, out: Any = None) -> Any:  # fmt: skip
    """The standard deviation: the square root of `var`.

    Over all elements: shape (); else without the dims `dim`, or with sizes 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.std(torch.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    dim, correction = _settle("std", dim, unbiased, correction)
    return write(std, out, ops._std(input, dim, correction, keepdim))


@composite(
    f"var_mean.correction({_PUBLIC}) -> (Tensor, Tensor)",
    method=False,
    several=True,
    takes={1: (bool,)},
)
def var_mean(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: Any = None) -> Any:  # fmt: skip
    """Variance and mean together.

    Over all elements: shape (); else without the dims `dim`, or with sizes 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _settle("var_mean", dim, unbiased, correction)
    return ops._var_mean(input, dim, correction, keepdim)


@composite(
    f"std_mean.correction({_PUBLIC}) -> (Tensor, Tensor)",
    method=False,
    several=True,
    takes={1: (bool,)},
)
def std_mean(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: Any = None) -> Any:  # fmt: skip
    """Standard deviation and mean together.

    Over all elements: shape (); else without the dims `dim`, or with sizes 1 there (`keepdim`).

    >>> import flambeau as torch
    >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _settle("std_mean", dim, unbiased, correction)
    return ops._std_mean(input, dim, correction, keepdim)
