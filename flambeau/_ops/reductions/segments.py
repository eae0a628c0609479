"""`segment_reduce`: sums, means, products, maxima and minima of runs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.reductions.sums import refuse
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import kernel

UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum,
          "min": np.minimum}  # fmt: skip
EMPTY = {"sum": 0.0, "mean": np.nan, "prod": 1.0, "max": -np.inf, "min": np.inf}
"""What there is of no rows at all."""
OTHER_NAMES = {"amax": "max", "amin": "min"}
INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True, slots=True)
class Segments:
    """Runs of rows: where they begin and end, of all batches one after the other."""

    starts: np.ndarray
    ends: np.ndarray
    batch: tuple[int, ...]
    each: int  # segments of a batch

    @property
    def counts(self) -> np.ndarray:
        return self.ends - self.starts

    def spread(self, values: np.ndarray, rows: int) -> np.ndarray:
        """A segment's value for each of its rows; zero for rows of none."""
        found = np.zeros((rows, *values.shape[1:]), values.dtype)
        found[self.rows()] = np.repeat(values, self.counts, axis=0)
        return found

    def rows(self) -> np.ndarray:
        """The rows of all segments, segment after segment."""
        counts = self.counts
        passed = np.cumsum(counts) - counts
        return np.arange(counts.sum()) + np.repeat(self.starts - passed, counts)


def _reduction(reduce: str) -> str:
    name = OTHER_NAMES.get(reduce, reduce)
    if name not in UFUNCS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    return name


def _segments(data: np.ndarray, lengths: Any, offsets: Any, axis: int, unsafe: bool) -> Segments:
    given, word = (lengths, "lengths") if offsets is None else (offsets, "offsets")
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if given.ndim > data.ndim:
        raise RuntimeError(f"segment_reduce(): {word} has {given.ndim} dims, data {data.ndim}")
    if axis != given.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {word} but got {axis}."
        )
    batch, rows = data.shape[:axis], data.shape[axis]
    if given.shape[:-1] != batch:
        raise RuntimeError(f"segment_reduce(): {word} of {list(given.shape)} do not fit data of "
                           f"{list(data.shape)}")  # fmt: skip
    if offsets is None and not unsafe:
        _check_lengths(given, rows)
    _check_type(given, word)
    ends = np.cumsum(given, axis=-1) if offsets is None else given[..., 1:]
    starts = ends - given if offsets is None else given[..., :-1]
    if starts.size and (starts.min() < 0 or ends.max() > rows or (starts > ends).any()):
        raise RuntimeError(f"segment_reduce(): {word} reach beyond the {rows} rows of data")
    first = rows * np.arange(starts.size // max(starts.shape[-1], 1)).repeat(starts.shape[-1])
    return Segments(starts.reshape(-1) + first, ends.reshape(-1) + first, batch, starts.shape[-1])


def _check_lengths(lengths: np.ndarray, rows: int) -> None:
    if lengths.size and lengths.min() < 0:
        raise RuntimeError("lengths contains negative value!")
    if (lengths.sum(axis=-1) != rows).any():
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                           "data.size(lengths.dim()-1) when !unsafe.")  # fmt: skip


def _check_type(given: np.ndarray, word: str) -> None:
    if given.dtype not in INTEGERS:
        name = dt.from_numpy_dtype(given.dtype).scalar_name
        raise NotImplementedError(
            f"\"_segment_reduce_{word}_cpu_kernel1\" not implemented for '{name}'"
        )


def _rows_of(data: np.ndarray, axis: int) -> np.ndarray:
    """Batches and rows as one dim, and what a row holds as another; half types as float32."""
    wide = np.float32 if data.dtype in dt.NUMPY_HALVES else data.dtype
    inner = int(np.prod(data.shape[axis + 1 :], dtype=np.int64))
    outer = int(np.prod(data.shape[: axis + 1], dtype=np.int64))
    return np.ascontiguousarray(data, wide).reshape(outer, inner)


def _reduced(rows: np.ndarray, segments: Segments, name: str, initial: Any) -> np.ndarray:
    """One row for each segment."""
    empty = EMPTY[name] if initial is None else initial
    found = np.full((len(segments.starts), rows.shape[1]), empty, rows.dtype)
    is_full = segments.counts > 0
    if not is_full.any() or not rows.shape[1]:
        return found
    ufunc = UFUNCS[name]
    starts, ends = segments.starts[is_full], segments.ends[is_full]
    # what stands between two runs is reduced as well, and left out
    between = np.stack([starts, ends], axis=1).reshape(-1)
    if (ends[:-1] == len(rows)).any():
        rows = np.concatenate([rows, rows[:1]])
    if ends[-1] == len(rows):
        between = between[:-1]
    reduced = ufunc.reduceat(rows, between, axis=0)[::2]
    if initial is not None:
        reduced = ufunc(reduced, rows.dtype.type(initial))
    if name == "mean":
        reduced = reduced / (ends - starts)[:, None]
    found[is_full] = reduced
    return found


def _segment_grad(grad: Any, result: Any, data: Any, reduce: str, lengths: Any, offsets: Any,
                  axis: int, initial: Any) -> Any:  # fmt: skip
    return ops._segment_reduce_backward(
        grad, result, data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
    )


@kernel(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
    "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    method=False,
    backward={"data": _segment_grad},
)
def segment_reduce(data: np.ndarray, reduce: str, lengths: Any, indices: Any, offsets: Any,
                   axis: int, unsafe: bool, initial: Any) -> np.ndarray:  # fmt: skip
    """Sum, mean, product, maximum or minimum of each run of rows along a dim; `lengths` or
    `offsets` say which rows, `initial` counts as one more.

    >>> import flambeau as torch
    >>> torch.segment_reduce(torch.tensor([1., 2., 3.]), "sum", lengths=torch.tensor([2, 1]))
    tensor([3., 3.])
    """
    axis = wrap_dim(axis, data.ndim)
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    name = _reduction(reduce)
    segments = _segments(data, lengths, offsets, axis, unsafe)
    refuse(data, "float", "_segment_reduce_cpu")
    found = _reduced(_rows_of(data, axis), segments, name, initial)
    return found.reshape(*segments.batch, segments.each, *data.shape[axis + 1 :]).astype(
        data.dtype, copy=False
    )


@kernel(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, "
    "Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
    method=False,
    underived=True,
)
def segment_reduce_backward(grad: np.ndarray, output: np.ndarray, data: np.ndarray, reduce: str,
                            lengths: Any, offsets: Any, axis: int,
                            initial: Any) -> np.ndarray:  # fmt: skip
    """The gradient of `segment_reduce`; elements that share a maximum share its gradient."""
    name = _reduction(reduce)
    axis = wrap_dim(axis, data.ndim)
    segments = _segments(data, lengths, offsets, axis, True)
    rows = _rows_of(data, axis)
    given, results = _rows_of(grad, axis), _rows_of(output, axis)
    found = _row_grads(given, results, rows, segments, name, initial)
    return found.reshape(data.shape).astype(data.dtype, copy=False)


def _row_grads(given: np.ndarray, results: np.ndarray, rows: np.ndarray, segments: Segments,
               name: str, initial: Any) -> np.ndarray:  # fmt: skip
    count = len(rows)
    if name == "sum":
        return segments.spread(given, count)
    if name == "mean":
        sizes = np.maximum(segments.counts, 1)[:, None].astype(rows.dtype)
        return segments.spread(given / sizes, count)
    if name == "prod":
        return _product_grads(given, results, rows, segments, initial)
    is_result = (rows == segments.spread(results, count)) | np.isnan(rows)
    shares = _reduced(is_result.astype(rows.dtype), segments, "sum", None)
    return segments.spread(given / np.maximum(shares, 1), count) * is_result


def _product_grads(given: np.ndarray, results: np.ndarray, rows: np.ndarray, segments: Segments,
                   initial: Any) -> np.ndarray:  # fmt: skip
    """The result without the element: divided by it, but where that is zero or NaN."""
    is_odd = (rows == 0) | np.isnan(rows)
    divisor = np.where(is_odd, rows.dtype.type(1), rows)
    found = segments.spread(given * results, len(rows)) / divisor
    has_odd = _reduced(is_odd.astype(rows.dtype), segments, "max", 0).any(axis=1)
    for index in np.nonzero(has_odd & (segments.counts > 0))[0]:
        run = slice(segments.starts[index], segments.ends[index])
        others = _product_of_others(rows[run], 1 if initial is None else initial)
        found[run] = np.where(is_odd[run], given[index] * others, found[run])
    return found


def _product_of_others(run: np.ndarray, initial: Any) -> np.ndarray:
    ones = np.ones_like(run[:1])
    before = np.cumprod(np.concatenate([ones * initial, run[:-1]]), axis=0, dtype=run.dtype)
    after = np.cumprod(np.concatenate([ones, run[:0:-1]]), axis=0, dtype=run.dtype)[::-1]
    return before * after
