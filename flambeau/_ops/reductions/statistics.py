"""Order statistics and moments: `median`, `mode`, `kthvalue`, `quantile`, `cov`, `corrcoef`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core.settings import warn_user
from flambeau._ops.reductions.extrema import (
    check_not_empty,
    evenly_backward,
    selected_backward,
    take_along,
)
from flambeau._ops.reductions.sums import INT64, finished, refuse, working_array, write
from flambeau._ops.scans.cumulative import is_recorded
from flambeau._ops.sorting.sort import order
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Body, Op, composite, reduction
from flambeau._tensor.examples import is_near, numbers_under
from flambeau._tensor.tensor import Tensor, on_device_of, wrap


def _prepare(data: np.ndarray, dim: int, name: str) -> int:
    dim = wrap_dim(dim, data.ndim)
    if data.ndim:
        check_not_empty(data, (dim,), f"{name}()")
    return dim


def _pick(data: np.ndarray, indices: np.ndarray, dim: int, keepdim: bool) -> Any:
    """(values, indices) of one element per row; `indices` has size 1 along `dim`."""
    values = take_along(data, indices, dim)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return finished(values, data.dtype), finished(indices, INT64)


def _single(data: np.ndarray) -> Any:
    """The results for a 0-dim tensor."""
    return data.copy(), np.zeros((), INT64)


# ---- median, kthvalue, mode


def _missing(data: np.ndarray) -> np.ndarray:
    return np.isnan(data) if data.dtype.kind in "fV" else np.zeros(data.shape, bool)


def _median_index(data: np.ndarray, dim: int, ignore_nan: bool) -> np.ndarray:
    """The index of the lower median of each row. A NaN is every row's median unless ignored."""
    indices = order(data, dim, False)
    absent = _missing(data)
    count = data.shape[dim] - np.add.reduce(absent, dim, INT64, keepdims=True)
    middle = np.maximum((count - 1) // 2, 0)
    if not ignore_nan:
        first_nan = np.argmax(take_along(absent, indices, dim), dim, keepdims=True)
        middle = np.where(count < data.shape[dim], first_nan, middle)
    return take_along(indices, middle, dim)


def _median_of_all(data: np.ndarray, ignore_nan: bool) -> np.ndarray:
    if not data.size:  # no kernel runs over nothing
        lowest = np.iinfo(data.dtype).min if data.dtype.kind in "iu" else np.nan
        return finished(lowest, data.dtype)
    refuse(data, "int float", "median_cpu")
    flat = working_array(data).flatten()
    count = flat.size
    if data.dtype.kind in "fV":
        count -= int(np.count_nonzero(flat != flat))  # noqa: PLR0124  NaN, which is put last
    middle = max(count - 1, 0) // 2 if count == flat.size or ignore_nan else -1
    flat.partition(middle)
    return finished(flat[middle], data.dtype)


def _median_along(data: np.ndarray, dim: int, keepdim: bool, name: str) -> Any:
    dim = _prepare(data, dim, name)
    refuse(data, "int float", "median_out_impl" if data.ndim else "median_cpu")
    if not data.ndim:
        return _single(data)
    return _pick(data, _median_index(data, dim, name == "nanmedian"), dim, keepdim)


def _of_middle(name: str) -> Callable[[Body], Op]:
    """The row of medians along a dim."""
    return reduction(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        nondeterministic="median CUDA with indices output",
        order=1,
        node=f"{name.title()}Backward1",
        nondifferentiable=("indices",),
        backward={"self": selected_backward},
    )


@reduction("median(Tensor self) -> Tensor", order=0, out=False, backward={"self": evenly_backward})
def median(data: np.ndarray) -> np.ndarray:
    """The median of all elements: the lower of two middle ones.

    >>> import flambeau as torch
    >>> torch.median(torch.tensor([5, 1, 3, 2]))
    tensor(2)
    """
    return _median_of_all(data, False)


@_of_middle("median")
def median_dim(data: np.ndarray, dim: int, keepdim: bool) -> Any:
    """The lower medians along a dim, and an index of each."""
    return _median_along(data, dim, keepdim, "median")


@reduction(
    "nanmedian(Tensor self) -> Tensor", order=0, out=False, backward={"self": evenly_backward}
)
def nanmedian(data: np.ndarray) -> np.ndarray:
    """The median of the elements that are not NaN.

    >>> import flambeau as torch
    >>> torch.nanmedian(torch.tensor([1., float("nan"), 3.]))
    tensor(1.)
    """
    return _median_of_all(data, True)


@_of_middle("nanmedian")
def nanmedian_dim(data: np.ndarray, dim: int, keepdim: bool) -> Any:
    """The medians along a dim of the elements that are not NaN."""
    return _median_along(data, dim, keepdim, "nanmedian")


@reduction(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)"
    " -> (Tensor values, Tensor indices)",
    out_type="output values must be of same type as input",
    out_apart=True,
    nondifferentiable=("indices",),
    backward={"self": selected_backward},
)
def kthvalue(data: np.ndarray, k: int, dim: int, keepdim: bool) -> Any:
    """The k-th smallest elements along a dim, counted from 1, and their indices.

    >>> import flambeau as torch
    >>> torch.kthvalue(torch.tensor([5, 1, 3]), 2).values
    tensor(3)
    """
    if isinstance(k, bool):
        raise TypeError("kthvalue(): argument 'k' must be int, not bool")
    dim = _prepare(data, dim, "kthvalue")
    if not 1 <= k <= (data.shape[dim] if data.ndim else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension "
                           f"{dim}")  # fmt: skip
    refuse(data, "int float", "kthvalue_cpu")
    if not data.ndim:
        return _single(data)
    indices = order(data, dim, False)[(slice(None),) * dim + (slice(k - 1, k),)]
    return _pick(data, indices, dim, keepdim)


@reduction(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    out_type="expected scalar type '{want}' but got '{have}' for {part} output",
    nondifferentiable=("indices",),
    backward={"self": selected_backward},
)
def mode(data: np.ndarray, dim: int, keepdim: bool) -> Any:
    """The most frequent elements along a dim (the smallest of several), and an index of each.

    >>> import flambeau as torch
    >>> torch.mode(torch.tensor([1, 2, 2])).values
    tensor(2)
    """
    dim = _prepare(data, dim, "mode")
    refuse(data, "bool int float", "mode_cpu")
    if not data.ndim:
        return _single(data)
    indices = order(data, dim, False)
    rows = np.moveaxis(take_along(data, indices, dim), dim, -1)
    last = np.argmax(_run_lengths(rows), -1)[..., None]
    return _pick(data, take_along(indices, np.moveaxis(last, -1, dim), dim), dim, keepdim)


def _run_lengths(rows: np.ndarray) -> np.ndarray:
    """For each element of sorted rows, how many equal ones there are up to it."""
    positions = np.arange(rows.shape[-1])
    starts = np.zeros(rows.shape, INT64)
    starts[..., 1:] = np.where(rows[..., 1:] != rows[..., :-1], positions[1:], 0)
    return positions - np.maximum.accumulate(starts, -1)


# ---- quantiles

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _as_quantiles(input: Any, q: Any) -> Any:
    if isinstance(q, Tensor):
        return q
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    data = np.array(q, input._data.dtype)
    return on_device_of(wrap(data), input)


def _check_quantile(input: Any, q: Any, interpolation: str) -> None:
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint"
                           f" or nearest, but got {interpolation}")  # fmt: skip
    if not input._data.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q._data.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not is_near(q._data):  # as in torch: nobody waits for a check
        return
    chances = numbers_under(q._data)
    if np.count_nonzero((chances >= 0) & (chances <= 1)) < chances.size:
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


def _places(count: Any, q: Any, interpolation: str) -> tuple[Any, Any, Any]:
    """(lower rank, upper rank, weight of the upper) of each quantile among `count` numbers."""
    rank = q * count
    if interpolation == "lower":
        rank = ops.floor(rank)
    elif interpolation == "higher":
        rank = ops.ceil(rank)
    elif interpolation == "nearest":
        rank = ops.round(rank)
    lower = ops.floor(rank.detach())
    upper = ops.ceil(rank.detach())
    if interpolation == "midpoint":
        return lower.long(), upper.long(), (lower != upper).to(rank.dtype) * 0.5
    return lower.long(), upper.long(), rank - lower


def _quantile(input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str,
              ignore_nan: bool) -> Any:  # fmt: skip
    q = _as_quantiles(input, q)
    _check_quantile(input, q, interpolation)
    position = None if dim is None else wrap_dim(dim, input._data.ndim)
    rows = _rows(input, position, keepdim)
    sorted_rows: Any
    if is_recorded(rows) or not rows.is_cpu:
        sorted_rows = ops.sort(rows, -1)[0]
    else:
        sorted_rows = wrap(np.sort(rows._data, -1))  # in a fifth of the time without places
    count = rows._data.shape[-1] - 1
    if ignore_nan:
        absent = ops.isnan(sorted_rows.detach()).sum(-1, True)
        values = _interpolated(sorted_rows, ops.clamp(count - absent, min=0), q, interpolation)
    else:
        last = sorted_rows.detach().narrow(-1, count, 1)  # NaN comes last
        values = _interpolated(sorted_rows, count, q, interpolation, ops.isnan(last))
    return _arranged(values, q)


def _interpolated(sorted_rows: Any, count: Any, q: Any, interpolation: str,
                  at_end: Any = None) -> Any:  # fmt: skip
    """Quantiles of sorted rows, as the last dim; the last element where `at_end` says so."""
    lower, upper, weight = _places(count, q.reshape(-1), interpolation)
    if at_end is not None:
        lower = ops.where(at_end, count, lower)
        upper = ops.where(at_end, count, upper)
    shape = (*sorted_rows._data.shape[:-1], q._data.size)
    low = ops.gather(sorted_rows, -1, lower.expand(shape))
    if interpolation in ("lower", "higher", "nearest"):
        return low
    high = ops.gather(sorted_rows, -1, upper.expand(shape))
    return ops.lerp(low, high, weight.expand(shape))


def _rows(input: Any, position: int | None, keepdim: bool) -> Any:
    """What quantiles are taken of, as the last dim; before it the dims that the result has."""
    ndim = input._data.ndim
    if position is None or not ndim:
        return input.reshape([1] * ndim + [-1] if keepdim else [-1])
    if keepdim:
        return input.unsqueeze(-1).transpose(position, -1)
    return input.movedim(position, -1)


def _arranged(values: Any, q: Any) -> Any:
    """New quantiles from the last dim to the first (left out for a single number), in place."""
    if q._data.ndim:
        values = values.unsqueeze_(0).transpose_(0, -1)
    return values.squeeze_(-1)


_QUANTILE = ('(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, '
             'str interpolation="linear") -> Tensor')  # fmt: skip
_OF_INPUT = "quantile() out tensor must be same dtype as the input tensor"


@composite(f"quantile{_QUANTILE}", out_writer="copy_", autocast="cpu=float32", out_type=_OF_INPUT)
def quantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear", out: Any = None) -> Any:  # fmt: skip
    """The q-th quantiles of everything or along a dim; several `q` come first in the result.

    >>> import flambeau as torch
    >>> torch.quantile(torch.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)
    """
    return write(quantile, out, _quantile(input, q, dim, keepdim, interpolation, False))


@composite(
    f"nanquantile{_QUANTILE}", out_writer="copy_", autocast="cpu=float32", out_type=_OF_INPUT
)
def nanquantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear", out: Any = None) -> Any:  # fmt: skip
    """The quantiles of the elements that are not NaN.

    The shape of `q`, then that of `input` without `dim`.

    >>> import flambeau as torch
    >>> torch.nanquantile(torch.tensor([1., float("nan"), 3.]), 0.5)
    tensor(2.)
    """
    return write(nanquantile, out, _quantile(input, q, dim, keepdim, interpolation, True))


# ---- covariance


def _check_weights(weights: Any, count: int, name: str, real: bool) -> None:
    if weights is None:
        return
    if weights._data.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got "
                           f"{name} with {weights._data.ndim} dimensions")  # fmt: skip
    if (weights._data.dtype.kind in "fV") != real or weights._data.dtype.kind in "bc":
        wanted = "floating point" if real else "integral"
        raise RuntimeError(f"cov(): expected {name} to have {wanted} dtype but got {name} with "
                           f"{weights.dtype.scalar_name} dtype")  # fmt: skip
    if weights._data.size != count:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are "
                           f"observations in the input but got {weights._data.size} != "
                           f"{count}")  # fmt: skip
    if count and numbers_under(weights._data).min() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor"
)
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables (rows) over observations (columns).

    >>> import flambeau as torch
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    ndim = input._data.ndim
    if ndim > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input "
                           f"with {ndim} dimensions")  # fmt: skip
    if input._data.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input if ndim == 2 else input.reshape(1, -1)
    count = rows._data.shape[1]
    _check_weights(fweights, count, "fweights", False)
    _check_weights(aweights, count, "aweights", True)
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = fweights * aweights
    return _covariance(rows, weights, aweights, correction)


NO_FREEDOM = ("cov(): degrees of freedom is <= 0. Correction should be strictly less than the "
              "number of observations.")  # fmt: skip


def _covariance(rows: Any, weights: Any, aweights: Any, correction: int) -> Any:
    count = rows._data.shape[1]
    if not count and weights is not None:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    if not count:
        if correction >= 0:
            warn_user(NO_FREEDOM)
        floats = rows + 0.0
        products = ops.matmul(floats, ops.conj(floats.transpose(0, 1)))  # zeros that remember
        return (products / (0 if correction >= 0 else -correction)).squeeze()
    total = count if weights is None else weights.sum()
    if weights is not None and not total._data.item():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    average = (
        rows.sum(1, True) / count if weights is None else (rows * weights).sum(1, True) / total
    )
    if weights is None or aweights is None or correction == 0:
        normalizer = total - correction
    else:
        normalizer = total - correction * (weights * aweights).sum() / total
    if float(normalizer if isinstance(normalizer, int) else normalizer._data) <= 0:
        warn_user(NO_FREEDOM)
        normalizer = 0 if isinstance(normalizer, int) else ops.zeros_like(normalizer)
    centered = rows - average
    weighted = centered if weights is None else centered * weights
    product = ops.matmul(centered, ops.conj(weighted.transpose(0, 1)))
    return (product / normalizer).squeeze()


@composite("corrcoef(Tensor self) -> Tensor")
def corrcoef(input: Any) -> Any:
    """The matrix of correlation coefficients of variables (rows): covariances scaled to [-1, 1].

    >>> import flambeau as torch
    >>> torch.corrcoef(torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input._data.ndim > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an "
                           f"input with {input._data.ndim} dimensions")  # fmt: skip
    matrix = ops.cov(input)
    if not matrix._data.ndim:
        return matrix / matrix
    variances = matrix.diagonal()
    if variances._data.dtype.kind in "cW":
        variances = ops.real(variances)
    deviations = ops.sqrt(variances)
    scaled = matrix / deviations.unsqueeze(-1) / deviations.unsqueeze(0)
    if scaled._data.dtype.kind in "cW":
        real, imaginary = ops.real(scaled), ops.imag(scaled)
        return ops.complex(ops.clamp(real, -1, 1), ops.clamp(imaginary, -1, 1))
    return ops.clamp(scaled, -1, 1)
