"""Sums and products of sparse tensors with sparse ones, dense ones, and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.promotion import category
from flambeau._ops.sparse.entries import (
    coalesce,
    is_ascending,
    numbers_of,
    read_at,
    sum_groups,
    with_places,
)
from flambeau._ops.sparse.table import on_sparse, refusal
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.pointwise import common_dtype, number_of
from flambeau._tensor.sparse import SparseFirst, SparseTensor, sparse_tensor
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import bump, check_inplace


def replace(target: SparseTensor, places: Tensor, entries: Any, coalesced: bool) -> SparseTensor:
    """Give a tensor other places and entries in place."""
    if target._entries is not entries:
        target._entries = entries
    target._places, target._coalesced, target._title = places, coalesced, None
    bump(target)
    return target


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(value, SparseTensor)


# ---- sums


@on_sparse("add.Tensor")
def add(first: Any, second: Any) -> Any:
    """sparse + sparse is sparse, dense + sparse is dense."""
    if is_sparse(first) and is_sparse(second):
        places, entries, coalesced = _sum(first, second)
        result = sparse_tensor(places, entries, first._size, coalesced)
        result._title = "AddBackward0"
        return result
    dense = _dense_first(first, second)
    _check_dense_sum(dense, second)
    return dense.to(_result_type(dense, second)) + second.to_dense()


@on_sparse("sub.Tensor")
def sub(first: Any, second: Any) -> Any:
    """As `add` of the negative, in the type of the result: unsigned numbers have none."""
    return add(first, -in_result_type(first, second))


@on_sparse("add_.Tensor")
def add_(target: Any, other: Any) -> Any:
    """In place; a dense tensor is only touched at the places of `other`."""
    recorded = bool(modes.grad.enabled) and (target.requires_grad or _wants_grad(other))
    check_inplace(target, recorded)
    if is_sparse(target) and is_sparse(other):
        _check_result(target, other)
        places, entries, coalesced = _sum(target, other)
        return replace(target, places, entries.to(target.dtype), coalesced)
    dense = _dense_first(target, other)
    _check_dense_sum(dense, other)
    _check_result(dense, other)
    if recorded or not dense.is_contiguous():
        return dense.add_(other.to_dense())
    rows = dense.detach().view(-1, *other._size[other.sparse_dim() :])
    rows.index_add_(0, wrap(numbers_of(other)), other._entries.detach().to(dense.dtype))
    return dense


@on_sparse("sub_.Tensor")
def sub_(target: Any, other: Any) -> Any:
    """As `add_` of the negative."""
    return add_(target, -in_result_type(target, other))


def _wants_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _dense_first(first: Any, second: Any) -> Any:
    if is_sparse(first) or not isinstance(first, Tensor):
        raise SparseFirst("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    return first


def _check_dense_sum(dense: Any, other: SparseTensor) -> None:
    if tuple(dense.shape) != tuple(other._size):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size "
            f"{list(dense.shape)} while other has size {list(other._size)} (FYI: dense-sparse "
            "addition does not currently support broadcasting)"
        )


def in_result_type(first: Any, second: Any) -> Any:
    """The second operand, a tensor or a number, converted to what both promote to."""
    if not isinstance(second, Tensor):
        return second
    common = _result_type(first, second)
    return second if second.dtype is common else second.to(common)


def _result_type(first: Any, second: Any) -> Any:
    """The promoted type; a sparse tensor counts as the dense one that it stands for."""
    return common_dtype([_like(value) for value in (first, second)])


def _like(value: Any) -> Any:
    if not is_sparse(value):
        return value
    data = value._entries._data
    return wrap(np.empty((0,) * value.ndim, data.dtype))


def _check_result(target: Any, other: Any) -> None:
    found = _result_type(target, other)
    if category(found) > category(target.dtype):
        raise RuntimeError(f"Can't convert result type {found.scalar_name} to output "
                           f"{target.dtype.scalar_name} in add operation")  # fmt: skip


def _sum(first: SparseTensor, second: SparseTensor) -> tuple[Tensor, Any, bool]:
    """The entries of both, merged by place as torch does; sorted where both were."""
    if tuple(first._size) != tuple(second._size):
        raise RuntimeError("add: expected sizes of 'self' and 'other' to match, but "
                           f"{list(first._size)} != {list(second._size)}")  # fmt: skip
    if first.sparse_dim() != second.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same density, but 'self' has "
            f"{first.sparse_dim()} sparse dimensions while 'other' has {second.sparse_dim()} "
            "sparse dimensions"
        )
    kind = _result_type(first, second)
    entries = ops.cat([first._entries.to(kind), second._entries.to(kind)])  # type: ignore[attr-defined]
    places = np.concatenate([first._places._data, second._places._data], 1)
    coalesced = first._coalesced and second._coalesced
    if not (_is_contiguous(first) and _is_contiguous(second)):
        joined = sparse_tensor(wrap(places), entries, first._size, False)
        if joined._nnz() > joined.numel():
            joined = coalesce(joined)
        return joined._places, joined._entries, coalesced
    group, count = _merge(numbers_of(first), numbers_of(second))
    merged = np.empty((places.shape[0], count), np.int64)
    merged[:, group] = places
    return wrap(merged), sum_groups(entries, group, count), coalesced


def _is_contiguous(tensor: SparseTensor) -> bool:
    return tensor._entries._data.flags.c_contiguous


def _merge(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, int]:
    """The position in the merged list of each number of both lists, and its length.

    Both lists are walked as if they were sorted; numbers that meet share a position.
    """
    if np.array_equal(first, second):
        return np.tile(np.arange(len(first)), 2), len(first)
    if is_ascending(first) and is_ascending(second):
        merged, group = np.unique(np.concatenate([first, second]), return_inverse=True)
        return group.reshape(-1), len(merged)
    return _walk(first.tolist(), second.tolist())


def _walk(first: list[int], second: list[int]) -> tuple[np.ndarray, int]:
    left: list[int] = []
    right: list[int] = []
    i = j = count = 0
    while i < len(first) and j < len(second):
        a, b = first[i], second[j]
        if a <= b:
            left.append(count)
            i += 1
        if b <= a:
            right.append(count)
            j += 1
        count += 1
    left += range(count, count + len(first) - i)
    right += range(count, count + len(second) - j)
    group = np.array(left + right, np.int64)
    return group, count + len(first) - i + len(second) - j


# ---- products and quotients


def _is_number(value: Any) -> bool:
    """Whether a factor is one number: of Python's, or a dense tensor without dims."""
    if isinstance(value, Tensor):
        return not is_sparse(value) and value.ndim == 0
    return number_of(value) is not None


@on_sparse("mul.Tensor")
def mul(first: Any, second: Any) -> Any:
    """A product with a number, with a dense tensor, or with a sparse one: always sparse."""
    if not is_sparse(first):
        first, second = second, first
    if _is_number(second):
        return with_places(first, first._entries * second, "MulBackward0")
    if is_sparse(second):
        return _product(first, second)
    factor = read_at(second.expand(tuple(first._size)), first)
    return with_places(first, first._entries * factor, "MulBackward0")


def _product(first: SparseTensor, second: SparseTensor) -> SparseTensor:
    """The places of both if both are coalesced, else those of one: with zeros where it is alone."""
    if tuple(first._size) != tuple(second._size) or first.sparse_dim() != second.sparse_dim():
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, "
            "number of sparse dimensions, and shape of sparse dimensions"
        )
    if (first._coalesced and second._coalesced) or not (first._nnz() and second._nnz()):
        return _common(coalesce(first), coalesce(second))
    pattern, other = (second, first) if _goes_by_second(first, second) else (first, second)
    other = coalesce(other)
    wanted, known = numbers_of(pattern), numbers_of(other)
    position = np.searchsorted(known, wanted)
    position[position == len(known)] = 0
    met = (known[position] == wanted).reshape(-1, *[1] * pattern.dense_dim())
    entries = pattern._entries * ops.index_select(other._entries, 0, wrap(position))
    return with_places(pattern, entries.masked_fill(wrap(~met), 0), "MulBackward0")


def _goes_by_second(first: SparseTensor, second: SparseTensor) -> bool:
    """Torch goes by the places of the tensor that is not coalesced, or that has fewer entries."""
    if first._coalesced != second._coalesced:
        return first._coalesced
    return second._nnz() <= first._nnz()


def _common(first: SparseTensor, second: SparseTensor) -> SparseTensor:
    _, mine, theirs = np.intersect1d(numbers_of(first), numbers_of(second), True, True)
    left = ops.index_select(first._entries, 0, wrap(mine))
    right = ops.index_select(second._entries, 0, wrap(theirs))
    places = wrap(np.ascontiguousarray(first._places._data[:, mine]))
    result = sparse_tensor(places, left * right, first._size, True)
    result._title = "MulBackward0"
    return result


@on_sparse("mul_.Tensor")
def mul_(target: Any, other: Any) -> Any:
    """In place; a dense tensor cannot become sparse."""
    if not is_sparse(target):
        raise refusal("mul_.Tensor")
    check_inplace(target, target.requires_grad)
    if _is_number(other):
        _check_factor(target, other)
        return replace(target, target._places, target._entries.mul_(other), target._nnz() < 2)  # type: ignore[attr-defined]
    found = mul(target, other)
    return replace(target, found._places, found._entries.to(target.dtype), found._coalesced)


def _check_factor(target: SparseTensor, other: Any) -> None:
    found = common_dtype([target._entries, other])
    if category(found) > category(target.dtype):
        raise RuntimeError(f"dtype of values ({found.scalar_name}) must match dtype of sparse "
                           f"tensor ({target.dtype.scalar_name})")  # fmt: skip


def _check_divisor(first: Any, divisor: Any) -> None:
    if not is_sparse(first) or not _is_number(divisor):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor "
                           f"(got shape {list(divisor.shape)} for divisor)")  # fmt: skip


@on_sparse("div.Tensor")
def div(first: Any, divisor: Any) -> Any:
    """A quotient by a number."""
    _check_divisor(first, divisor)
    return with_places(first, first._entries / divisor, "DivBackward0")


@on_sparse("div_.Tensor")
def div_(target: Any, divisor: Any) -> Any:
    """In place by a number."""
    _check_divisor(target, divisor)
    check_inplace(target, target.requires_grad)
    return replace(target, target._places, target._entries.div_(divisor), target._coalesced)


@on_sparse("pow.Tensor_Scalar")
def power(tensor: SparseTensor, exponent: Any) -> SparseTensor:
    """Every element to a power other than 0."""
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the "
                           "result tensor dense")  # fmt: skip
    tensor = coalesce(tensor)
    return with_places(tensor, tensor._entries**exponent)


@on_sparse("zero_")
def zero_(tensor: SparseTensor) -> SparseTensor:
    """Forget all entries."""
    check_inplace(tensor, tensor.requires_grad)
    places = wrap(np.empty((tensor.sparse_dim(), 0), np.int64))
    entries = tensor._entries._data
    return replace(tensor, places, wrap(np.empty((0, *entries.shape[1:]), entries.dtype)), True)
