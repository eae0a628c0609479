"""Rows of the kind `rows` on GPUs (softmax and its relatives), gates, and normalisation of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler.expr import exp
from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY, f32
from flambeau._core.layout import around
from flambeau._ops.activations import softmax as _rows  # noqa: F401  (their formulas)
from flambeau._ops.cuda import fills, formulas, rows
from flambeau._ops.cuda.elementwise import apply
from flambeau._ops.cuda.kernels.long_norms import layer_norm_long
from flambeau._ops.cuda.kernels.online import softmax_online
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.table import checked, on_gpu
from flambeau._ops.rows import formulas as shared
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.op import REGISTRY
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray


def _along(shape: tuple[int, ...], dim: int) -> rows.Rows:
    return rows.columns(*around(shape, dim))


def _floats(*dtypes: Any) -> bool:
    return all(d.kind in "fV" and not NAMES[d].startswith("float8") for d in dtypes)


def _formula_along(name: str, arrays: tuple[Any, ...], dim: int, result: Any) -> Any:
    first = arrays[0]
    if not first.size or not first.ndim or not _floats(result, *[a.dtype for a in arrays]):
        return NotImplemented
    dim = wrap_dim(dim, first.ndim)
    given = tuple(fills.plain(a) for a in arrays)
    out = fills.new(first.shape, None, result, first)
    compute = rows.compute_type(result if result.itemsize > first.itemsize else first.dtype)
    view = _along(first.shape, dim)
    if name in ONLINE and compute is f32 and view.is_plain and not rows.in_registers(view, first):
        _in_two_passes(name, given[0], out, view)
    else:
        rows.run(REGISTRY[name].formula, compute, given, (out,), view)
    return out


ONLINE = ("softmax.int", "log_softmax.int")
ONLINE_THREADS = 1024
KEPT = {4: 32, 2: 24}
KEPT_NORM = {4: 24, 2: 16}
"""Elements that a thread keeps in its registers, by their bytes."""
AT_ONCE, AT_ONCE_NORM = {4: 4, 2: 2}, {4: 2, 2: 2}
"""Vectors of those behind them that it reads at a time."""


def _in_two_passes(name: str, data: Any, out: Any, view: rows.Rows) -> None:
    """Rows that are too long for registers."""
    vector = 16 // max(data.itemsize, out.itemsize)
    if any(address(a) % 16 for a in (data, out)) or data.itemsize != out.itemsize:
        vector = 1
    several = AT_ONCE[data.itemsize] if vector > 1 else 8
    form = Shape(threads=ONLINE_THREADS, aligned=vector > 1, reads=("x",))
    types = {"T": OF_NUMPY[NAMES[data.dtype]], "OUT": OF_NUMPY[NAMES[out.dtype]]}
    made = kernel(
        softmax_online, form, **types, V=vector, U=several, LOG=name == ONLINE[1],
        THREADS=ONLINE_THREADS, KEPT=KEPT[data.itemsize] // vector,
        PEEL=view.n % vector != 0,
    )  # fmt: skip
    made(view.count, data, out, view.n)


def _of_one(name: str) -> None:
    @on_gpu(name)
    @repeated
    @checked
    def compute(data: DeviceArray, dim: int, dtype: Any = None) -> Any:
        """A formula over the rows along a dim."""
        return _formula_along(
            name, (data,), dim, data.dtype if dtype is None else dtype.numpy_dtype
        )


def _of_gradient(name: str) -> None:
    @on_gpu(name)
    @repeated
    @checked
    def compute(grad: DeviceArray, output: DeviceArray, dim: int, input_dtype: Any) -> Any:
        """Its gradient."""
        return _formula_along(name, (grad, output), dim, input_dtype.numpy_dtype)


for _name in ("softmax.int", "log_softmax.int", "_safe_softmax"):
    _of_one(_name)
for _name in ("_softmax_backward_data", "_log_softmax_backward_data"):
    _of_gradient(_name)


# ---- layer norm and RMS norm


def _flat(array: Any) -> Any:
    return None if array is None else fills.plain(array).reshape(-1)


def _fits(data: DeviceArray, shape: Any, *parameters: Any) -> bool:
    tail = tuple(shape)
    given = [p for p in parameters if p is not None]
    return (
        bool(data.size) and data.shape[data.ndim - len(tail) :] == tail
        and _floats(data.dtype, *[p.dtype for p in given])
        and all(isinstance(p, DeviceArray) and p.shape == tail for p in given)
    )  # fmt: skip


@on_gpu("native_layer_norm")
@repeated
@checked
def layer_norm(data: DeviceArray, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Normalised input, mean and 1 / standard deviation over the last dims."""
    if not _fits(data, shape, weight, bias):
        return NotImplemented
    kept = data.dtype if weight is None else weight.dtype
    stats = data.shape[: data.ndim - len(shape)] + (1,) * len(shape)
    data = fills.plain(data)
    out = fills.new(data.shape, None, data.dtype, data)
    mean, rstd = (fills.new(stats, None, kept, data) for _ in range(2))
    n = math.prod(shape)
    view, compute = rows.matrix(data.size // n, n), rows.compute_type(data.dtype)
    given = (data, _flat(weight), _flat(bias))
    if compute is f32 and n < COUNTED and not rows.in_registers(view, data):
        _norm_in_two_passes(given, (out, mean, rstd), view, eps)
    else:
        halves = data.dtype.itemsize == 2  # noqa: PLR2004
        form = formulas.layer_norm_of_halves if halves else shared.layer_norm
        rows.run(form, compute, (*given, eps), (out, mean, rstd), view)
    return out, mean, rstd


COUNTED = 1 << 24
"""Elements that numbers of f32 count."""


def _norm_in_two_passes(given: Any, results: Any, view: rows.Rows, eps: float) -> None:
    """Rows that are too long for registers."""
    arrays = [a for a in (*given, results[0]) if a is not None]
    vector = 16 // given[0].itemsize
    if any(address(a) % 16 for a in arrays):
        vector = 1
    data, weight, bias = given
    peel = view.n % vector != 0
    form = Shape(threads=ONLINE_THREADS, aligned=vector > 1, reads=("x", "weight", "bias"))
    several = AT_ONCE_NORM[data.itemsize] if vector > 1 else 4
    kept = KEPT_NORM[data.itemsize] // vector - peel
    types = {
        name: OF_NUMPY[NAMES[(data if a is None else a).dtype]]
        for name, a in (("T", data), ("TW", weight), ("TB", bias), ("TK", results[1]))
    }
    made = kernel(
        layer_norm_long, form, **types, V=vector, U=several, THREADS=ONLINE_THREADS,
        KEPT=kept, WEIGHT=weight is not None, BIAS=bias is not None,
        PEEL=peel,
    )  # fmt: skip
    made(view.count, *(data if a is None else a for a in given), *results, view.n, eps)


def _down(formula: Any, arrays: tuple[Any, ...], shape: Any, like: Any, kept: Any,
          count: int) -> Any:  # fmt: skip
    """Sums over rows of a shape, for each of `count` results: a launch over parts of columns, and
    one for each result that adds them up. Each has memory of its own: it may become the gradient
    that a leaf keeps."""
    n = math.prod(shape)
    compute = rows.compute_type(arrays[0].dtype)
    whole = arrays[0].size // n
    view = rows.Rows(1, n, 0, 1, 1, whole, 0, n)
    parts = max(1, min(whole // 64, 64))
    working = np.dtype(np.float64 if compute.size == 8 else np.float32)  # noqa: PLR2004
    pieces = fills.new((count, n * parts), None, working, like)
    rows.run(formula, compute, arrays, tuple(pieces[k] for k in range(count)), view, parts=parts)
    found = [fills.new(tuple(shape), None, kept, like) for _ in range(count)]
    for piece, out in zip(pieces, found, strict=True):
        rows.run(shared.sum_of, compute, (piece,), (out.reshape(-1),), rows.matrix(n, parts))
    return found


@on_gpu("native_layer_norm_backward")
@repeated
@checked
def layer_norm_backward(grad: DeviceArray, data: DeviceArray, shape: Any, mean: Any, rstd: Any,
                        weight: Any, bias: Any, mask: Any) -> Any:  # fmt: skip
    """Gradients of input, weight and bias."""
    if not _fits(data, shape, weight) or not _floats(grad.dtype):
        return NotImplemented
    kept = data.dtype if weight is None else weight.dtype
    data, grad, n = fills.plain(data), fills.plain(grad), math.prod(shape)
    mean, rstd = _flat(mean), _flat(rstd)
    out = of_weight = of_bias = None
    if mask[0]:
        out = fills.new(data.shape, None, data.dtype, data)
        rows.run(formulas.layer_norm_slope, rows.compute_type(data.dtype),
                 (data, grad, _flat(weight), mean, rstd), (out,),
                 rows.matrix(data.size // n, n))  # fmt: skip
    if mask[1] or mask[2]:
        of_weight, of_bias = _down(formulas.column_sums, (data, grad, mean, rstd), shape, data,
                                   kept, 2)  # fmt: skip
    return out, of_weight if mask[1] else None, of_bias if mask[2] else None


@on_gpu("_rms_norm")
@repeated
@checked
def rms_norm(data: DeviceArray, shape: Any, weight: Any, eps: Any) -> Any:
    """Rows over their root mean square, and what they were multiplied by."""
    if not _fits(data, shape, weight):
        return NotImplemented
    eps = float(np.finfo(data.dtype).eps) if eps is None else eps
    data, n = fills.plain(data), math.prod(shape)
    out = fills.new(data.shape, None, data.dtype, data)
    working = np.dtype(np.float64 if data.itemsize == 8 else np.float32)  # noqa: PLR2004
    rstd = fills.new((data.size // n,), None, working, data)
    rows.run(shared.rms_norm, rows.compute_type(data.dtype), (data, _flat(weight), eps),
             (out, rstd), rows.matrix(data.size // n, n))  # fmt: skip
    return out, rstd


@on_gpu("_rms_norm_backward")
@repeated
@checked
def rms_norm_backward(grad: DeviceArray, data: DeviceArray, shape: Any, rstd: Any, weight: Any,
                      mask: Any) -> Any:  # fmt: skip
    """Gradients of input and weight."""
    if not _fits(data, shape, weight):
        return NotImplemented
    data, grad, n = fills.plain(data), fills.plain(grad), math.prod(shape)
    out = of_weight = None
    if mask[0]:
        out = fills.new(data.shape, None, data.dtype, data)
        rows.run(formulas.rms_norm_slope, rows.compute_type(data.dtype),
                 (data, grad, _flat(weight), rstd), (out,),
                 rows.matrix(data.size // n, n))  # fmt: skip
    if mask[1]:
        (of_weight,) = _down(formulas.scaled_column_sums, (data, grad, rstd), shape, data,
                             data.dtype, 1)  # fmt: skip
    return out, of_weight


def gated(first: Any, gate: Any) -> Any:
    """A number times the sigmoid of another one."""
    return first / (1 + exp(-gate))


@on_gpu("glu")
@repeated
@checked
def glu(data: Any, dim: int = -1) -> Any:
    """The first half along a dim times the sigmoid of the second."""
    if not _floats(data.dtype) or not -data.ndim <= dim < data.ndim or data.shape[dim] % 2:
        return NotImplemented
    half = data.shape[dim] // 2
    before = (slice(None),) * (dim % data.ndim)
    first, gate = data[(*before, slice(half))], data[(*before, slice(half, None))]
    return apply(gated, (first, gate), fills.new_like(first))
