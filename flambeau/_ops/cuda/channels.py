"""Batch norm and group norm on GPUs: channels are rows of segments, split into parts where they are
few; what is applied to every element is one elementwise kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.expr import sqrt
from flambeau._compiler.fuse import Formula
from flambeau._compiler.types import NAMES
from flambeau._ops.cuda import fills, formulas, rows
from flambeau._ops.cuda.elementwise import apply
from flambeau._ops.cuda.losses import working
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.rows import Rows
from flambeau._ops.cuda.softmaxes import _flat, _floats
from flambeau._ops.cuda.table import checked, on_gpu
from flambeau._ops.rows import formulas as shared
from flambeau._tensor.device_array import DeviceArray


def channel_rows(data: Any) -> Rows | None:
    """The channels of [N, C, *] as rows; None where its memory has another order."""
    batch, channels = data.shape[:2]
    spatial = math.prod(data.shape[2:])
    if data.flags.c_contiguous:
        if spatial == 1:
            return Rows(1, channels, 0, 1, 1, batch, 0, channels)
        return Rows(channels, 1, spatial, 0, batch, spatial, channels * spatial, 1)
    if np.moveaxis(data, 1, -1).flags.c_contiguous:
        return Rows(1, channels, 0, 1, 1, batch * spatial, 0, channels)
    return None


def _in_rows(data: Any) -> tuple[Any, Rows]:
    found = channel_rows(data)
    if found is not None:
        return data, found
    data = fills.plain(data)
    found = channel_rows(data)
    assert found is not None
    return data, found


def sums(
    formula: Formula, arrays: tuple[Any, ...], view: Rows, count: int, dtype: Any
) -> list[Any]:
    """The results of a formula that adds up, a number for each row: in parts where rows are few."""
    like = arrays[0]
    compute = rows.compute_type(like.dtype)
    kept = working(like.dtype)
    parts = rows.parts_for(view, like.itemsize)
    if parts == 1:
        out = [fills.new((view.count,), None, dtype, like) for _ in range(count)]
        rows.run(formula, compute, arrays, tuple(out), view)
        return out
    pieces = fills.new((count, view.count * parts), None, kept, like)
    rows.run(formula, compute, arrays, tuple(pieces[k] for k in range(count)), view, parts=parts)
    whole = [fills.new((view.count,), None, dtype, like) for _ in range(count)]
    for piece, out in zip(pieces, whole, strict=True):  # each may become what a leaf keeps
        rows.run(shared.sum_of, compute, (piece,), (out,), rows.matrix(view.count, parts))
    return whole


# ---- elements


def normalised(x: Any, mean: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    """Normalised, scaled and shifted."""
    return (x - mean) * rstd * weight + bias


def fixed(x: Any, mean: Any, variance: Any, eps: Any, weight: Any, bias: Any) -> Any:
    """The same by statistics that are known."""
    return (x - mean) * (1 / sqrt(variance + eps)) * weight + bias


def root(variance: Any, count: Any, eps: Any) -> Any:
    """1 / standard deviation, from a sum of squares."""
    return 1 / sqrt(variance / count + eps)


def over(total: Any, count: Any) -> Any:
    """A sum over a number."""
    return total / count


def blended(running: Any, value: Any, factor: Any, momentum: Any) -> Any:
    """A running mean, moved towards a value times a factor."""
    return running * (1 - momentum) + value * factor * momentum


def slope(x: Any, grad: Any, mean: Any, rstd: Any, weight: Any, of_weight: Any, of_bias: Any,
          count: Any) -> Any:  # fmt: skip
    """The gradient of the input, where the statistics are the batch's."""
    normal = (x - mean) * rstd
    return rstd * weight * (grad - of_bias / count - normal * (of_weight / count))


def fixed_slope(grad: Any, rstd: Any, weight: Any) -> Any:
    """The same where they are given."""
    return grad * rstd * weight


def inverse(variance: Any, eps: Any) -> Any:
    """1 / standard deviation."""
    return 1 / sqrt(variance + eps)


def _spread(array: Any, ndim: int) -> Any:
    """[C] as it lies beside [N, C, *]; numbers as they are."""
    return array.reshape((-1,) + (1,) * (ndim - 2)) if isinstance(array, DeviceArray) else array


# ---- batch norm


def _plain(data: Any, *parameters: Any) -> bool:
    given = [p for p in parameters if p is not None]
    return (
        isinstance(data, DeviceArray) and data.ndim > 1 and data.size > 0 and _floats(data.dtype)
        and all(isinstance(p, DeviceArray) and _floats(p.dtype) for p in given)
        and all(p.shape == data.shape[1:2] for p in given)
    )  # fmt: skip


@on_gpu("native_batch_norm")
@repeated
@checked
def batch_norm(data: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool,
               momentum: float, eps: float) -> Any:  # fmt: skip
    """Normalised channels, mean, and 1 / standard deviation (both empty in evaluation)."""
    if not _plain(data, weight, bias, mean, variance):
        return NotImplemented
    if not training and (mean is None or variance is None):
        return NotImplemented
    kept = next((p.dtype for p in (weight, mean) if p is not None), data.dtype)
    data, view = _in_rows(data)
    out = fills.new_like(data)
    scale: Any = 1.0 if weight is None else _spread(weight, data.ndim)
    shift: Any = 0.0 if bias is None else _spread(bias, data.ndim)
    if not training:
        given = (_spread(mean, data.ndim), _spread(variance, data.ndim))
        apply(fixed, (data, *given, eps, scale, shift), out)
        return out, *(fills.new((0,), None, kept, data) for _ in range(2))
    wide = working(data.dtype)
    count = float(view.length)
    middle = apply(over, (sums(shared.sum_of, (data,), view, 1, wide)[0], count),
                   fills.new((view.count,), None, wide, data))  # fmt: skip
    squares = sums(formulas.squares_about, (data, middle), view, 1, wide)[0]
    rstd = apply(root, (squares, count, eps), fills.new_like(squares))
    if mean is not None:
        apply(blended, (mean, middle, 1.0, momentum), mean)
    if variance is not None:
        apply(blended, (variance, squares, 1 / max(count - 1, 1), momentum), variance)
    apply(
        normalised, (data, _spread(middle, data.ndim), _spread(rstd, data.ndim), scale, shift), out
    )
    return out, _as(middle, kept), _as(rstd, kept)


def _as(array: Any, dtype: Any) -> Any:
    if array.dtype == dtype:
        return array
    result = fills.new(array.shape, None, dtype, array)
    if not fills.copy(result, array):
        raise NotImplementedError(str(dtype))
    return result


@on_gpu("_batch_norm_backward")
@repeated
@checked
def batch_norm_backward(grad: Any, data: Any, weight: Any, mean: Any, spread: Any, train: bool,
                        eps: float, mask: Any) -> Any:  # fmt: skip
    """Gradients of input, weight and bias; `spread` is 1 / standard deviation in training, the
    running variance in evaluation."""
    if not _plain(data, weight, mean, spread) or not isinstance(grad, DeviceArray):
        return NotImplemented
    kept = data.dtype if weight is None else weight.dtype
    data, view = _in_rows(data)
    if grad.strides != data.strides or grad.dtype != data.dtype:
        grad = _laid_out_as(grad, data)
    wide = working(data.dtype)
    rstd = spread if train else apply(inverse, (spread, eps), fills.new(
        spread.shape, None, wide, data))  # fmt: skip
    scale: Any = 1.0 if weight is None else _spread(weight, data.ndim)
    of_weight, of_bias = sums(shared.normal_sums, (data, grad, mean, rstd), view, 2, wide)
    out = None
    if mask[0]:
        out = fills.new_like(data)
        ndim = data.ndim
        if train:
            apply(slope, (data, grad, _spread(mean, ndim), _spread(rstd, ndim), scale,
                          _spread(of_weight, ndim), _spread(of_bias, ndim),
                          float(view.length)), out)  # fmt: skip
        else:
            apply(fixed_slope, (grad, _spread(rstd, ndim), scale), out)
    return (out, _as(of_weight, kept) if mask[1] else None, _as(of_bias, kept) if mask[2] else None)


def _laid_out_as(array: Any, data: Any) -> Any:
    result = fills.new_like(data)
    if not fills.copy(result, array):
        raise NotImplementedError(NAMES[array.dtype])
    return result


# ---- group norm


@on_gpu("native_group_norm")
@repeated
@checked
def group_norm(data: Any, weight: Any, bias: Any, batch: int, channels: int, spatial: int,
               group: int, eps: float) -> Any:  # fmt: skip
    """Normalised input, mean [N, group] and 1 / standard deviation [N, group]."""
    if not _plain(data, weight, bias) or group < 1 or channels % group or not spatial:
        return NotImplemented
    if not data.flags.c_contiguous:
        return NotImplemented
    kept = data.dtype if weight is None else weight.dtype
    each = channels // group
    out = fills.new(data.shape, None, data.dtype, data)
    mean, rstd = (fills.new((batch, group), None, kept, data) for _ in range(2))
    view = Rows(batch * group, 1, each * spatial, 0, each, spatial, spatial, 1)
    segmented = weight is not None or bias is not None
    rows.run(shared.group_norm, rows.compute_type(data.dtype),
             (data, _flat(weight), _flat(bias), eps), (out, mean, rstd), view,
             group if segmented else 0)  # fmt: skip
    return out, mean, rstd


@on_gpu("native_group_norm_backward")
@repeated
@checked
def group_norm_backward(grad: Any, data: Any, mean: Any, rstd: Any, weight: Any, batch: int,
                        channels: int, spatial: int, group: int, mask: Any) -> Any:  # fmt: skip
    """Gradients of input, weight and bias."""
    if not _plain(data, weight) or not data.flags.c_contiguous or not isinstance(grad, DeviceArray):
        return NotImplemented
    kept = data.dtype if weight is None else weight.dtype
    if not grad.flags.c_contiguous or grad.dtype != data.dtype:
        grad = _laid_out_as(grad, data)
    each, wide = channels // group, working(data.dtype)
    compute = rows.compute_type(data.dtype)
    mean, rstd = _flat(mean), _flat(rstd)
    out = of_weight = of_bias = None
    if mask[0]:
        out = fills.new(data.shape, None, data.dtype, data)
        view = Rows(batch * group, 1, each * spatial, 0, each, spatial, spatial, 1)
        rows.run(shared.group_norm_backward, compute, (data, grad, _flat(weight), mean, rstd),
                 (out,), view, group if weight is not None else 0)  # fmt: skip
    if mask[1] or mask[2]:
        repeated = [_each_channel(stat, each) for stat in (mean, rstd)]
        found = sums(shared.normal_sums, (data, grad, *repeated),
                     rows.matrix(batch * channels, spatial), 2, wide)  # fmt: skip
        down = Rows(1, channels, 0, 1, 1, batch, 0, channels)
        of_weight, of_bias = (sums(shared.sum_of, (part,), down, 1, kept)[0] for part in found)
    return out, of_weight if mask[1] else None, of_bias if mask[2] else None


def _each_channel(stat: Any, each: int) -> Any:
    """A number of each group, for each of its channels."""
    out = fills.new((stat.size, each), None, stat.dtype, stat)
    spread: Any = np.broadcast_to(stat.reshape(-1, 1), out.shape, subok=True)
    if not fills.copy(out, spread):
        raise NotImplementedError(NAMES[stat.dtype])
    return out.reshape(-1)
