"""What rows do with tensors of compressed layouts (CSR, CSC, BSR, BSC).

Functions of single elements change the entries. What combines places goes by coordinates and
comes back to the layout of the first operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import layout as lay
from flambeau._ops.sparse import arithmetic, products
from flambeau._ops.sparse.compressing import as_coo, coordinates, flat_entries, restored
from flambeau._ops.sparse.elementwise import LINEAR, NONLINEAR
from flambeau._ops.sparse.entries import coalesce, numbers_of, passed, sum_groups
from flambeau._ops.sparse.table import COMPRESSED, on_compressed, refusal
from flambeau._ops.table.dims import wrap_dim, wrap_dims
from flambeau._ops.table.namespace import get, get_inplace, ops
from flambeau._tensor.compressed import (
    BLOCKS,
    TURNED,
    CompressedTensor,
    at_places,
    compressed_tensor,
    title,
)
from flambeau._tensor.sparse import SparseTensor, alias, sparse_tensor
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import bump, check_inplace

BACKEND = "SparseCsrCPU"


def is_compressed(value: Any) -> bool:
    """Whether a value is a tensor of a compressed layout."""
    return isinstance(value, CompressedTensor)


def replace(target: CompressedTensor, found: CompressedTensor) -> CompressedTensor:
    """Let a tensor have the places and entries of another one, in place."""
    target._pointers, target._others = found._pointers, found._others
    target._entries, target._title = found._entries, None
    bump(target)
    return target


# ---- functions of single elements


def _function(name: str) -> Callable[..., CompressedTensor]:
    def on_entries(tensor: CompressedTensor, *rest: Any) -> CompressedTensor:
        return at_places(tensor, get(name)(tensor._entries, *rest))

    return on_entries


def _inplace(name: str) -> Callable[..., CompressedTensor]:
    def on_entries(tensor: CompressedTensor, *rest: Any) -> CompressedTensor:
        check_inplace(tensor, tensor.requires_grad)
        get_inplace(name)(tensor._entries, *rest)
        bump(tensor)
        return tensor

    return on_entries


for _name in (*LINEAR, *NONLINEAR, "angle"):
    if _name not in ("square", "nan_to_num"):  # which PyTorch has not for these layouts
        COMPRESSED[_name] = _function(_name)
        COMPRESSED[f"{_name}_"] = _inplace(_name)
COMPRESSED["_conj"] = COMPRESSED["_conj_physical"] = _function("_conj_physical")


@on_compressed("clone")
def clone(tensor: CompressedTensor, memory_format: Any = None) -> CompressedTensor:
    """A copy of all parts."""
    parts = ops.clone(tensor._pointers), ops.clone(tensor._others), ops.clone(tensor._entries)
    result = compressed_tensor(*parts, tensor._size, tensor._layout)
    result._title = "CloneBackward0"
    return result


@on_compressed("_to_copy")
def to_copy(tensor: CompressedTensor, dtype: Any = None, memory_format: Any = None,
            ) -> CompressedTensor:  # fmt: skip
    """A copy in another type."""
    return at_places(tensor, ops._to_copy(tensor._entries, dtype=dtype or tensor.dtype),
                     "ToCopyBackward0")  # fmt: skip


@on_compressed("zero_")
def zero_(tensor: CompressedTensor) -> CompressedTensor:
    """Without entries from now on."""
    check_inplace(tensor, tensor.requires_grad)
    found = compressed_tensor(ops.zeros_like(tensor._pointers), tensor._others[..., :0],
                              alias(tensor._entries).narrow(tensor.batch_dims(), 0, 0),  # type: ignore[attr-defined]
                              tensor._size, tensor._layout)  # fmt: skip
    return replace(tensor, found)


# ---- sums and products of elements


@on_compressed("add.Tensor")
def add(first: Any, second: Any) -> Any:
    """compressed + compressed keeps the layout of the first; dense + compressed is dense."""
    if is_compressed(first) and is_compressed(second):
        if first._layout is second._layout and _same_places(first, second):
            return at_places(first, first._entries + second._entries, "AddBackward0")  # type: ignore[operator]
        result = restored(arithmetic.add(as_coo(first), as_coo(second)), first)
        result._title = "AddBackward0"
        return result
    for one, other in ((first, second), (second, first)):
        if is_compressed(one) and isinstance(other, Tensor) and tuple(other.shape) == one._size:
            return one.to_dense() + other
    other = second if is_compressed(first) else first
    shapes = [list(getattr(t, "shape", ())) for t in (first, second)]
    raise RuntimeError("add: expected 'self' and 'other' to have same size, but self has size "
                       f"{shapes[1]} while other has size {shapes[0]} (FYI: op2-sparse addition "
                       "does not currently support broadcasting)")  # fmt: skip


@on_compressed("add_.Tensor")
def add_(target: Any, other: Any) -> Any:
    """In place; a dense tensor stays dense."""
    if not is_compressed(target):
        return target.add_(other.to_dense())
    check_inplace(target, target.requires_grad)
    return replace(target, add(target, other))


def _same_places(first: CompressedTensor, second: CompressedTensor) -> bool:
    pairs = ((first._pointers, second._pointers), (first._others, second._others))
    return first._size == second._size and all(
        a._data is b._data or np.array_equal(a._data, b._data) for a, b in pairs
    )


@on_compressed("mul.Tensor")
def mul(first: Any, second: Any) -> Any:
    """A product with a number, a dense tensor of the same shape, or a compressed one."""
    if not is_compressed(first):
        first, second = second, first
    if arithmetic._is_number(second):
        return at_places(first, first._entries * second, "MulBackward0")
    if is_compressed(second):
        if first._layout is second._layout and _same_places(first, second):
            return at_places(first, first._entries * second._entries, "MulBackward0")
        found = arithmetic.mul(coalesce(as_coo(first)), coalesce(as_coo(second)))
        result = restored(found, first)
        result._title = "MulBackward0"
        return result
    return at_places(first, first._entries * read_at(second, first)._entries, "MulBackward0")


@on_compressed("mul_.Tensor")
def mul_(target: Any, other: Any) -> Any:
    """In place; a dense tensor cannot become sparse."""
    if not is_compressed(target):
        raise refusal("mul_.Tensor", BACKEND)
    check_inplace(target, target.requires_grad)
    return replace(target, mul(target, other))


def read_at(dense: Any, mask: CompressedTensor) -> CompressedTensor:
    """The values of a dense tensor at the places of a mask, in the mask's layout."""
    if tuple(dense.shape) != tuple(mask._size):
        raise RuntimeError("sparse_mask(): operands have incompatible sizes; self has size "
                           f"{list(dense.shape)} but mask has size {list(mask._size)}")  # fmt: skip
    coo = as_coo(mask)
    rows = dense.reshape(-1, *mask._size[coo.sparse_dim() :])
    entries = ops.index_select(rows, 0, wrap(numbers_of(coo)))
    return at_places(mask, entries.reshape(tuple(mask._entries.shape)))


# ---- sums


@on_compressed("sum.dim_IntList")
def total(tensor: CompressedTensor, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum of all elements, dense; over dims of a matrix, with `keepdim`, in CSR."""
    dims = wrap_dims(dim, tensor.ndim)
    if not keepdim:
        if dim is None or len(dims) == tensor.ndim:
            return ops.sum(tensor._entries, dtype=dtype)
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if tensor._layout is not lay.sparse_csr or tensor.ndim != 2:
        raise refusal("sum.dim_IntList", BACKEND)
    places, size = coordinates(tensor), tuple(tensor._size)
    for gone in dims:
        places[gone], size = 0, (*size[:gone], 1, *size[gone + 1 :])
    entries = tensor._entries if dtype is None else tensor._entries.to(dtype)  # type: ignore[attr-defined]
    coo = coalesce(sparse_tensor(wrap(places), entries, size, False))
    result = restored(coo, tensor)
    result._title = "SumBackward1"
    return result


# ---- products of matrices


@on_compressed("mm")
def mm(left: Any, right: Any) -> Any:
    """[N, K] times [K, M]: dense if one is dense, else in the layout of the first."""
    if not (is_compressed(left) and is_compressed(right)):
        for one, other in ((left, right), (right, left)):
            if is_compressed(one) and isinstance(other, SparseTensor):
                kinds = title(left.layout), title(right.layout)
                raise RuntimeError("addmm: computation on CPU is not implemented for "
                                   f"{title(one._layout)} + {kinds[0]} @ {kinds[1]}")  # fmt: skip
        return products.mm(*(as_coo(t) if is_compressed(t) else t for t in (left, right)))
    return restored(products.mm(as_coo(left), as_coo(right)), left)


@on_compressed("matmul")
def matmul(left: Any, right: Any) -> Any:
    """A product of matrices, or of a matrix and a vector."""
    if left.ndim == right.ndim == 2:
        return mm(left, right)
    if is_compressed(left) and left.ndim == 2 and right.ndim == 1:
        return mv(left, right)
    raise RuntimeError(f"expand is unsupported for {title(lay.sparse_csr)} tensors")


@on_compressed("mv")
def mv(matrix: Any, vector: Any) -> Any:
    """[N, K] times [K]: dense [N]."""
    if not is_compressed(matrix) or not isinstance(vector, Tensor) or is_compressed(vector):
        raise refusal("mv", BACKEND)
    return products.mv(as_coo(matrix), vector)


@on_compressed("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias` with a compressed weight [N, K]."""
    if not is_compressed(weight) or is_compressed(input):
        raise refusal("linear", BACKEND)
    rows = input.reshape(-1, input.shape[-1])
    result = mm(weight, rows.t()).t().reshape(*input.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias


@on_compressed("addmm")
def addmm(addend: Any, left: Any, right: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * addend + alpha * (left @ right)`."""
    result = mm(left, right) * alpha
    return result if beta == 0 else addend * beta + result


def sampled_addmm(input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> CompressedTensor:
    """`alpha * (mat1 @ mat2) + beta * input` at the places of `input` [.., N, M]: each of them is
    one product of a row of `mat1` [.., N, K] and a column of `mat2` [.., K, M]."""
    *lead, rows, columns = coordinates(input)
    matrix = np.ravel_multi_index(tuple(lead), input._size[:-2]) if lead else 0
    left = mat1.reshape(-1, mat1.shape[-1])
    right = mat2.transpose(-1, -2).reshape(-1, mat2.shape[-2])
    first = ops.index_select(left, 0, wrap(np.asarray(matrix * input._size[-2] + rows)))
    second = ops.index_select(right, 0, wrap(np.asarray(matrix * input._size[-1] + columns)))
    found = (first * second).sum(-1) * alpha
    if beta != 0:
        found = found + flat_entries(input) * beta
    return at_places(input, found.reshape(tuple(input._entries.shape)))


def reduced_mm(matrix: CompressedTensor, dense: Any, reduce: str) -> Any:
    """The product of CSR [N, K] and a dense [K, M], with the products of a row combined by `sum`,
    `mean`, `amax` or `amin`; 0 for rows without entries."""
    rows, columns = coordinates(matrix)
    parts = ops.index_select(dense, 0, wrap(columns)) * matrix._entries.unsqueeze(1)  # type: ignore[attr-defined]
    if reduce in ("sum", "mean"):
        total = sum_groups(parts, rows, matrix._size[0])
        if reduce == "sum":
            return total
        counts = np.bincount(rows, minlength=matrix._size[0]).clip(1)[:, None]
        return total / wrap(counts.astype(matrix._entries._data.dtype))
    zeros = ops.new_zeros(parts, (matrix._size[0], dense.shape[1]))
    index = wrap(np.broadcast_to(rows[:, None], parts.shape))
    return ops.scatter_reduce(zeros, 0, index, parts, reduce, include_self=False)


# ---- shapes


@on_compressed("transpose.int")
def transpose(tensor: CompressedTensor, dim0: int, dim1: int) -> CompressedTensor:
    """The two dims of the matrix exchanged: rows become columns, and no entry moves."""
    dims = sorted((wrap_dim(dim0, tensor.ndim), wrap_dim(dim1, tensor.ndim)))
    batch = tensor.batch_dims()
    if dims[0] == dims[1]:
        return at_places(tensor, passed(tensor))
    if dims != [batch, batch + 1]:
        raise RuntimeError("transpose(): can only transpose the two dims of the matrix of a "
                           "tensor of compressed layout")  # fmt: skip
    entries = passed(tensor)
    if tensor._layout in BLOCKS:
        entries = entries.transpose(batch + 1, batch + 2)
    size = [*tensor._size[:batch], tensor._size[batch + 1], tensor._size[batch],
            *tensor._size[batch + 2 :]]  # fmt: skip
    parts = alias(tensor._pointers), alias(tensor._others)
    result = compressed_tensor(*parts, entries, size, TURNED[tensor._layout])
    result._title = "TransposeBackward0"
    return result


@on_compressed("t")
def t(tensor: CompressedTensor) -> CompressedTensor:
    """The transpose of a matrix."""
    if tensor.ndim != 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {tensor.ndim}D")
    result = transpose(tensor, 0, 1)
    result._title = "TBackward0"
    return result


@on_compressed("select.int")
def select(tensor: CompressedTensor, dim: int, index: int) -> Any:
    """One row or column of a matrix, in coordinates."""
    return ops.select(coalesce(as_coo(tensor)), dim, index)


@on_compressed("unbind.int")
def unbind(tensor: CompressedTensor, dim: int = 0) -> tuple[Any, ...]:
    """The rows or columns of a matrix, each in coordinates."""
    return ops.unbind(coalesce(as_coo(tensor)), dim)  # type: ignore[no-any-return]
