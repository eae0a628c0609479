"""Matrix products that are added to something: `addmm`, `addmv`, `addbmm`, `baddbmm`, `addr`.

All compute `beta * input + alpha * product`; where beta is 0, input is not looked at, so that its
NaN stay out of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.promotion import promote_types
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching.memory_formats import in_order_of
from flambeau._ops.launching.precision import refuse, widen
from flambeau._ops.products import blas, examples
from flambeau._ops.products.blas import SMALL, multiply
from flambeau._ops.products.errors import c_name, multipliable_error, scalar_name
from flambeau._ops.products.matmul import (
    FLOAT32,
    FLOAT64,
    addmv_types,
    check_bmm_shapes,
    check_mm_types,
)
from flambeau._ops.table.dims import size_at
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import EXACT
from flambeau._ops.table.scalars import checked_number
from flambeau._ops.views.basic import expand
from flambeau.autograd.saved_fields import OfInput, layouts


def expanded(data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array broadcast to a shape, or torch's error of `expand`."""
    return data if data.shape == shape else expand.body(data, shape)


def factor(value: Any, numpy_dtype: Any) -> Any:
    """A factor in the type of the result, which has to hold it; integers drop its fraction."""
    return checked_number(value, numpy_dtype)[()]


def check_fitting(beta: Any, alpha: Any, numpy_dtype: Any) -> None:
    """Torch's error where the type that is computed in does not hold a factor."""
    if beta == 1 and alpha == 1:
        return
    for value in (beta, alpha):
        checked_number(value, numpy_dtype)


def wide_type(numpy_dtype: Any) -> Any:
    """The type that products of this one are summed in."""
    return FLOAT32 if numpy_dtype in dt.NUMPY_HALVES else numpy_dtype


def combine(data: np.ndarray, result: np.ndarray, beta: Any, alpha: Any) -> np.ndarray:
    """`beta * data + alpha * result` in the memory of `result`, in the type of `data`."""
    if alpha != 1:
        np.multiply(result, factor(alpha, result.dtype), out=result)
    if beta != 0:
        data_wide = widen(data)
        if beta != 1:
            data_wide = data_wide * factor(beta, result.dtype)
        np.add(result, data_wide, out=result)
    return result.astype(data.dtype, copy=False)


def scaled(grad: Any, number: Any) -> Any:
    """A gradient times the conjugate of a factor."""
    if number == 1:
        return grad
    return grad * (number.conjugate() if isinstance(number, complex) else number)


def of_input(grad: Any, beta: Any) -> Any:
    """The gradient of what the product is added to."""
    return scaled(grad, beta)


# ---- addmm


@kernel(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    between_kernels=True,
    regular=True,
    earlier=True,
    batch=examples.added_to(examples.matrices),
    factors=("mat1", "mat2"),
    inplace=True,
    out=True,
    out_type=EXACT,
    autocast="lower",
    saved_facts=layouts("mat1", "mat2"),
    backward={
        "self": of_input,
        "mat1": lambda grad, mat2, alpha: scaled(ops._times_adjoint(grad, mat2), alpha),
        "mat2": lambda grad, mat1, alpha: scaled(ops._adjoint_times(mat1, grad), alpha),
    },
    several=True,
)
def addmm(data: np.ndarray, mat1: np.ndarray, mat2: np.ndarray, beta: Any, alpha: Any) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)`: [N, K] and [K, M]; input broadcasts to [N, M].

    >>> import flambeau as torch
    >>> torch.addmm(torch.zeros(2, 2), torch.ones(2, 3), torch.ones(3, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """
    dtype = mat1.dtype
    same = mat2.dtype is dtype and data.dtype is dtype
    fits = mat1.ndim == 2 and mat2.ndim == 2 and mat1.shape[1] == mat2.shape[0]
    if not (same and fits and dtype.kind == "f"):
        _check_addmm(data, mat1, mat2)
    shape = (mat1.shape[0], mat2.shape[1])
    if not mat1.size:
        alpha = 1
    check_fitting(beta, alpha, wide_type(dtype))
    if mat1.size * shape[1] >= SMALL or dtype in dt.NUMPY_HALVES:
        plain = beta == 1 and data.shape == shape[1:]
        fused = blas.scaled_sum(data if plain else expanded(data, shape), mat1, mat2, beta, alpha)
        if fused is not None:
            return fused
    result = blas.dot(mat1, mat2) if dtype is FLOAT32 or dtype is FLOAT64 else multiply(mat1, mat2)
    if beta == 1 and alpha == 1 and result.dtype is dtype and data.ndim <= 2:
        try:
            return np.add(result, data, out=result)  # the usual case: a layer's bias
        except ValueError:
            pass  # shapes that do not fit: `expanded` says so in torch's words
    return combine(expanded(data, shape), result, beta, alpha)


def _check_addmm(data: np.ndarray, mat1: np.ndarray, mat2: np.ndarray) -> None:
    check_same_as_result(data, mat2)
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(
            "mat1 and mat2 must have the same dtype, but got "
            f"{scalar_name(mat1)} and {scalar_name(mat2)}"
        )
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise multipliable_error(mat1.shape, mat2.shape)
    check_mm_types(mat1, mat2)


@composite(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1,"
    " bool use_gelu=False) -> Tensor",
    autocast="lower",
    underived=True,
)
def addmm_activation(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any,
                     use_gelu: bool) -> Any:  # fmt: skip
    """`relu(addmm(...))`, or the exact GELU of it."""
    total = ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return ops._gelu(total) if use_gelu else ops.relu(total)


# ---- addmv


@kernel(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    earlier=True,
    batch=examples.added_to(examples.matrix_vector),
    factors=("mat", "vec"),
    inplace=True,
    out=True,
    out_type=EXACT,
    autocast="cuda=lower",
    backward={
        "self": of_input,
        "mat": lambda grad, vec, alpha: scaled(grad.unsqueeze(1) * conj(vec), alpha),
        "vec": lambda grad, mat, alpha: scaled(ops._transposed_mv(grad, conj(mat)), alpha),
    },
)
def addmv(data: np.ndarray, mat: np.ndarray, vec: np.ndarray, beta: Any, alpha: Any) -> Any:
    """`beta * input + alpha * (mat @ vec)`: [N, K] and [K]; input broadcasts to [N].

    >>> import flambeau as torch
    >>> torch.addmv(torch.ones(2), torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([4., 8.])
    """
    if mat.ndim != 2 or vec.ndim != 1 or data.ndim > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {data.ndim}, {mat.ndim}, {vec.ndim}"
        )
    rows, columns = mat.shape
    if columns != vec.size or (data.ndim == 1 and data.size not in (1, rows)):
        raise RuntimeError(
            f"size mismatch, got input ({data.size}), mat ({rows}x{columns}), vec ({vec.size})"
        )
    if not data.dtype == mat.dtype == vec.dtype:
        raise addmv_types(data, mat, vec)
    if mat.dtype.kind in "bW":
        raise refuse("addmv_impl_cpu", mat.dtype)
    if not columns:
        alpha = 1
    check_fitting(beta, alpha, data.dtype)
    return combine(expanded(data, (rows,)), np.asarray(multiply(mat, vec)), beta, alpha)


# ---- batches


@kernel(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)"
    " -> Tensor",
    regular=True,
    earlier=True,
    batch=examples.added_to(examples.matrices),
    factors=("batch1", "batch2"),
    inplace=True,
    out=True,
    out_type=EXACT,
    autocast="lower",
    backward={
        "self": of_input,
        "batch1": lambda grad, batch2, alpha: scaled(ops._times_adjoint(grad, batch2), alpha),
        "batch2": lambda grad, batch1, alpha: scaled(ops._adjoint_times(batch1, grad), alpha),
    },
    several=True,
)
def baddbmm(data: np.ndarray, batch1: np.ndarray, batch2: np.ndarray, beta: Any,
            alpha: Any) -> Any:  # fmt: skip
    """`beta * input + alpha * (batch1 @ batch2)`, each of [B, N, M].

    >>> import flambeau as torch
    >>> torch.baddbmm(torch.zeros(2, 1, 1), torch.ones(2, 1, 3), torch.ones(2, 3, 1)).shape
    torch.Size([2, 1, 1])
    """
    sizes = (size_at(batch1, 0), size_at(batch1, 1), size_at(batch2, 2))
    data = expanded(data, sizes)
    if data.dtype != batch1.dtype:
        names = [c_name(array) for array in (data, batch1, batch2)]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: "
            f"{names[2]}"
        )
    _check_batch_ranks(batch1, batch2)
    check_bmm_shapes(batch1, batch2)
    if batch1.dtype != batch2.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(batch1)} but found {scalar_name(batch2)}"
        )
    if data.dtype.kind in "bW":
        raise refuse("baddbmm", data.dtype)
    if not batch1.size:
        alpha = 1
    check_fitting(beta, alpha, wide_type(data.dtype))
    fused = blas.scaled_sum(data, batch1, batch2, beta, alpha)
    return combine(data, multiply(batch1, batch2), beta, alpha) if fused is None else fused


@kernel(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    earlier=True,
    factors=("batch1", "batch2"),
    inplace=True,
    out=True,
    autocast="lower",
    saved_facts={
        "batch1_sym_argsize_0": OfInput("batch1", 0),
        "batch1_sym_argsize_1": OfInput("batch1", 1),
        "batch2_sym_argsize_2": OfInput("batch2", 2),
    },
    backward={
        "self": of_input,
        "batch1": lambda grad, batch2, alpha: scaled(ops._times_adjoint(grad, batch2), alpha),
        "batch2": lambda grad, batch1, alpha: scaled(ops._adjoint_times(batch1, grad), alpha),
    },
)
def addbmm(data: np.ndarray, batch1: np.ndarray, batch2: np.ndarray, beta: Any,
           alpha: Any) -> Any:  # fmt: skip
    """`beta * input + alpha * sum(batch1 @ batch2)` over the batch: [N, M].

    >>> import flambeau as torch
    >>> torch.addbmm(torch.zeros(2, 2), torch.ones(3, 2, 4), torch.ones(3, 4, 2))
    tensor([[12., 12.],
            [12., 12.]])
    """
    rows, columns = size_at(batch1, 1), size_at(batch2, 2)
    data = expanded(data, (rows, columns))
    _check_addbmm(data, batch1, batch2)
    count, _, inner = batch1.shape
    if not batch1.size:
        alpha = 1
    check_fitting(beta, alpha, wide_type(data.dtype))
    left = batch1.transpose(1, 0, 2).reshape(rows, count * inner)
    return combine(data, multiply(left, batch2.reshape(count * inner, columns)), beta, alpha)


def _check_batch_ranks(batch1: np.ndarray, batch2: np.ndarray) -> None:
    if batch1.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if batch2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")


def _check_addbmm(data: np.ndarray, batch1: np.ndarray, batch2: np.ndarray) -> None:
    _check_batch_ranks(batch1, batch2)
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            "batch1 and batch2 must have same number of batches, got "
            f"{batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and "
            f"{batch2.shape[1]}x{batch2.shape[2]})"
        )
    check_same_as_result(data, batch2)
    if batch1.dtype != batch2.dtype:
        raise RuntimeError(
            "mat1 and mat2 must have the same dtype, but got "
            f"{scalar_name(batch1)} and {scalar_name(batch2)}"
        )
    check_mm_types(batch1, batch2)


def check_same_as_result(data: np.ndarray, other: np.ndarray) -> None:
    """What a product is added to must have its type."""
    if data.dtype != other.dtype:
        raise RuntimeError(
            "self and mat2 must have the same dtype, but got "
            f"{scalar_name(data)} and {scalar_name(other)}"
        )


# ---- a vector times a vector


@kernel(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    earlier=True,
    batch=examples.added_to(examples.outer),
    inplace=True,
    out=True,
    autocast="cuda=lower",
    backward={
        "self": of_input,
        "vec1": lambda grad, vec2, alpha: scaled(ops.mv(grad, conj(vec2)), alpha),
        "vec2": lambda grad, vec1, alpha: scaled(ops._transposed_mv(conj(vec1), grad), alpha),
    },
)
def addr(data: np.ndarray, vec1: np.ndarray, vec2: np.ndarray, beta: Any, alpha: Any) -> Any:
    """`beta * input + alpha * outer(vec1, vec2)`: [N] and [M]; input broadcasts to [N, M].

    >>> import flambeau as torch
    >>> torch.addr(torch.zeros(2, 3), torch.tensor([1., 2.]), torch.tensor([1., 2., 3.]))
    tensor([[1., 2., 3.],
            [2., 4., 6.]])
    """
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    first, second, third = (dt.from_numpy_dtype(array.dtype) for array in (data, vec1, vec2))
    common = promote_types(promote_types(first, second), third)
    check_factors(common, beta, alpha)
    data = expanded(data.astype(common.numpy_dtype, copy=False), (vec1.size, vec2.size))
    if common is dt.bool_:
        result = np.logical_and.outer(vec1, vec2) & bool(alpha)
        return np.logical_or(data, result) if beta else result
    check_fitting(beta, alpha, common.numpy_dtype)
    left, right = (widen(vector.astype(common.numpy_dtype)) for vector in (vec1, vec2))
    return in_order_of(combine(data, np.multiply.outer(left, right), beta, alpha), data)


def check_factors(common: dt.dtype, beta: Any, alpha: Any) -> None:
    """Factors may not be of a higher category than the tensors."""
    for name, value in (("beta", beta), ("alpha", alpha)):
        if isinstance(value, bool) and common is not dt.bool_:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if not common.is_floating_point and not common.is_complex and not isinstance(value, int):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
