"""Running sums and their like: `cumsum`, `cumprod`, `cummax`, `logcumsumexp`; differences along a
dim and integrals: `diff`, `gradient`, `trapezoid`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import refuse as no_kernel
from flambeau._ops.reductions.adding import WIDER, complex_logaddexp
from flambeau._ops.reductions.sums import (
    INT64,
    accumulation_type,
    castable,
    finished,
    refuse,
    working_array,
    write,
)
from flambeau._ops.table.binder import is_integer
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import SCALAR
from flambeau._ops.table.pointwise import LIMIT, wants_grad
from flambeau._runtime import choice, cpu
from flambeau._tensor.examples import without_zeros
from flambeau._tensor.tensor import Tensor, wrap


def _kernels(size: int) -> Any:
    """The compiled kernels where they are faster, else None."""
    return launcher("scans.launch") if choice.compiled("scan", size) else None


def _accumulate(ufunc: Any, data: np.ndarray, dim: int, dtype: dt.dtype | None) -> np.ndarray:
    """Single precision is accumulated in double, as torch does on the CPU."""
    dim = wrap_dim(dim, data.ndim)
    result, working = accumulation_type(data, dtype)
    data = castable(data, result)
    if data.ndim == 0:
        return np.array(data.astype(result))
    if result.kind in "bW":
        name = "cumprod" if ufunc is np.multiply else "cumsum"
        raise no_kernel(f"{name}_out_cpu", result)
    if dtype is not None and data.dtype != result:
        given, data = data, np.empty_like(data, result)
        cpu.write(data, given)
    kernels = _kernels(data.size)
    if kernels is not None and kernels.fits(data, result):
        return kernels.accumulate(data, dim, result, ufunc is np.multiply)  # type: ignore[no-any-return]
    return finished(ufunc.accumulate(data, dim, WIDER.get(working, working)), result)


# ---- cumsum, cumprod


def is_recorded(*tensors: Any) -> bool:
    """Whether somebody looks on, a graph among others, so that operators have to be called."""
    return bool(modes.watch.active or modes.watch.results) or wants_grad(tensors)


def reverse_cumsum(grad: Any, dim: int) -> Any:
    """Running sums from the end: the gradient of running sums."""
    data = grad._data
    kernels = None if not data.ndim or is_recorded(grad) else _kernels(data.size)
    if kernels is not None and kernels.fits(data, data.dtype):
        return wrap(kernels.accumulate(data, wrap_dim(dim, data.ndim), data.dtype, back=True))
    return ops.flip(ops.cumsum(ops.flip(grad, (dim,)), dim), (dim,)) if grad._data.ndim else grad


@kernel(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inline=True,
    follows_out=True,
    out=True,
    inplace=True,
    autocast="cuda=float32_or_dtype",
    backward={
        "self": reverse_cumsum,
    },
)
def cumsum(data: np.ndarray, dim: int, dtype: dt.dtype | None) -> np.ndarray:
    """The sums of the first 1, 2, 3, ... elements along a dim.

    >>> import flambeau as torch
    >>> torch.cumsum(torch.tensor([1, 2, 3]), dim=0)
    tensor([1, 3, 6])
    """
    return _accumulate(np.add, data, dim, dtype)


def cumprod_backward(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """dx[k] = (product before k) * s[k], where s[k] = grad[k] + x[k+1] s[k+1].

    Where no element is 0 this is a reversed running sum of grad * result, divided by x.
    """
    if not self._data.size or not self._data.ndim or self._data.shape[dim] == 1:
        return grad
    if without_zeros(self._data):
        return reverse_cumsum(grad * conj(result), dim) / conj(self)
    grads, factors = ops.unbind(grad, dim), ops.unbind(conj(self), dim)
    sums = [grads[-1]]
    for gradient, factor in zip(reversed(grads[:-1]), reversed(factors[1:]), strict=True):
        sums.append(gradient + factor * sums[-1])
    length = len(grads)
    one = ops.ones_like(self.narrow(dim, 0, 1))
    before = ops.cumprod(ops.cat([one, self.narrow(dim, 0, length - 1)], dim), dim)
    return conj(before) * ops.stack(sums[::-1], dim)


@kernel(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inline=True,
    follows_out=True,
    out=True,
    inplace=True,
    autocast="cuda=float32_or_dtype",
    backward={"self": cumprod_backward},
)
def cumprod(data: np.ndarray, dim: int, dtype: dt.dtype | None) -> np.ndarray:
    """The products of the first 1, 2, 3, ... elements along a dim.

    >>> import flambeau as torch
    >>> torch.cumprod(torch.tensor([1, 2, 3]), dim=0)
    tensor([1, 2, 6])
    """
    return _accumulate(np.multiply, data, dim, dtype)


# ---- cummax, cummin


def _running(ufunc: Any, data: np.ndarray, dim: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Running extreme values, and the index of the last element equal to each."""
    if data.ndim == 0 and dim not in (-1, 0):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    if not data.size:  # of nothing, dims and types don't matter
        return data.copy(), np.zeros(data.shape, INT64)
    dim = wrap_dim(dim, data.ndim)
    refuse(data, "bool int float", f"{name}_cpu")
    if data.ndim == 0:
        return data.copy(), np.zeros((), INT64)
    kernels = _kernels(data.size)
    if kernels is not None and kernels.fits(data, data.dtype):
        return kernels.extremes(data, dim, ufunc is np.minimum)  # type: ignore[no-any-return]
    working = working_array(data)
    values = ufunc.accumulate(working, dim)
    here = (working == values) | (working != working)  # noqa: PLR0124  NaN
    shape = [1] * data.ndim
    shape[dim] = -1
    positions = np.where(here, np.arange(data.shape[dim]).reshape(shape), 0)
    return finished(values, data.dtype), finished(np.maximum.accumulate(positions, dim), INT64)


def _running_backward(grad: Any, self: Any, indices: Any, dim: int) -> Any:
    """The gradient at each index; torch keeps `self` as well, whose shape it takes."""
    shape = self._data.shape
    if not shape:
        return ops.clone(grad)
    return ops.scatter_add(ops.new_zeros(grad, shape), dim, indices, grad)


@kernel(
    "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    out_type=SCALAR,
    out=True,
    nondifferentiable=("indices",),
    backward={"self": _running_backward},
)
def cummax(data: np.ndarray, dim: int) -> Any:
    """The largest of the first 1, 2, 3, ... elements along a dim, and its last index.

    >>> import flambeau as torch
    >>> torch.cummax(torch.tensor([1, 3, 2]), dim=0).values
    tensor([1, 3, 3])
    """
    return _running(np.maximum, data, dim, "cummax")


@kernel(
    "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    out_type=SCALAR,
    out=True,
    nondifferentiable=("indices",),
    backward={"self": _running_backward},
)
def cummin(data: np.ndarray, dim: int) -> Any:
    """The smallest of the first 1, 2, 3, ... elements along a dim, and its last index.

    >>> import flambeau as torch
    >>> torch.cummin(torch.tensor([3, 1, 2]), 0)
    torch.return_types.cummin(
    values=tensor([3, 1, 1]),
    indices=tensor([0, 1, 1]))
    """
    return _running(np.minimum, data, dim, "cummin")


# ---- logcumsumexp


def _complex_start(row: np.ndarray) -> np.ndarray:
    """What the sum of one summand is: exp of -inf has no phase."""
    start = np.where(np.isneginf(row.real), complex(-math.inf), row)
    return np.where(np.isnan(row), complex(math.nan, math.nan), start)


def _running_logaddexp(data: np.ndarray, dim: int) -> np.ndarray:
    if data.dtype.kind != "c":
        return np.logaddexp.accumulate(data, dim)
    result = np.array(data, order="C")
    rows = np.moveaxis(result, dim, 0)
    rows[0] = _complex_start(rows[0])
    for position in range(1, len(rows)):
        before = rows[position - 1]
        rows[position] = complex_logaddexp(before, rows[position], before)
    return result


def _reverse_logcumsumexp(tensor: Any, dim: int) -> Any:
    return ops.flip(ops.logcumsumexp(ops.flip(tensor, (dim,)), dim), (dim,))


def _apart_from_zero(grad: Any) -> Any:
    """Sizes of gradients. A slope that is masked out later must not be infinite at 0."""
    size = ops.abs(grad)
    return ops.masked_fill(size, grad == 0, 1) if modes.grad.enabled else size


def _logcumsumexp_backward(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """dx[k] = exp(x[k]) * sum over i >= k of grad[i] exp(-result[i]), in logarithms.

    Positive and negative gradients are summed apart, because logarithms know no sign.
    """
    if not self._data.size or not self._data.ndim:
        return grad
    if self._data.dtype.kind == "c":
        total = _reverse_logcumsumexp(ops.log(conj(grad)) - result, dim)
        return conj(ops.exp(total + self))
    lowest = float("-inf")
    logarithm = ops.log(_apart_from_zero(grad))
    if modes.grad.enabled:  # where nothing has been summed yet, inf - inf would have nan as slope
        result = ops.masked_fill(result, result == lowest, 0)
    positive = ops.masked_fill(logarithm, grad <= 0, lowest)
    negative = ops.masked_fill(logarithm, grad >= 0, lowest)
    above = ops.exp(_reverse_logcumsumexp(positive - result, dim) + self)
    below = ops.exp(_reverse_logcumsumexp(negative - result, dim) + self)
    found = above - below
    if modes.grad.enabled and grad.requires_grad:
        found = found + _of_zero_gradients(grad, self, result, dim)
    return ops.masked_fill(found, self == lowest, 0)  # not the inf - inf of a -inf row


def _of_zero_gradients(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """The same sum of those gradients that are 0, and have no logarithm: it is 0, its slope not."""
    zeros = ops.where(grad == 0, grad, ops.zeros_like(grad))
    top = ops.amax(result, dim, True).detach()
    scaled = zeros * ops.exp(ops.clamp(top - result, max=80.0))
    total = ops.flip(ops.cumsum(ops.flip(scaled, (dim,)), dim), (dim,))
    return total * ops.exp(self - top)


def _logcumsumexp_tangent(tangent: Any, self: Any, result: Any, dim: int) -> Any:
    """dy[k] = sum over i <= k of t[i] exp(x[i] - y[k]), in logarithms as above."""
    if not self._data.size or not self._data.ndim:
        return tangent
    if self._data.dtype.kind == "c":
        return ops.exp(ops.logcumsumexp(ops.log(tangent) + self, dim) - result)
    lowest = float("-inf")
    logarithm = ops.log(_apart_from_zero(tangent)) + self
    rising = ops.logcumsumexp(ops.masked_fill(logarithm, tangent <= 0, lowest), dim)
    falling = ops.logcumsumexp(ops.masked_fill(logarithm, tangent >= 0, lowest), dim)
    found = ops.exp(rising - result) - ops.exp(falling - result)
    return ops.masked_fill(found, result == lowest, 0)


@kernel(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    out_type=SCALAR,
    out=True,
    backward={"self": _logcumsumexp_backward},
    tangent=_logcumsumexp_tangent,
)
def logcumsumexp(data: np.ndarray, dim: int) -> np.ndarray:
    """log(cumsum(exp(input))) without overflow.

    Along `dim`; the shape stays.

    >>> import flambeau as torch
    >>> torch.logcumsumexp(torch.zeros(2), 0)
    tensor([0.0000, 0.6931])
    """
    dim = wrap_dim(dim, data.ndim)
    refuse(data, "float complex", "logcumsumexp_out_cpu")
    if data.ndim == 0 or not data.size:
        return data.copy()
    working = working_array(data)
    wide = working.astype(WIDER.get(working.dtype, working.dtype))
    return finished(_running_logaddexp(wide, dim), data.dtype)


# ---- differences


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out_writer="sub",
    autocast="outside",
)
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *,
         out: Any = None) -> Any:  # fmt: skip
    """Differences of neighbours along a dim, `n` times; for bools, where neighbours differ.

    >>> import flambeau as torch
    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if not input._data.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    dim = wrap_dim(dim, input._data.ndim)
    _check_joined(input, prepend, dim)
    _check_joined(input, append, dim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    parts = [part for part in (prepend, input, append) if part is not None]
    result = ops.cat(parts, dim) if len(parts) > 1 else input
    if n == 0:
        if out is not None and out.dtype is not input.dtype:
            raise RuntimeError(f"expected scalar_type {input.dtype.scalar_name} but found "
                               f"{out.dtype.scalar_name}")  # fmt: skip
        return write(diff, out, ops.clone(input))
    length = result._data.shape[dim]
    if n > length > 0:  # nothing is left after as many
        n = length
    for _ in range(n if length else 0):
        result = _differences(result, dim)
    return write(diff, out, result)


def _check_joined(input: Any, other: Any, dim: int) -> None:
    if other is None:
        return
    if other._data.ndim != input._data.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (have, given) in enumerate(zip(input._data.shape, other._data.shape, strict=True)):
        if i != dim and have != given:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension; input.size({i}) = {have}, but got "
                f"tensor.size({i}) = {given}"
            )


def _differences(tensor: Any, dim: int) -> Any:
    data = tensor._data
    length = data.shape[dim]
    if not length:
        return ops.clone(tensor)
    small = data.size < LIMIT and data.flags.c_contiguous and data.dtype.kind in "fi"
    if small and not (modes.watch.active or wants_grad((tensor,))):
        before = (slice(None),) * dim
        with cpu.quiet():
            return wrap(data[(*before, slice(1, None))] - data[(*before, slice(-1))])
    later, earlier = ops.slice(tensor, dim, 1, length), ops.slice(tensor, dim, 0, length - 1)
    if tensor._data.dtype.kind == "b":
        return ops.logical_xor(later, earlier)
    return later - earlier


# ---- integrals


def _widths(y: Any, x: Any, dim: int, name: str) -> Any:
    """Differences of sample positions, shaped to broadcast against pairs of samples."""
    if x._data.ndim == 1:
        if x._data.shape[0] != y._data.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        width = ops.diff(x)
        return width.reshape([-1] + [1] * (y._data.ndim - 1 - dim))
    if x._data.ndim < y._data.ndim:
        x = x.reshape([1] * (y._data.ndim - x._data.ndim) + list(x._data.shape))
    size = x._data.shape[dim]
    return x.narrow(dim, min(1, size), max(size - 1, 0)) - x.narrow(dim, 0, max(size - 1, 0))


def _check_integral(y: Any, x: Any, dx: Any, dim: int, name: str) -> int:
    """Torch's errors for samples, their positions `x` or distance `dx`; the dim, wrapped."""
    if not y._data.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, "
            f"dx={type(dx).__name__}), but expected one of:\n * (Tensor y, Tensor x, *, int dim = "
            "-1)\n * (Tensor y, *, Number dx = 1, int dim = -1)\n"
        )
    dim = wrap_dim(dim, y._data.ndim)
    if y._data.dtype.kind == "b" or (x is not None and x._data.dtype.kind == "b"):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    if not isinstance(dx, (int, float, type(None))):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return dim


def _pairs(y: Any, dim: int) -> Any:
    """The sums of neighbouring samples."""
    count = max(y._data.shape[dim] - 1, 0)
    return y.narrow(dim, 0, count) + y.narrow(dim, min(1, y._data.shape[dim]), count)


def _trapezoids(y: Any, x: Any, dim: int, name: str) -> Any:
    """Twice the areas under neighbouring samples, which stand at positions `x`."""
    widths = _widths(y, x, dim, name)
    return _pairs(y, dim) * widths


@composite("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", method=False, several=True)
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral of samples along a dim by the trapezoidal rule; samples lie `dx` apart (1 unless
    given) or at positions `x`.

    >>> import flambeau as torch
    >>> torch.trapezoid(torch.tensor([1.0, 3.0, 5.0]))
    tensor(6.)
    """
    if y._data.ndim and not y._data.shape[wrap_dim(dim, y._data.ndim)]:
        return y.new_zeros([n for d, n in enumerate(y._data.shape) if d != dim % y._data.ndim])
    dim = _check_integral(y, x, dx, dim, "trapezoid")
    if x is not None:
        twice = _trapezoids(y, x, dim, "trapezoid").sum(dim)
        return ops._over_number(twice, 2.0)
    ends = y.select(dim, 0) + y.select(dim, -1)
    return ops._times_number(y.sum(dim) - ops._times_number(ends, 0.5), 1 if dx is None else dx)


@composite("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", method=False, several=True)
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The older name of `trapezoid`.

    The shape of `y` without `dim`.

    >>> import flambeau as torch
    >>> torch.trapz(torch.tensor([1., 2., 3.]))
    tensor(4.)
    """
    return ops.trapezoid(y, x, dx=dx, dim=dim)


@composite(
    "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    method=False,
    several=True,
)
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Running integrals by the trapezoidal rule.

    The shape of `y`, one less along `dim`.

    >>> import flambeau as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1., 2., 3.]))
    tensor([1.5000, 4.0000])
    """
    dim = _check_integral(y, x, dx, dim, "cumulative_trapezoid")
    if x is not None:
        twice = _trapezoids(y, x, dim, "cumulative_trapezoid")
        return ops._over_number(ops.cumsum(twice, dim), 2.0)
    half = (1.0 if dx is None else dx) / 2
    return ops.cumsum(ops._times_number(_pairs(y, dim), half), dim)


# ---- gradient


@composite(
    "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[1] dim, int edge_order=1)"
    " -> Tensor[]",
    method=False,
)
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along dims from central differences; at the ends, one-sided ones of an order.

    >>> import flambeau as torch
    >>> torch.gradient(torch.tensor([0., 1., 4., 9.]))
    (tensor([1., 2., 4., 5.]),)
    """
    ndim = input._data.ndim
    loose = isinstance(spacing, (int, float, complex, Tensor)) or spacing is None
    dims = _gradient_dims(ndim, dim)
    spacings = [spacing] * len(dims) if loose else list(spacing)
    _check_gradient(input, spacings, dims, dim, edge_order)
    results = []
    for d, step in zip(dims, spacings, strict=True):
        results.append(_derivative(input, wrap_dim(d, ndim), 1 if step is None else step,
                                   edge_order))  # fmt: skip
    return tuple(results)


def _gradient_dims(ndim: int, dim: Any) -> Sequence[int]:
    if dim is None:
        return range(ndim)
    return (int(dim),) if is_integer(dim) else tuple(dim)


def _check_gradient(input: Any, spacings: list[Any], dims: Any, dim: Any, edge_order: int) -> None:
    if input._data.dtype == np.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if len(spacings) != len(dims) and dim is None:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal"
            f" to 'self.dim() = {input._data.ndim}', since dim argument was not given, but got a "
            f"list of length {len(spacings)}"
        )
    if len(spacings) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            f"arguments to have the same length, but got a spacing argument of length "
            f"{len(spacings)} and a dim argument of length {len(dims)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    wrapped = [wrap_dim(d, input._data.ndim) for d in dims]
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        if input._data.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )


def _at(tensor: Any, dim: int, start: int, length: int) -> Any:
    return tensor.narrow(dim, start % tensor._data.shape[dim], length)


def _derivative(tensor: Any, dim: int, spacing: Any, edge_order: int) -> Any:
    """The derivative along one dim; `spacing` is a step or the positions of the samples."""
    length = tensor._data.shape[dim]
    if not isinstance(spacing, Tensor):
        inner = _at(tensor, dim, 2, length - 2) - _at(tensor, dim, 0, length - 2)
        inner = ops._over_number(inner, 2 * spacing)
        steps: Any = (spacing, spacing, spacing, spacing)
    else:
        width = ops.diff(spacing)
        shaped = width.reshape([-1] + [1] * (tensor._data.ndim - 1 - dim))
        inner = _uneven(tensor, shaped, dim, length)
        count = len(width)
        steps = (width[0], width[1 % count], width[-1], width[-2 % count])
    first = _edge(tensor, dim, edge_order, steps[0], steps[1], start=True)
    last = _edge(tensor, dim, edge_order, steps[2], steps[3], start=False)
    return ops.cat([first, inner, last], dim)


def _uneven(tensor: Any, width: Any, dim: int, length: int) -> Any:
    """Second-order differences at unevenly spaced samples (from Taylor's formula)."""
    count = len(width) - 1
    before, after = width.narrow(0, 0, count), width.narrow(0, 1, count)
    both = before + after
    return (-after / (before * both) * _at(tensor, dim, 0, length - 2)
            + (after - before) / (before * after) * _at(tensor, dim, 1, length - 2)
            + before / (after * both) * _at(tensor, dim, 2, length - 2))  # fmt: skip


def _edge_of_numbers(outer: Any, second: Any, third: Any, sign: int, step: Any) -> Any:
    """`sign * (-1.5 outer + 2 second - 0.5 third) / step`."""
    outer = ops._times_number(outer, -1.5 * sign)
    second = ops._times_number(second, 2.0 * sign)
    rise = outer + second - ops._times_number(third, 0.5 * sign)
    return ops._over_number(rise, step)


def _edge(tensor: Any, dim: int, edge_order: int, near: Any, far: Any, *, start: bool) -> Any:
    """The one-sided derivative at an end; `near` and `far` are the two steps next to it."""
    sign = 1 if start else -1
    at = (0, 1, 2) if start else (-1, -2, -3)
    outer, second = _at(tensor, dim, at[0], 1), _at(tensor, dim, at[1], 1)
    if edge_order == 1:
        rise = second - outer if start else outer - second
        return rise / near if isinstance(near, Tensor) else ops._over_number(rise, near)
    third = _at(tensor, dim, at[2], 1)
    both = near + far
    if not isinstance(near, Tensor):
        return _edge_of_numbers(outer, second, third, sign, near)
    return sign * (outer * (-(2 * near + far) / (near * both)) + second * (both / (near * far))
                   - third * (near / (far * both)))  # fmt: skip
