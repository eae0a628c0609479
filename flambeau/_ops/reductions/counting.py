"""Counts: `histc`, `histogram`, `histogramdd`, `bincount`, `unique`, `unique_consecutive`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core.device import thread
from flambeau._core.dtype import NUMPY_HALVES
from flambeau._core.programs import EAGER
from flambeau._ops.factories.ranges import spaced
from flambeau._ops.launching.modules import launcher
from flambeau._ops.reductions.sums import FLOAT64, INT64, finished, refuse, working_array, write
from flambeau._ops.sorting.sort import order
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.result_types import result_type_of
from flambeau._ops.table.scalars import real
from flambeau._ops.table.unformulated import recorded
from flambeau._runtime import choice, cpu
from flambeau._tensor.examples import NO_SHAPE, Example, numbers_under
from flambeau._tensor.tensor import Tensor, on_device_of, wrap

# ---- histograms


def _limits(data: np.ndarray, low: float, high: float, name: str) -> tuple[float, float]:
    """The range of the bins: that of the elements where none is given, never of width 0."""
    if low == high and data.size:  # NaN counts as both: it is what argmin and argmax find
        low, high = float(data.item(data.argmin())), float(data.item(data.argmax()))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return (low - 1, high + 1) if low == high else (low, high)


def _bin_places(values: np.ndarray, edges: np.ndarray, uniform: bool) -> np.ndarray:
    """The bin of each value, -1 outside; the last bin holds its upper edge."""
    if uniform and _has_kernel(values):
        return launcher("reductions.bins_launch").even_places(values, edges)  # type: ignore[no-any-return]
    inside = (values >= edges[0]) & (values <= edges[-1])
    if uniform:
        places = _even_places(np.where(inside, values, edges[0]), edges)
    else:
        places = np.minimum(np.searchsorted(edges, values, "right") - 1, len(edges) - 2)
    return np.where(inside, places, -1)


def _has_kernel(values: np.ndarray) -> bool:
    return values.dtype.char in "fd" and choice.compiled("bins", values.size)


def _even_places(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each value between evenly spaced edges: a guess, corrected by the edges beside."""
    last = len(edges) - 2
    with cpu.quiet():
        guess = (values - edges[0]) * ((last + 1) / (edges[-1] - edges[0]))
        places = guess.astype(INT64)
    np.minimum(np.maximum(places, 0, out=places), last, out=places)
    places -= values < edges.take(places)
    places += values >= edges[1:].take(places)
    return np.minimum(places, last, out=places)


def _check_ends(data: np.ndarray, low: float, high: float) -> None:
    """Torch's error for ends of the range that a type of integers does not hold; of equal elements
    the range is one wider on both sides."""
    info = np.iinfo(data.dtype)
    if low == high and data.size:
        low, high = float(data.min()), float(data.max())
    if low == high:
        low, high = low - 1, high + 1
    if low < info.min or high > info.max:
        raise RuntimeError(
            f"value cannot be converted to type {data.dtype.name}_t without overflow"
        )


def _rounded(values: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers of a half type, computed in single precision, as that type holds them."""
    return working_array(finished(np.asarray(values), dtype)) if dtype in NUMPY_HALVES else values


@kernel(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    nondeterministic=(
        "_histc_cuda with floating point input",
        lambda given: given[0].is_floating_point(),
    ),
    out=True,
)
def histc(data: np.ndarray, bins: int, min: Any, max: Any) -> np.ndarray:
    """How many elements fall into each of `bins` equal bins between `min` and `max` (of the
    elements, where both are equal). Elements outside and NaN do not count.

    From any shape to [bins].

    >>> import flambeau as torch
    >>> torch.histc(torch.tensor([0.0, 1.0, 1.0, 3.0]), bins=3, min=0, max=3)
    tensor([1., 2., 1.])
    """
    bins, min, max = int(bins), real(min), real(max)
    if data.dtype.kind in "iu":
        _check_ends(data, min, max)
    kinds = "float int" if thread.works_on else "float"  # on GPUs integers are counted, too
    refuse(data, kinds, "linspace_cpu" if data.dtype.kind == "b" else "histogram_cpu")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    values = working_array(data).reshape(-1)
    low, high = _limits(values, min, max, "torch.histc")
    first, last = values.dtype.type(low), values.dtype.type(high)
    inside = values >= first
    inside &= values <= last
    if np.count_nonzero(inside) < values.size:
        values = values[inside]
    count, width = values.dtype.type(bins), last - first
    places = values - first
    for step, by in ((np.multiply, count), (np.divide, width)):
        places = step(_rounded(places, data.dtype), _rounded(by, data.dtype))
    # the last bin is closed, and counts what overflows
    places = np.clip(np.nan_to_num(_rounded(places, data.dtype), posinf=bins), 0, bins - 1)
    counted = np.bincount(places.astype(np.int64), minlength=bins)
    return finished(counted, data.dtype)


def _not_edges(bins: Any, dim: int) -> Exception:
    return RuntimeError("torch.histogramdd: bins tensor should have one dimension, but got "
                        f"{bins._data.ndim} dimensions in the bins tensor for dimension {dim}"
                        )  # fmt: skip


def _explicit_edges(bins: Any) -> np.ndarray:
    if bins._data.ndim != 1:
        raise _not_edges(bins, 0)
    return numbers_under(bins._data)  # type: ignore[no-any-return]


def _edges(column: np.ndarray, bins: Any, limits: Any, dim: int) -> tuple[np.ndarray, bool]:
    """(edges, whether they are evenly spaced) of one dim."""
    if isinstance(bins, Tensor):
        return _explicit_edges(bins), False
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension "
                           f"{dim}")  # fmt: skip
    low, high = (0.0, 0.0) if limits is None else limits
    if limits is None:
        low, high = (float(column.min()), float(column.max())) if column.size else (0.0, 1.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is "
                           "not finite")  # fmt: skip
    if low > high:
        raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} "
                           f"max {high:g} for dimension {dim}")  # fmt: skip
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = spaced(low, high, bins + 1, column.dtype)
    return edges.astype(column.dtype, copy=False), True


def _count_points(points: np.ndarray, bins: Sequence[Any], limits: Any, weight: Any,
                  density: bool) -> tuple[np.ndarray, list[np.ndarray]]:  # fmt: skip
    """The weighted counts of points (rows) in a grid of bins."""
    edges, places = [], []
    for dim in range(points.shape[1]):
        column = points[:, dim]
        span = None if limits is None else limits[2 * dim : 2 * dim + 2]
        edge, uniform = _edges(column, bins[dim], span, dim)
        edges.append(edge)
        places.append(_bin_places(column, edge, uniform))
    shape = [len(edge) - 1 for edge in edges]
    inside = np.logical_and.reduce([place >= 0 for place in places])
    found = np.atleast_1d(np.ravel_multi_index([place[inside] for place in places], shape))
    if weight is None:
        counted = np.bincount(found, minlength=math.prod(shape))
        counts = counted.astype(points.dtype).reshape(shape)
    else:
        counts = np.zeros(shape, points.dtype)
        np.add.at(counts.reshape(-1), found, weight.reshape(-1)[inside])
    if density:
        counts = counts / counts.sum()
        for dim, edge in enumerate(edges):
            width = np.diff(edge).reshape([-1 if d == dim else 1 for d in range(len(shape))])
            counts = counts / width
    return counts, edges


def _check_bins(input: Any, bins: list[Any]) -> None:
    """Edges have the type of the input, and numbers of bins are positive."""
    for dim, each in enumerate(bins):
        if not isinstance(each, Tensor):
            if isinstance(each, int) and each <= 0:
                raise _no_bins(each, dim)
            continue
        if each.dtype is not input.dtype:
            raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the "
                               f"same dtype, but got input with dtype {input.dtype.c_name} and "
                               f"bins for dimension {dim} with dtype "
                               f"{each.dtype.c_name}")  # fmt: skip
        if each._data.ndim != 1:
            raise _not_edges(each, dim)
        if not each._data.size:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements "
                f"in the bins tensor for dimension {dim}"
            )


def _check_out(input: Any, hist: Any, edges: Any) -> None:
    """Both results have the type of the input."""
    for name, part, where in (("hist", hist, ""), ("bin_edges", edges, " for dimension 0")):
        if part.dtype is not input.dtype:
            raise RuntimeError(f"torch.histogram: input tensor and {name} tensor should have the "
                               f"same dtype, but got input {input.dtype.c_name} and {name} "
                               f"{part.dtype.c_name}{where}")  # fmt: skip


def _no_bins(bins: int, dim: int) -> Exception:
    return RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")


def _check_range(range: Any, width: int) -> None:
    if range is not None and len(range) != 2 * width:
        raise RuntimeError(f"torch.histogramdd: for a {width}-dimensional histogram range should "
                           f"have {2 * width} elements, but got {len(range)}")  # fmt: skip


def _check_weight(input: Any, weight: Any, shape: tuple[int, ...]) -> None:
    """`shape`: that of the input with a last dim for coordinates."""
    if weight is None:
        return
    if weight.dtype is not input.dtype:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and "
                           "weight tensor should have the same dtype, but got input("
                           f"{input.dtype.c_name}), and weight({weight.dtype.c_name})")  # fmt: skip
    if weight._data.shape != shape[:-1]:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the "
                           "same shape as the input tensor excluding its innermost dimension, but "
                           f"got input with shape {list(shape)} and weight with shape "
                           f"{list(weight.shape)}")  # fmt: skip


_histogram = result_type_of("histogram", ("hist", "bin_edges"))
_histogramdd = result_type_of("histogramdd", ("hist", "bin_edges"))


@composite(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, "
    "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    batch="examples",
)
def histogram(input: Any, bins: Any = 100, *, range: Any = None, weight: Any = None,
              density: bool = False, out: Any = None) -> Any:  # fmt: skip
    """Counts (or with `weight`, sums of weights) of elements in bins, and the bins' edges. `bins`
    is a number of equal bins or a tensor of edges; `density` scales the integral to 1.

    From any shape to [bins] and [bins + 1].

    >>> import flambeau as torch
    >>> torch.histogram(torch.tensor([0., 1., 1., 2.]), bins=2)
    torch.return_types.histogram(
    hist=tensor([1., 3.]),
    bin_edges=tensor([0., 1., 2.]))
    """
    data = numbers_under(input._data)
    if out is not None:
        _check_out(input, *out)
    _check_bins(input, [bins])
    _check_range(range, 1)
    refuse(data, "float", "histogramdd")
    _check_weight(input, weight, (*data.shape, 1))
    points = data.reshape(-1, 1)
    weights = None if weight is None else numbers_under(weight._data)
    with cpu.quiet():
        counts, edges = _count_points(points, [bins], range, weights, density)
    parts = wrap(finished(counts, data.dtype)), wrap(np.array(edges[0]))
    result = _histogram([on_device_of(part, input) for part in parts])
    return write(histogram, out, recorded(result, (input, bins, weight), "histogram"))


@composite(
    "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
    may_give_input=True,
    batch="examples",
    method=False,
    several=True,
)
def histogramdd(input: Any, bins: Any, range: Any = None, weight: Any = None,
                density: bool = False) -> Any:  # fmt: skip
    """The counts of points in a grid; the last dim of the input holds a point's coordinates.

    >>> import flambeau as torch
    >>> points = torch.tensor([[0., 0.], [1., 1.], [1., 0.]])
    >>> torch.histogramdd(points, bins=[2, 2]).hist
    tensor([[1., 0.],
            [1., 1.]])
    """
    data = numbers_under(input._data)
    if data.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions"
                           )  # fmt: skip
    width = data.shape[-1]
    each = [bins] * width if isinstance(bins, int) else list(bins)
    if len(each) != width and any(isinstance(edges, Tensor) for edges in each):
        raise RuntimeError(f"torch.histogramdd: expected {width} sequences of bin edges for a "
                           f"{width}-dimensional histogram but got {len(each)}")  # fmt: skip
    if isinstance(each[0] if each else None, Tensor):
        _check_bins(input, each)
    _check_range(range, width)
    _check_bins(input, each)
    if len(each) != width:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost "
                           "dimension of the input.")  # fmt: skip
    refuse(data, "float", "histogramdd")
    points = data.reshape(math.prod(data.shape[:-1]), width)
    _check_weight(input, weight, data.shape)
    weights = None if weight is None else numbers_under(weight._data)
    with cpu.quiet():
        counts, edges = _count_points(points, each, range, weights, density)
    hist = on_device_of(wrap(finished(counts, data.dtype)), input)
    if isinstance(each[0], Tensor):
        recorded(hist, (input, each, weight), "_histogramdd_from_bin_tensors")
        return _histogramdd((hist, tuple(each)))
    recorded(hist, (input, weight), "_histogramdd_from_bin_cts")
    tensors = [on_device_of(wrap(np.array(edge)), input) for edge in edges]
    found = tuple(recorded(tensors, (input, weight), "_histogramdd_bin_edges"))
    return _histogramdd((hist, found))


@kernel(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    nondeterministic=("_bincount_cuda", lambda given: given[1] is not None),
    shape="unknown",
    underived=True,
)
def bincount(data: np.ndarray, weights: np.ndarray | None, minlength: int) -> np.ndarray:
    """How often each non-negative integer occurs, or the sum of its weights.

    From shape [N] to [max(input) + 1], or to [minlength] if that is more.

    >>> import flambeau as torch
    >>> torch.bincount(torch.tensor([0, 2, 2, 1]))
    tensor([1, 1, 2])
    """
    refuse(data, "int", "bincount_cpu")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if data.ndim != 1 or (data.size and data.item(data.argmin()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if not data.size:  # torch looks at no weights then
        return np.zeros(minlength, INT64)
    if weights is None:
        return finished(np.bincount(data, minlength=minlength), INT64)
    if weights.shape != data.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = weights.dtype if weights.dtype == np.float32 else FLOAT64
    return finished(np.bincount(data, weights.astype(FLOAT64), minlength), kind)


# ---- unique elements


def _boundaries(rows: np.ndarray) -> np.ndarray:
    """Where a row differs from the one before it; the first always does."""
    changed = np.ones(len(rows), bool)
    if len(rows) > 1:
        different = rows[1:] != rows[:-1]
        changed[1:] = different.any(tuple(range(1, rows.ndim)))
    return changed


class _Groups:
    """Rows put into groups of equals: the first row, the size and the members of each."""

    def __init__(self, rows: np.ndarray, places: np.ndarray | None) -> None:
        arranged = rows if places is None else rows[places]
        changed = _boundaries(arranged)
        self.starts = np.flatnonzero(changed)
        self.values = arranged[self.starts]
        group = np.cumsum(changed) - 1
        self.inverse = np.empty(len(rows), INT64)
        self.inverse[slice(None) if places is None else places] = group
        self.counts = np.diff(np.append(self.starts, len(rows)))


def _row_order(rows: np.ndarray) -> np.ndarray:
    """The order that sorts rows lexicographically."""
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    if flat.shape[1] == 1:
        return order(flat[:, 0], 0, False)
    return np.lexsort(flat.T[::-1]) if flat.shape[1] else np.arange(len(rows))


def _sorted_values(input: Any) -> Tensor:
    """The different elements in order: all that a plain `unique` needs."""
    ordered = np.sort(working_array(input._data.reshape(-1)))
    return wrap(finished(ordered[_boundaries(ordered)], input._data.dtype))


def _unique(input: Any, dim: int | None, consecutive: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(values, inverse, counts) of all elements or of slices along a dim."""
    data = input._data
    label = "unique_consecutive" if consecutive else "unique"
    refuse(data, "bool int float", label if dim is None else f"{label}_dim")
    if dim is None:
        rows, shape = data.reshape(-1), data.shape
    else:
        dim = wrap_dim(dim, data.ndim)
        rows = np.moveaxis(data, dim, 0) if data.ndim else data.reshape(1)
        shape = (len(rows),)
    with cpu.quiet():
        comparable = working_array(rows)
        groups = _Groups(comparable, None if consecutive else _row_order(comparable))
    values = finished(groups.values, data.dtype)
    if dim is not None and data.ndim:
        values = np.moveaxis(values, 0, dim)
    return (wrap(values), wrap(groups.inverse.reshape(shape)),
            wrap(finished(groups.counts, INT64)))  # fmt: skip


def _check_zero_sizes(data: np.ndarray, dim: int | None) -> None:
    if dim is not None and not data.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if dim is None or data.size:
        return
    if data.shape.count(0) > 1:
        raise RuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be applied "
        )
    if data.shape[wrap_dim(dim, data.ndim)]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )


def _eager_unique(input: Any, further: bool, dim: int | None) -> Any:
    """further: whether more is wanted than the values."""
    _refuse_examples(input, "_unique2" if dim is None else "unique_dim")
    _check_zero_sizes(input._data, dim)
    if dim is None and not further:
        refuse(input._data, "bool int float", "unique")
        values = recorded(_sorted_values(input), (input,), "_unique2", "Unique2Backward0")
        return values, None, None
    found = _unique(input, dim, False)
    name, title = ("_unique2", "Unique2") if dim is None else ("unique_dim", "UniqueDim")
    recorded(found, (input,), name, f"{title}Backward0")
    return found


def _eager_consecutive(input: Any, dim: int | None) -> Any:
    _refuse_examples(input, "unique_consecutive")
    _check_zero_sizes(input._data, dim)
    found = _unique(input, dim, True)
    recorded(found, (input,), "unique_consecutive", "UniqueConsecutiveBackward0")
    return found


def _refuse_examples(input: Any, name: str) -> None:
    """Torch's error under `vmap`: how many there are depends on the numbers of each example."""
    if isinstance(input, Tensor) and getattr(input, "_data", None).__class__ is Example:
        raise RuntimeError(NO_SHAPE.format(name))


@composite(
    "unique(Tensor self, bool sorted=True, bool return_inverse=False, "
    "bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
    shape="unknown",
    program=True,
)
def unique(input: Any, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False, dim: int | None = None) -> Any:  # fmt: skip
    """The different elements (or slices along a dim), in order; on request, for each element the
    place of its value, and how often each value occurs.

    >>> import flambeau as torch
    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if EAGER:
        found = _eager_unique(input, return_inverse or return_counts, dim)
    elif dim is None:
        found = ops._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = ops.unique_dim(input, dim, sorted, return_inverse, return_counts)
    if return_inverse and return_counts:
        return found
    if return_inverse:
        return found[0], found[1]
    if return_counts:
        return found[0], found[2]
    return found[0]


@composite(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
    "int? dim=None) -> (Tensor, Tensor, Tensor)",
    shape="unknown",
    program=True,
)
def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:  # fmt: skip
    """The elements (or slices along a dim) that differ from the one before.

    >>> import flambeau as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    if EAGER:
        found = _eager_consecutive(input, dim)
    else:
        found = ops.unique_consecutive(input, return_inverse, return_counts, dim)
    if return_inverse and return_counts:
        return found
    if return_inverse:
        return found[0], found[1]
    if return_counts:
        return found[0], found[2]
    return found[0]
