"""Compiled reductions and row formulas against NumPy in float64."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.activations import softmax as softmax_rows
from flambeau._ops.reductions import launch as reduce
from flambeau._ops.rows import launch as rows
from flambeau._ops.rows import losses
from flambeau._ops.rows import whole_arrays as row_ops

SHAPES = [
    ((1,), (0,)), ((5,), (0,)), ((100,), (0,)), ((70001,), (0,)), ((3, 5), (1,)), ((3, 5), (0,)),
    ((37, 129), (1,)), ((37, 129), (0,)), ((2, 100000), (1,)), ((40000, 3), (0,)),
    ((4, 33, 17), (1,)), ((4, 33, 17), (0, 2)), ((4, 33, 17), (0, 1)), ((64, 3, 50), (1, 2)),
]  # fmt: skip
DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int8", "int32", "int64", "uint8",
          "bool"]  # fmt: skip
TOLERANCE = {2: 1e-5, 4: 2e-6, 8: 1e-13}


def drawn(shape: Any, dtype: Any, layout: str = "row-major") -> Any:
    """Random numbers; "column-major" has the same values in another order of memory."""
    rng = np.random.default_rng(zlib.crc32(repr(shape).encode()))
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        data = rng.integers(0, 50, shape).astype(dtype)
    elif dtype.kind == "b":
        data = rng.random(shape) > 0.1
    else:
        data = (rng.standard_normal(shape) * 3).astype(dtype)
    if layout == "column-major":
        data = np.asfortranarray(data)
    if layout == "every second":
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
        wide[..., ::2] = data
        data = wide[..., ::2]
    return data


def close(found: Any, wanted: Any, tolerance: float) -> None:
    """Shapes are equal; values are, relative to the largest."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=tolerance,
                               atol=tolerance * scale)  # fmt: skip


EXACT: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (reduce.total, lambda x, axes, keep: x.sum(axes, keepdims=keep)),
    "count": (reduce.nonzero_count, lambda x, axes, keep: (x != 0).sum(axes, keepdims=keep)),
    "max": (lambda *a: reduce.extreme(*a, True), lambda x, axes, keep: x.max(axes, keepdims=keep)),
    "min": (lambda *a: reduce.extreme(*a, False), lambda x, axes, keep: x.min(axes, keepdims=keep)),
    "all": (lambda *a: reduce.truth(*a, True), lambda x, axes, keep: x.all(axes, keepdims=keep)),
    "any": (lambda *a: reduce.truth(*a, False), lambda x, axes, keep: x.any(axes, keepdims=keep)),
}


@pytest.mark.parametrize("layout", ["row-major", "column-major", "every second"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions(dtype: Any, layout: str) -> None:
    for shape, axes in SHAPES:
        data = drawn(shape, dtype, layout)
        wide = data.astype(np.float64)
        for name, (function, oracle) in EXACT.items():
            for keepdim in (False, True):
                found = function(data, axes, keepdim)
                if found is None:  # the driver leaves this memory to NumPy
                    assert layout != "row-major" or shape == (4, 33, 17), (name, shape)
                    continue
                close(found, oracle(wide, axes, keepdim), TOLERANCE[max(data.itemsize, 2)])


@pytest.mark.parametrize("layout", ["row-major", "column-major", "every second"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_places(dtype: Any, layout: str) -> None:
    for shape, axes in SHAPES:
        if len(axes) > 1:
            continue
        data = drawn(shape, dtype, layout)
        for largest, oracle in ((True, np.argmax), (False, np.argmin)):
            _, place = reduce.place(data, None, False, largest)
            assert place == oracle(data)
            found = reduce.place(data, axes[0], False, largest)
            if found is None:  # the driver leaves this memory to NumPy
                assert layout != "row-major"
                continue
            values, places = found
            np.testing.assert_array_equal(places, oracle(data, axes[0]))
            picked = np.take_along_axis(data, np.expand_dims(places, axes[0]), axes[0])
            np.testing.assert_array_equal(values, picked.squeeze(axes[0]).astype(values.dtype))


@pytest.mark.parametrize("shape, axis", [((3, 300), 1), ((300, 3), 0), ((90000,), 0)])
def test_nan_counts_as_largest_and_smallest(shape: Any, axis: int) -> None:
    data = drawn(shape, "float32")
    where = (1, 7) if shape[0] == 3 else (7, 1) if len(shape) == 2 else (70000,)
    later = tuple(np.add(where, np.where(np.arange(len(shape)) == axis, 90, 0)))
    data[where] = data[later] = np.nan
    for largest in (True, False):
        values, places = reduce.place(data, axis, False, largest)
        oracle = np.argmax if largest else np.argmin
        np.testing.assert_array_equal(places, oracle(data, axis))
        wanted = (np.max if largest else np.min)(data, axis)
        np.testing.assert_array_equal(values, wanted)
        np.testing.assert_array_equal(reduce.extreme(data, (axis,), False, largest), wanted)
    assert np.isnan(reduce.extreme(data, tuple(range(data.ndim)), False, True))


def test_long_sums_stay_exact() -> None:
    ones = np.ones(1 << 25, np.float32)
    assert reduce.total(ones, (0,), False) == 1 << 25
    column = np.ones((1 << 22, 3), np.float32)
    np.testing.assert_array_equal(reduce.total(column, (0,), False), [1 << 22] * 3)


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    import flambeau

    data = drawn((513, 4099), "float32")
    before = flambeau.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            flambeau.set_num_threads(threads)
            parts = row_ops.layer_norm_backward(data, data, 4099, None, data[:, 0], data[:, 1])
            found.append((reduce.total(data, (0, 1), False), reduce.total(data, (0,), False),
                          *parts))  # fmt: skip
    finally:
        flambeau.set_num_threads(before)
    for other in found[1:]:
        for left, right in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("layout", ["row-major", "column-major", "every second"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ml_dtypes.bfloat16], ids=str)
def test_moments_and_norms(dtype: Any, layout: str) -> None:
    for shape, axes in SHAPES:
        data = drawn(shape, dtype, layout)
        wide = data.astype(np.float64)
        found = reduce.moments(data, axes, True, 0)
        if found is None:
            assert layout != "row-major" or len(axes) < len(shape) - 1 or shape == (4, 33, 17)
            continue
        close(found[0], wide.mean(axes, keepdims=True), 1e-5)
        close(found[1], wide.var(axes, keepdims=True), 1e-5)
        for order in (1.0, 2.0, np.inf):
            sizes = np.abs(wide)
            wanted = sizes.max(axes) if order == np.inf else (sizes**order).sum(axes) ** (1 / order)
            norm = reduce.norm(data, axes, False, order)
            if norm is not None:
                close(norm, wanted, 1e-5)
        peak = reduce.of_rows(softmax_rows.logsumexp.formula, data, axes, False)
        if peak is not None:
            close(peak, np.log(np.exp(wide).sum(axes)), 1e-5)


def along_dim(op: Any, arrays: Any, dim: int, dtype: Any) -> np.ndarray:
    """A row of the kind `rows` by its kernel."""
    return row_ops.along_dim(op.formula, arrays, dim, np.dtype(dtype))


def softmax64(x: Any, dim: int) -> Any:
    weights = np.exp(x - x.max(dim, keepdims=True))
    return weights / weights.sum(dim, keepdims=True)


FULL = [((1,), 0), ((7,), 0), ((3, 1), 1), ((5, 65), 1), ((65, 5), 0), ((2, 33, 19), 1),
        ((600, 40), 0), ((2, 5000), 1)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("shape, dim", FULL)
def test_softmax(shape: Any, dim: int, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    data, grad = drawn(shape, dtype), drawn((*shape, 2), dtype)[..., 0]
    tolerance = {2: 1e-2, 4: 1e-6, 8: 1e-14}[dtype.itemsize]
    wide = data.astype(np.float64)
    result = along_dim(softmax_rows.softmax, (data,), dim, dtype)
    close(result, softmax64(wide, dim), tolerance)
    logs = along_dim(softmax_rows.log_softmax, (data,), dim, dtype)
    close(logs, np.log(softmax64(wide, dim)), tolerance)
    p, q, g = (a.astype(np.float64) for a in (result, logs, grad))
    wanted = p * (g - (p * g).sum(dim, keepdims=True))
    close(
        along_dim(softmax_rows.softmax_backward_data, (grad, result), dim, dtype), wanted, tolerance
    )
    wanted = g - np.exp(q) * g.sum(dim, keepdims=True)
    close(
        along_dim(softmax_rows.log_softmax_backward_data, (grad, logs), dim, dtype),
        wanted,
        tolerance,
    )


def test_softmax_of_infinities() -> None:
    inf = np.inf
    data = np.array([[-inf, -inf], [-inf, 0], [inf, 0], [np.nan, 0]], np.float32)
    found = along_dim(softmax_rows.softmax, (data,), 1, data.dtype)
    np.testing.assert_array_equal(np.isnan(found[0]), [True, True])
    np.testing.assert_array_equal(found[1], [0, 1])
    assert np.isnan(found[2][0]) and np.isnan(found[3]).all()
    sums = reduce.of_rows(softmax_rows.logsumexp.formula, data, (1,), False)
    np.testing.assert_array_equal(sums, [-inf, 0, inf, np.nan])


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (50, 64), (400, 129), (2, 9000)])
def test_layer_and_rms_norm(shape: Any, affine: bool) -> None:
    n = shape[1]
    x, g = drawn(shape, "float32"), drawn((2, *shape), "float32")[1]
    weight, bias = (drawn((k, n), "float32")[0] if affine else None for k in (2, 3))
    out, mean, rstd = row_ops.layer_norm(x, (len(x),), weight, bias, 1e-5, x.dtype)
    wide, slope = x.astype(np.float64), g.astype(np.float64)
    centered = wide - wide.mean(1, keepdims=True)
    spread = 1 / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
    normal, scaled = centered * spread, slope
    if weight is not None and bias is not None:
        scaled = slope * weight
        close(out, normal * weight + bias, 1e-5)
    else:
        close(out, normal, 1e-5)
    close(mean, wide.mean(1), 1e-5)
    close(rstd, spread[:, 0], 1e-5)
    along = (scaled * normal).mean(1, keepdims=True)
    wanted = spread * (scaled - scaled.mean(1, keepdims=True) - normal * along)
    found = row_ops.layer_norm_backward(x, g, n, weight, mean, rstd)
    close(found[0], wanted, 1e-4)
    close(found[1], (slope * normal).sum(0), 1e-4)
    close(found[2], slope.sum(0), 1e-4)

    out, rstd = row_ops.rms_norm(x, n, weight, 1e-5, x.dtype)
    spread = 1 / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    normal = wide * spread
    close(out, normal if weight is None else normal * weight, 1e-5)
    found = row_ops.rms_norm_backward(x, g, n, weight, rstd)
    close(found[0], spread * (scaled - normal * (scaled * normal).mean(1, keepdims=True)), 1e-4)
    close(found[1], (slope * normal).sum(0), 1e-4)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(4, 1), (30, 5), (2, 3, 7), (5, 6, 3, 3), (3, 20, 9, 9)])
def test_batch_norm(shape: Any, last: bool) -> None:
    x, g = drawn(shape, "float32"), drawn((2, *shape), "float32")[1]
    if last and x.ndim > 2:
        x, g = (np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1) for a in (x, g))
    axes = (0, *range(2, x.ndim))
    spot = [1, -1] + [1] * (x.ndim - 2)
    weight, bias = drawn((2, shape[1]), "float32")
    out, mean, rstd, variance = row_ops.batch_norm(x, weight, bias, 1e-5)
    wide, slope = x.astype(np.float64), g.astype(np.float64)
    spread = 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    normal = (wide - wide.mean(axes, keepdims=True)) * spread
    assert out.strides == x.strides
    close(out, normal * weight.reshape(spot) + bias.reshape(spot), 1e-5)
    close(mean, wide.mean(axes), 1e-5)
    close(variance, wide.var(axes), 1e-5)
    close(rstd, spread.reshape(-1), 1e-5)
    centered = slope - slope.mean(axes, keepdims=True)
    along = (slope * normal).mean(axes, keepdims=True)
    scale = weight.reshape(spot) * spread
    found = row_ops.batch_norm_backward(x, g, weight, mean, rstd, True)
    close(found[0], scale * (centered - normal * along), 1e-4)
    close(found[1], (slope * normal).sum(axes), 1e-4)
    close(found[2], slope.sum(axes), 1e-4)
    fixed = row_ops.batch_norm_backward(x, g, weight, mean, rstd, False)
    close(fixed[0], scale * slope, 1e-4)
    known = row_ops.fixed_norm(x, weight, bias, mean, variance, 1e-5)
    close(known, out, 1e-5)


@pytest.mark.parametrize("shape, group", [((1, 2, 3), 1), ((3, 6, 17), 2), ((2, 8, 100), 8)])
def test_group_norm(shape: Any, group: int) -> None:
    batch, channels, spatial = shape
    x, g = drawn(shape, "float32"), drawn((2, *shape), "float32")[1]
    weight, bias = drawn((2, channels), "float32")
    out, mean, rstd = row_ops.group_norm(x, shape, group, weight, bias, 1e-5, x.dtype)
    wide = x.astype(np.float64).reshape(batch * group, -1)
    spread = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    normal = (wide - wide.mean(1, keepdims=True)) * spread
    planes = normal.reshape(shape)
    close(out, planes * weight[:, None] + bias[:, None], 1e-5)
    scaled = (g.astype(np.float64) * weight[:, None]).reshape(wide.shape)
    along = (scaled * normal).mean(1, keepdims=True)
    wanted = spread * (scaled - scaled.mean(1, keepdims=True) - normal * along)
    found = row_ops.group_norm_backward(x, g, shape, group, weight, mean, rstd)
    close(found, wanted.reshape(shape), 1e-4)
    of_weight, of_bias = row_ops.group_sums(x, g, shape, group, mean, rstd)
    close(of_weight, (g * planes).sum((0, 2)), 1e-4)
    close(of_bias, g.astype(np.float64).sum((0, 2)), 1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (70, 65), (3, 2000), (2, 5, 9), (2, 40, 130)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_cross_entropy(shape: Any, dtype: str) -> None:
    scores = drawn(shape, dtype)
    rng = np.random.default_rng(1)
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    losses, row_data = row_ops.cross_entropy(scores, target)
    logs = np.log(softmax64(scores.astype(np.float64), 1))
    close(losses, -np.take_along_axis(logs, target[:, None], 1)[:, 0], 1e-5)
    factor = rng.standard_normal(target.shape).astype(row_data.dtype)
    found = row_ops.cross_entropy_backward(scores, target, row_data, factor, scores.dtype)
    one_hot = np.arange(shape[1]).reshape(1, -1, *[1] * (len(shape) - 2)) == target[:, None]
    close(found, (np.exp(logs) - one_hot) * factor[:, None], 2e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("n", [1, 9, 1000, 70001])
def test_losses(n: int) -> None:
    x, t = drawn((2, n), "float32")
    wide, goal = x.astype(np.float64), t.astype(np.float64)
    gap = wide - goal
    close(row_ops.loss_total(losses.SQUARED, (x, t)), (gap * gap).sum(), 1e-6)
    close(row_ops.loss_slope(losses.SQUARED, (x, t), 0.3), gap * 0.6, 1e-6)
    size = np.abs(gap)
    close(row_ops.loss_total(losses.HUBER, (x, t), 0.7),
          np.where(size <= 0.7, 0.5 * size**2, 0.7 * (size - 0.35)).sum(), 1e-6)  # fmt: skip
    close(row_ops.loss_slope(losses.HUBER, (x, t), 0.7, 2.0), np.clip(gap, -0.7, 0.7) * 2, 1e-6)
    close(row_ops.loss_total(losses.SMOOTH, (x, t), 0.7),
          np.where(size < 0.7, 0.5 * size**2 / 0.7, size - 0.35).sum(), 1e-6)  # fmt: skip
    close(row_ops.loss_slope(losses.SMOOTH, (x, t), 0.7, 2.0), np.clip(gap / 0.7, -1, 1) * 2, 1e-6)
    close(
        row_ops.loss_total(losses.LOGIT, (x, t)),
        ((1 - goal) * wide + np.log1p(np.exp(-wide))).sum(),
        1e-6,
    )
    close(
        row_ops.loss_slope(losses.LOGIT, (x, t), 0.5), (1 / (1 + np.exp(-wide)) - goal) * 0.5, 1e-6
    )
    p, q = (1 / (1 + np.exp(-a)) for a in (x, t))
    wide, goal = p.astype(np.float64), q.astype(np.float64)
    close(row_ops.binary_cross_entropy(p, q),
          -(goal * np.log(wide) + (1 - goal) * np.log1p(-wide)).sum(), 1e-5)  # fmt: skip
    close(row_ops.loss_slope(losses.PROBABILITY, (p, q), 0.5),
          (wide - goal) / (wide * (1 - wide)) * 0.5, 1e-5)  # fmt: skip
    assert row_ops.binary_cross_entropy(p + 1, q) is None


def test_a_formula_is_compiled_once_for_its_types() -> None:
    data = drawn((3, 5), "float32")
    along_dim(softmax_rows.softmax, (data,), 1, data.dtype)
    known = len(rows.READY)
    along_dim(softmax_rows.softmax, (drawn((9, 70), "float32"),), 1, data.dtype)
    assert len(rows.READY) == known


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_extremes_find_nan_at_every_place(dtype: str) -> None:
    for n in (1, 7, 8, 31, 32, 33, 70):
        data = drawn((n, n), dtype)
        np.fill_diagonal(data, np.nan)
        for largest in (True, False):
            assert np.isnan(reduce.extreme(data, (1,), False, largest)).all()
            _, places = reduce.place(data, 1, False, largest)
            assert places.tolist() == list(range(n))
        weights = along_dim(softmax_rows.softmax, (data,), 1, data.dtype)
        assert np.isnan(weights).all()


def test_nansum() -> None:
    for shape, axes in SHAPES:
        data = drawn(shape, "float32")
        data[data > 2] = np.nan
        found = reduce.nansum(data, axes, False)
        if found is not None:
            close(found, np.nansum(data.astype(np.float64), axes), 2e-6)


def test_variance_of_huge_values() -> None:
    data = np.array([[3e38, 3e38, 3e38], [1e38, -1e38, 0]], np.float32)
    mean, variance = reduce.moments(data, (1,), False, 1)
    close(mean, data.astype(np.float64).mean(1), 1e-7)
    close(np.sqrt(variance), data.astype(np.float64).std(1, ddof=1), 1e-7)
