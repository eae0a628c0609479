"""Compiled softmax, normalisation and losses: row formulas over whole arrays.

Arrays come as operators get them; results are new and row-major. Every function here computes the
same as the NumPy code of its row.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from flambeau._compiler.fuse import Formula
from flambeau._core.layout import around
from flambeau._ops.reductions import launch as reduce
from flambeau._ops.reductions.launch import launch
from flambeau._ops.rows import formulas, losses
from flambeau._ops.rows import launch as rows
from flambeau._ops.rows.losses import Loss
from flambeau._runtime.warming import cached

contiguous = np.ascontiguousarray
SUMS = 32
"""Parts of a sum over rows at most: their number depends on the sizes alone."""


def computing(dtype: np.dtype[Any]) -> Any:
    """The NumPy type that values of a type are computed in."""
    return np.float64 if dtype.itemsize == 8 else np.float32


# ---- along a dim


def along_dim(formula: Formula, arrays: tuple[np.ndarray, ...], dim: int,
              result: np.dtype[Any]) -> np.ndarray:  # fmt: skip
    """A formula with a result for every element, along a dim of arrays of one shape."""
    shape = arrays[0].shape
    arrays = tuple([a if a.flags.c_contiguous else contiguous(a) for a in arrays])
    out = np.empty(shape, result)
    form, steps, sizes = _rows_of(shape, dim)
    launch(form, formula, rows.compute_type(result), arrays, (out,), steps, sizes)
    return out


@lru_cache(512)
def _rows_of(shape: tuple[int, ...], dim: int) -> Any:
    """(form, strides, sizes) of row-major memory as rows along a dim."""
    outer, n, inner = around(shape, dim)
    if inner == 1:
        return "along", (n, 0), (outer, 1, n)
    return "across", (n * inner, inner), (outer, n, inner)


# ---- layer norm and RMS norm


def _flat(array: np.ndarray | None) -> np.ndarray | None:
    """Row-major memory, whose shape kernels do not ask for."""
    if array is None or array.flags.c_contiguous:
        return array
    return contiguous(array)


def layer_norm(data: np.ndarray, shape: tuple[int, ...], weight: Any, bias: Any, eps: float,
               kept: np.dtype[Any]) -> Any:  # fmt: skip
    """(result, mean, rstd) over rows, of which there are as many as statistics of `shape`."""
    data = contiguous(data)
    out = np.empty(data.shape, data.dtype)
    mean, rstd = np.empty(shape, kept), np.empty(shape, kept)
    count = mean.size
    n = data.size // count
    inputs = (data, _flat(weight), _flat(bias), eps)
    launch("along", formulas.layer_norm, rows.compute_type(data.dtype), inputs,
           (out, mean, rstd), (n, 0), (count, 1, n))  # fmt: skip
    return out, mean, rstd


def layer_norm_backward(data: np.ndarray, grad: np.ndarray, n: int, weight: Any, mean: np.ndarray,
                        rstd: np.ndarray) -> Any:  # fmt: skip
    """(gradient of the input, of the weight, of the bias); the last two are flat, float64."""
    inputs = (_flat(weight), _flat(mean), _flat(rstd))
    return _with_sums(formulas.layer_norm_backward, data, grad, n, inputs, 2)


def rms_norm(data: np.ndarray, n: int, weight: Any, eps: float, dtype: np.dtype[Any]) -> Any:
    """(result, rstd) over rows of n elements."""
    data = contiguous(data)
    out = np.empty(data.shape, dtype)
    count = data.size // n
    rstd = np.empty(count, computing(data.dtype))
    launch("along", formulas.rms_norm, rows.compute_type(data.dtype), (data, _flat(weight), eps),
           (out, rstd), (n, 0), (count, 1, n))  # fmt: skip
    return out, rstd


def rms_norm_backward(data: np.ndarray, grad: np.ndarray, n: int, weight: Any,
                      rstd: np.ndarray) -> Any:  # fmt: skip
    """(gradient of the input, of the weight: flat, float64)."""
    inputs = (_flat(weight), _flat(rstd))
    return _with_sums(formulas.rms_norm_backward, data, grad, n, inputs, 1)


def _with_sums(formula: Formula, data: np.ndarray, grad: np.ndarray, n: int, inputs: Any,
               sums: int) -> Any:  # fmt: skip
    """Run a formula whose last results are sums over rows: parts, then their sum."""
    data, grad = contiguous(data), contiguous(grad)
    count = data.size // n
    compute = rows.compute_type(data.dtype)
    tasks = max(min(SUMS, count // 8, data.size // rows.GRAIN), 1)
    out = np.empty(data.shape, data.dtype)
    parts = [np.empty(tasks * n, computing(data.dtype)) for _ in range(sums)]
    launch("along", formula, compute, (data, grad, *inputs), (out, *parts), (n, 0), (count, 1, n),
           tasks)  # fmt: skip
    return out, *[np.add.reduce(p.reshape(tasks, n), 0, np.float64) for p in parts]


# ---- group norm


def _grouped(shape: tuple[int, int, int], group: int) -> Any:
    """(strides, sizes with the period of channels) of [N, C, S] as rows of groups."""
    batch, channels, spatial = shape
    each = channels // group
    return (each * spatial, spatial), (group, batch * group, each, spatial)


def group_norm(data: np.ndarray, shape: tuple[int, int, int], group: int, weight: Any, bias: Any,
               eps: float, kept: np.dtype[Any]) -> Any:  # fmt: skip
    """(result, mean, rstd) of groups of channels of [N, C, S]; the statistics are [N, group]."""
    data = contiguous(data)
    out = np.empty(data.shape, data.dtype)
    mean, rstd = np.empty((shape[0], group), kept), np.empty((shape[0], group), kept)
    formula, inputs = formulas.group_norm, (data, _flat(weight), _flat(bias), eps)
    steps, sizes = _grouped(shape, group)
    sizes = sizes if weight is not None or bias is not None else sizes[1:]
    launch("along", formula, rows.compute_type(data.dtype), inputs, (out, mean, rstd), steps, sizes,
           rows.task_count(data.size, mean.size))  # fmt: skip
    return out, mean, rstd


def group_norm_backward(data: np.ndarray, grad: np.ndarray, shape: tuple[int, int, int],
                        group: int, weight: Any, mean: np.ndarray,
                        rstd: np.ndarray) -> np.ndarray:  # fmt: skip
    """The gradient of the input."""
    data, grad = contiguous(data), contiguous(grad)
    out = np.empty(data.shape, data.dtype)
    steps, sizes = _grouped(shape, group)
    sizes = sizes if weight is not None else sizes[1:]
    inputs = (data, grad, _flat(weight), _flat(mean), _flat(rstd))
    launch("along", formulas.group_norm_backward, rows.compute_type(data.dtype), inputs, (out,),
           steps, sizes, rows.task_count(data.size, shape[0] * group))  # fmt: skip
    return out


def group_sums(data: np.ndarray, grad: np.ndarray, shape: tuple[int, int, int], group: int,
               mean: np.ndarray, rstd: np.ndarray) -> Any:  # fmt: skip
    """[C], float64: gradients of weight and bias."""
    batch, channels, spatial = shape
    each = channels // group
    inputs = (contiguous(data), contiguous(grad), np.repeat(mean, each),
              np.repeat(rstd, each))  # fmt: skip
    count = batch * channels
    found = np.empty((2, count), np.float64)
    launch("along", formulas.normal_sums, rows.compute_type(data.dtype), inputs,
           (found[0], found[1]), (spatial, 0), (count, 1, spatial))  # fmt: skip
    return np.add.reduce(found.reshape(2, batch, channels), 1)


# ---- batch norm


def channel_form(data: np.ndarray) -> Any:
    """(form, strides, sizes) of [N, C, *] with channels as rows; None if it has to be copied."""
    if data.flags.c_contiguous:
        found = _channel_rows(data.shape)
        if found is not None:
            return found
    if np.moveaxis(data, 1, -1).flags.c_contiguous:
        shape = data.shape
        return "across", (0, shape[1]), (1, shape[0] * math.prod(shape[2:]), shape[1])
    return None


@lru_cache(512)
def _channel_rows(shape: tuple[int, ...]) -> Any:
    """The same of row-major memory."""
    batch, channels, spatial = shape[0], shape[1], math.prod(shape[2:])
    if spatial > 1:
        return "along", (spatial, channels * spatial), (channels, batch, spatial)
    return ("across", (0, channels), (1, batch, channels)) if len(shape) == 2 else None


def _like(data: np.ndarray) -> np.ndarray:
    """New memory in the array's own order of dims."""
    return np.empty_like(data)


def batch_norm(data: np.ndarray, weight: Any, bias: Any, eps: float) -> Any:
    """(result, mean, rstd, variance) with statistics of the batch; None if the memory fits not."""
    found = channel_form(data)
    if found is None:
        return None
    form, steps, sizes = found
    stats = [np.empty(data.shape[1], computing(data.dtype)) for _ in range(3)]
    out = _like(data)
    launch(form, formulas.batch_norm, rows.compute_type(data.dtype),
           (data, _flat(weight), _flat(bias), eps), (out, *stats), steps, sizes)  # fmt: skip
    return out, *stats


def fixed_norm(data: np.ndarray, weight: Any, bias: Any, mean: np.ndarray,
               variance: np.ndarray, eps: float) -> Any:  # fmt: skip
    """Each channel by statistics that are known; None if the memory fits not."""
    found = channel_form(data)
    if found is None:
        return None
    form, steps, sizes = found
    out = _like(data)
    inputs = (data, _flat(weight), _flat(bias), _flat(mean), _flat(variance), eps)
    launch(form, formulas.fixed_norm, rows.compute_type(data.dtype), inputs, (out,), steps, sizes)
    return out


def batch_norm_backward(data: np.ndarray, grad: np.ndarray, weight: Any, mean: np.ndarray,
                        rstd: np.ndarray, train: bool) -> Any:  # fmt: skip
    """Gradients of input, weight and bias."""
    found = channel_form(data)
    if found is None or found != channel_form(grad) or grad.dtype != data.dtype:
        return None
    form, steps, sizes = found
    formula = formulas.batch_norm_backward if train else formulas.fixed_norm_backward
    out = _like(data)
    sums = [np.empty(data.shape[1], computing(data.dtype)) for _ in range(2)]
    launch(form, formula, rows.compute_type(data.dtype),
           (data, grad, _flat(weight), _flat(mean), _flat(rstd)), (out, *sums), steps,
           sizes)  # fmt: skip
    return out, *sums


# ---- cross-entropy


def _scores_form(scores: np.ndarray) -> Any:
    """Scores [N, C] or [N, C, S] with a row for every position."""
    if scores.ndim == 2:
        batch, classes = scores.shape
        return "along", (classes, 0), (batch, 1, classes)
    batch, classes, spatial = scores.shape
    return "across", (classes * spatial, spatial), (batch, classes, spatial)


@cached
def cross_entropy(scores: np.ndarray, indices: np.ndarray) -> Any:
    """(losses of the positions, [2, positions]: their greatest score and sum of exponentials)."""
    scores = contiguous(scores)
    form, steps, sizes = _scores_form(scores)
    shape = indices.shape
    losses = np.empty(shape, computing(scores.dtype))
    row_data = np.empty((2, *shape), losses.dtype)
    launch(form, formulas.cross_entropy, rows.compute_type(scores.dtype),
           (scores, contiguous(indices)), (losses, row_data[0], row_data[1]), steps,
           sizes)  # fmt: skip
    return losses, row_data


def cross_entropy_backward(scores: np.ndarray, indices: np.ndarray, row_data: np.ndarray,
                           factor: Any, result: np.dtype[Any]) -> np.ndarray:  # fmt: skip
    """`(softmax - one_hot) * factor` in the shape of the scores."""
    scores = contiguous(scores)
    form, steps, sizes = _scores_form(scores)
    out = np.empty(scores.shape, result)
    factors = np.empty(indices.shape, row_data.dtype)
    factors[...] = factor
    peak, weights = contiguous(row_data)
    launch(form, formulas.cross_entropy_backward, rows.compute_type(scores.dtype),
           (scores, contiguous(indices), peak, weights, factors), (out,), steps, sizes)  # fmt: skip
    return out


# ---- elementwise losses


def loss_total(loss: Loss, arrays: tuple[np.ndarray, ...], *numbers: float) -> Any:
    """The sum of a loss over row-major arrays of one shape, float64."""
    flat = tuple([array.reshape(-1) for array in arrays])
    compute = rows.compute_type(arrays[0].dtype)
    return np.add.reduce(reduce.parts_of(loss.total, (*flat, *numbers), compute, (np.float64,))[0])


def loss_slope(loss: Loss, arrays: tuple[np.ndarray, ...],
               *numbers: float) -> np.ndarray:  # fmt: skip
    """The slope of a loss times the last number, over row-major arrays of one shape."""
    out = np.empty(arrays[0].shape, arrays[0].dtype)
    n = out.size
    whole, rest = divmod(n, reduce.PART)
    compute = rows.compute_type(out.dtype)
    flat, target = [array.reshape(-1) for array in arrays], out.reshape(1, n)
    if whole:
        launch("along", loss.gradient, compute, (*flat, *numbers), (target,), (reduce.PART, 0),
               (whole, 1, reduce.PART))  # fmt: skip
    if rest:
        tail = [array[n - rest :] for array in flat]
        launch("along", loss.gradient, compute, (*tail, *numbers), (target[:, n - rest :],),
               (rest, 0), (1, 1, rest))  # fmt: skip
    return out


def binary_cross_entropy(x: np.ndarray, target: np.ndarray) -> Any:
    """The sum of binary cross-entropies of probabilities; None if one is outside of [0, 1]."""
    compute, dtype = rows.compute_type(x.dtype), computing(x.dtype)
    inputs = (x.reshape(-1), target.reshape(-1))
    total, low, high = reduce.parts_of(losses.PROBABILITY_AND_RANGE, inputs, compute,
                                       (np.float64, dtype, dtype))  # fmt: skip
    inside = low.min() >= 0 and high.max() <= 1
    return np.add.reduce(total) if inside else None
