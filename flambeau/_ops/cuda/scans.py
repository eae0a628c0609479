"""Running sums and products on GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY, f32, f64, i64
from flambeau._core.layout import around
from flambeau._ops.cuda import fills, rows
from flambeau._ops.cuda.kernels import scans as kernels
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.table import checked, on_gpu
from flambeau._ops.reductions.sums import accumulation_type
from flambeau._ops.rows import formulas as shared
from flambeau._ops.table.dims import wrap_dim
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray

THREADS = 256
EACH = 4
"""Elements of a thread at a time."""


@on_gpu("cumsum")
@repeated
@checked
def cumsum(data: DeviceArray, dim: int, dtype: Any = None) -> Any:
    """Running sums along a dim."""
    return _scan(data, dim, dtype, False)


@on_gpu("cumprod")
@repeated
@checked
def cumprod(data: DeviceArray, dim: int, dtype: Any = None) -> Any:
    """Running products along a dim."""
    return _scan(data, dim, dtype, True)


def _scan(data: DeviceArray, dim: int, dtype: Any, product: bool) -> Any:
    result, _ = accumulation_type(data, dtype)
    kinds = data.dtype.kind in "fV", result.kind in "fV"
    if data.dtype.kind == "c" or kinds[0] != kinds[1] or NAMES[data.dtype] not in OF_NUMPY:
        return NotImplemented
    if not data.ndim or not data.size:
        return NotImplemented
    dim = wrap_dim(dim, data.ndim)
    data = fills.plain(data)
    out = fills.new(data.shape, None, result, data)
    outer, n, inner = around(data.shape, dim)
    compute = rows.compute_type(result if result.itemsize > data.itemsize else data.dtype)
    statics = {"T": OF_NUMPY[NAMES[data.dtype]], "OUT": OF_NUMPY[result.name], "A": compute,
               "PRODUCT": product, "THREADS": THREADS}  # fmt: skip
    if inner > 1:
        form = Shape(threads=THREADS, aligned=False, reads=("x",))
        made = kernel(kernels.scan_across, form, **statics)
        made(-(-outer * inner // THREADS), data, out, outer * inner, n, inner)
        return out
    _along(data, out, outer, n, compute, statics)
    return out


WORKING = {f32: np.float32, f64: np.float64, i64: np.int64}


def _along(data: Any, out: Any, outer: int, n: int, compute: Any, statics: dict[str, Any]) -> None:
    """Rows one by one; long ones in parts, whose sums are scanned first."""
    view = rows.matrix(outer, n)
    parts = rows.parts_for(view)
    form = Shape(threads=THREADS, aligned=False, reads=("x", "before"))
    made = kernel(kernels.scan_along, form, U=EACH, PARTS=parts > 1, **statics)
    share = rows.share_of(n, parts)
    before = out  # not looked at
    if parts > 1:
        before = _before(data, view, parts, compute, statics["PRODUCT"])
    made(outer * parts, data, out, before, n, parts, share)


def _before(data: Any, view: rows.Rows, parts: int, compute: Any, product: bool) -> Any:
    """[rows, parts]: what comes before each part of a row."""
    kept = np.dtype(WORKING[compute])
    sums = fills.new((view.count, parts), None, kept, data)
    formula = shared.product_of if product else shared.sum_of
    rows.run(formula, compute, (data,), (sums,), view, parts=parts)
    shifted = fills.new((view.count, parts), None, kept, data)
    fills.fill(shifted, 1 if product else 0)
    fills.copy(shifted[:, 1:], sums[:, :-1])
    result = fills.new((view.count, parts), None, kept, data)
    statics = {"T": compute, "OUT": compute, "A": compute, "PRODUCT": product, "THREADS": THREADS}
    form = Shape(threads=THREADS, aligned=False, reads=("x", "before"))
    made = kernel(kernels.scan_along, form, U=EACH, PARTS=False, **statics)
    made(view.count, shifted, result, shifted, parts, 1, parts)
    return result
