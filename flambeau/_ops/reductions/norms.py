"""Norms of vectors and matrices: `norm`, `dist`, `linalg.vector_norm`, `linalg.matrix_norm`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.parts import imaginary_part, part_type, real_part
from flambeau._core.promotion import combine, promote_types
from flambeau._core.settings import warn_once
from flambeau._ops.reductions.adding import LONG, add_up
from flambeau._ops.reductions.extrema import equal_to
from flambeau._ops.reductions.sums import compiled, finished, restore_dims, working_array, write
from flambeau._ops.table.dims import wrap_dim, wrap_dims
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel, reduction
from flambeau._ops.table.outputs import EXACT, NORM_TYPE
from flambeau._ops.table.scalars import real
from flambeau._tensor.tensor import Tensor

INFINITY = float("inf")


def _order_text(order: float) -> str:
    if math.isinf(order):
        return "inf" if order > 0 else "-inf"
    return f"{order:g}"


def _check_identity(data: np.ndarray, order: float, dim: Any) -> None:
    """Orders that take a smallest or largest element need at least one; `data` has none."""
    if 0 <= order < INFINITY:
        return
    text = _order_text(order)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        raise RuntimeError(f"linalg.vector_norm cannot compute the {text} norm on an empty tensor "
                           "because the operation does not have an identity")  # fmt: skip
    for axis in wrap_dims(dim, data.ndim):
        if data.shape[axis] == 0:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {text} norm on the dimension {axis}because "
                "this dimension is empty and the operation does not have an identity"
            )


def check_float(tensor_dtype: dt.dtype, name: str) -> None:
    """Norms are of floats and complex numbers."""
    if not (tensor_dtype.is_floating_point or tensor_dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                           f"{tensor_dtype.scalar_name}")  # fmt: skip


def _check_dtype(own: dt.dtype, dtype: dt.dtype | None, name: str) -> None:
    if dtype is None:
        return
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got "
                           f"{dtype.scalar_name}")  # fmt: skip
    if dtype.is_complex != own.is_complex:
        kinds = ("complex", "complex") if own.is_complex else ("real", "real")
        raise RuntimeError(f"{name}: dtype should be {kinds[0]} for {kinds[1]} inputs, but got "
                           f"{dtype.scalar_name}")  # fmt: skip
    if promote_types(own, dtype) is not dtype:
        raise RuntimeError(f"{name}: the dtype of the input ({own.scalar_name}) should be "
                           f"convertible without narrowing to the specified dtype "
                           f"({dtype.scalar_name})")  # fmt: skip


def _is_single(data: np.ndarray, axes: tuple[int, ...], order: float) -> bool:
    return order != 0 and all(data.shape[axis] == 1 for axis in axes)


def _norm(data: np.ndarray, order: float, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The vector norm of an array in its working type. That of a single number is its absolute
    value, without its powers; order 0 counts."""
    if _is_single(data, axes, order):
        parts = (real_part(data), imaginary_part(data)) if data.dtype.kind in "cW" else None
        sizes = np.abs(data) if parts is None else np.hypot(*parts)
        return np.add.reduce(sizes, axes, keepdims=keepdim)  # type: ignore[call-overload]
    if order == 2 and data.dtype.kind in "cW":
        squares = real_part(data) ** 2 + imaginary_part(data) ** 2
        return np.sqrt(add_up(squares, axes, squares.dtype, keepdim))
    if order == 2:
        if not keepdim and len(axes) == data.ndim and data.size <= LONG and data.flags.c_contiguous:
            flat = data.reshape(-1)
            return np.sqrt(flat.dot(flat))
        return np.sqrt(add_up(data * data, axes, data.dtype, keepdim))
    size = np.abs(data)
    if order == 0:
        return np.add.reduce(size != 0, axes, size.dtype, keepdims=keepdim)  # type: ignore[call-overload]
    if order == 1:
        return add_up(size, axes, size.dtype, keepdim)
    if math.isinf(order):
        ufunc = np.maximum if order > 0 else np.minimum
        return ufunc.reduce(size, axes, keepdims=keepdim)  # type: ignore[call-overload]
    power = size.dtype.type(order)
    return add_up(size**power, axes, size.dtype, keepdim) ** size.dtype.type(1 / order)


def _where_zero(tensor: Any, condition: Any) -> Any:
    return ops.masked_fill(tensor, condition == 0, 0)


def norm_backward(grad: Any, self: Any, ord: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of (sum |x|^p)^(1/p): sgn(x) |x|^(p-1) / norm^(p-1), 0 where that is 0/0."""
    order = float(ord)
    if order == 0:
        return None  # a count does not depend on the numbers
    if dim is not None:
        grad = restore_dims(grad, self._data.ndim, dim, keepdim)
        result = restore_dims(result, self._data.ndim, dim, keepdim)
    if order == 1:
        return ops.sgn(self) * grad
    if order == 2:
        return grad * _where_zero(self / result, result)
    if math.isinf(order):
        mask = _extreme_places(ops.abs(self), order, dim)
        return ops.sgn(self) * (grad * mask / ops.sum(mask, dim, True))
    if order < 1:
        scaled = _where_zero(ops.sgn(self) * ops.pow(ops.abs(self), order - 1), self)
        return scaled * grad * ops.pow(result, 1 - order)
    # By infinity, not a masked quotient: forward mode turns this round and must not divide by 0.
    scale = grad / ops.masked_fill(ops.pow(result, order - 1), result == 0, math.inf)
    if order < 2:
        return _where_zero(ops.sgn(self) * ops.pow(ops.abs(self), order - 1), self) * scale
    return self * ops.pow(ops.abs(self), order - 2) * scale


def _extreme_places(sizes: Any, order: float, dim: Any) -> Any:
    """Where the largest or smallest of some sizes is. The norm itself may be another number: of
    complex numbers, it is rounded otherwise or of a wider type."""
    extreme = ops.amax if order > 0 else ops.amin
    return equal_to(sizes, extreme(sizes.detach(), () if dim is None else dim, True))


@reduction(
    "vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    python_names={"self": "x"},
    namespace="linalg",
    method=False,
    out_type=EXACT,
    node="LinalgVectorNormBackward0",
    autocast="cuda=float32_or_dtype",
    backward={
        "self": norm_backward,
    },
)
def vector_norm(data: np.ndarray, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    """(sum |x|**ord)**(1/ord) over all dims, or over those given; inf and -inf take the largest and
    smallest absolute value, 0 counts elements that are not 0.

    >>> import flambeau as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, -4.0]), ord=1)
    tensor(7.)
    """
    if data.dtype.kind not in "fV" or dtype is not None:
        own = dt.from_numpy_dtype(data.dtype)
        check_float(own, "linalg.vector_norm")
        _check_dtype(own, dtype, "linalg.vector_norm")
    order = _order(ord)
    if not data.size:
        _check_identity(data, order, dim)
    result = data.dtype if dtype is None else dtype.numpy_dtype
    axes = wrap_dims(dim, data.ndim)
    fused = data.dtype == result and not _is_single(data, axes, order)
    kernels = compiled(data, axes) if fused else None
    values = None if kernels is None else kernels.norm(data, axes, keepdim, order)
    if values is None:
        working = working_array(data if data.dtype == result else data.astype(result))
        values = _norm(working, order, axes, keepdim)
    return finished(values, result if result.kind in "fV" else part_type(result))


def _order(given: Any) -> float:
    if isinstance(given, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm."
                           )  # fmt: skip
    return real(given)


# ---- matrices


def _matrix_dims(tensor: Any, ord: Any, dim: Any) -> tuple[int, int]:
    ndim = tensor._data.ndim
    if ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    check_float(tensor.dtype, "linalg.matrix_norm")
    if tensor._data.dtype in dt.NUMPY_HALVES and ord in ("nuc", 2, -2):
        raise RuntimeError("linalg.matrix_norm: Low precision dtypes not supported. Got "
                           f"{tensor.dtype.scalar_name}")  # fmt: skip
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        listed = " ".join(str(d) for d in dims)
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {listed}")
    first, second = wrap_dim(dims[0], ndim), wrap_dim(dims[1], ndim)
    if first == second:
        raise RuntimeError(
            f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})"
        )
    return first, second


@composite(
    'matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], '
    "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    out_writer="copy_",
    autocast="cuda=float32_or_dtype",
    namespace="linalg",
    method=False,
    out_type=NORM_TYPE,
)
def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
                dtype: Any = None, out: Any = None) -> Any:  # fmt: skip
    """The norm of matrices: "fro", "nuc", 2, -2, 1, -1, inf or -inf.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    first, second = _matrix_dims(A, ord, dim)
    if not isinstance(ord, str) and abs(float(ord)) not in (1.0, 2.0, INFINITY):
        raise RuntimeError(f"linalg.matrix_norm: Order {_order_text(float(ord))} not supported.")
    dtype = dt.as_dtype(dtype)
    _check_dtype(A.dtype, dtype, "linalg.matrix_norm")
    return write(matrix_norm, out, _matrix_norm(A, ord, first, second, keepdim, dtype))


def _matrix_norm(tensor: Any, order: Any, first: int, second: int, keepdim: bool,
                 dtype: Any) -> Any:  # fmt: skip
    if order == "fro":
        return ops.linalg.vector_norm(tensor, 2, (first, second), keepdim, dtype=dtype)
    if dtype is not None:
        tensor = tensor.to(dtype)
    if order == "nuc" or abs(float(order)) == 2:
        return _singular_norm(tensor, order, first, second, keepdim)
    order = float(order)
    if abs(order) == INFINITY:
        first, second = second, first
    sums = ops.linalg.vector_norm(tensor, 1, first, True)
    result = _extreme(sums, order, second)
    return result if keepdim else result.squeeze((first, second))


def _extreme(values: Any, order: float, dim: int) -> Any:
    """The largest, 0 where there is none, or the smallest along a dim, which stays."""
    if order > 0 and not values._data.shape[dim]:
        return ops.sum(values.detach(), dim, True)
    return (ops.amax if order > 0 else ops.amin)(values, dim, True)


def _singular_norm(tensor: Any, order: Any, first: int, second: int, keepdim: bool) -> Any:
    """Norms made from the singular values: their sum, the largest, the smallest."""
    ndim = tensor._data.ndim
    rest = [d for d in range(ndim) if d not in (first, second)]
    values = ops.linalg.svdvals(tensor.permute([*rest, first, second]))
    if order == "nuc":
        result = values.sum(-1)
    else:
        result = _extreme(values, float(order), -1).squeeze(-1)
    if keepdim:
        for d in sorted((first, second)):
            result = result.unsqueeze(d)
    return result


@composite(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    out_writer="copy_",
    namespace="linalg",
    public="norm",
    method=False,
    out_type=NORM_TYPE,
)
def linalg_norm(input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *,
                dtype: Any = None, out: Any = None) -> Any:  # fmt: skip
    """The matrix norm of order `ord` for two dims, the vector norm for one.

    Without `ord` the vector norm of order 2 over `dim`, or over everything.

    >>> import flambeau as torch
    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                           f"{list(dims)}")  # fmt: skip
    ndim = input._data.ndim
    if ord is not None and dims is None and ndim not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D "
                           f"or 2D. Got {ndim}D.")  # fmt: skip
    of_matrix = len(dims) == 2 if dims is not None else ndim == 2
    if isinstance(ord, str) or (ord is not None and of_matrix):
        dims = (-2, -1) if dims is None else dims
        result = ops.linalg.matrix_norm(input, ord, dims, keepdim, dtype=dtype)
    else:
        order = 2.0 if ord is None else ord
        result = ops.linalg.vector_norm(input, order, dims, keepdim, dtype=dtype)
    return write(linalg_norm, out, result)


def _deprecated(name: str, instead: str) -> str:
    return (f"at::{name} is deprecated and it is just left for JIT compatibility. It will be "
            f"removed in a future PyTorch release. Please use `{instead}` instead")  # fmt: skip


@composite("frobenius_norm.dim(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
           out_writer="norm", autocast="cuda=float32", method=False, out_type=EXACT)  # fmt: skip
def frobenius_norm(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """The root of the sum of squares over up to two dims, or over everything.

    >>> import flambeau as torch
    >>> torch.linalg.vector_norm(torch.tensor([[3., 4.]]))  # the way of today
    tensor(5.)
    """
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions "
                           "instead.")  # fmt: skip
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{input.dtype.scalar_name} instead.")  # fmt: skip
    warn_once(_deprecated("frobenius_norm", "linalg.vector_norm(A, 2., dim, keepdim)"))
    return write(frobenius_norm, out, ops._norm(input, 2, dims or None, keepdim))


@composite("nuclear_norm.dim(Tensor self, int[2]? dim=None, bool keepdim=False) -> Tensor",
           out_writer="copy_", autocast="cuda=float32", method=False,
           out_type=NORM_TYPE.replace("{name}", "matrix_norm"), several=True)  # fmt: skip
def nuclear_norm(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The sum of the singular values of matrices, which lie in two dims: the last, by default.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_norm(torch.tensor([[3., 0.], [0., 4.]]), "nuc")  # the way of today
    tensor(7.)
    """
    if isinstance(dim, bool):  # the form without dims
        dim, keepdim = None, dim
    elif isinstance(dim, int):
        dim = (dim, dim)
    dims = (-2, -1) if dim is None else tuple(dim)
    warn_once(_deprecated("nuclear_norm", "linalg.matrix_norm(A, 'nuc', dim, keepdim)"))
    return write(nuclear_norm, out, ops.linalg.matrix_norm(input, "nuc", dims, keepdim))


# ---- norm and dist


@reduction(
    "_norm(Tensor self, Scalar ord, int[1]? dim=None, bool keepdim=False) -> Tensor",
    method=False,
    function=False,
    out=False,
    node="NormBackward1",
    node_whole="NormBackward0",
    saved_names={"ord": "p"},
    autocast="cuda=float32_or_dtype",
    backward={"self": norm_backward},
)
def old_norm(data: np.ndarray, ord: Any, dim: Any, keepdim: bool) -> np.ndarray:
    """The vector norm as composites of older days take it."""
    return vector_norm.body(data, ord, dim, keepdim, None)  # type: ignore[no-any-return]


@composite(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, "
    "ScalarType dtype) -> Tensor",
    takes={1: (str,)},
    out_writer="linalg_vector_norm",
    out_type=EXACT,
    program=True,
    choices={"p": ("str", "Optional[number]"), "dim": ("Optional[List[int]]", "Optional[int]")},
)
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False,
         out: Tensor | None = None, dtype: dt.dtype | None = None) -> Any:  # fmt: skip
    """The vector norm (2 unless `p` says otherwise) of everything or over dims; "nuc" is the
    matrix norm of that name.

    >>> import flambeau as torch
    >>> torch.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    dims: list[int] | None = None
    if dim is not None:
        if isinstance(dim, int):
            dims = [dim]
        else:
            dims = dim
    if isinstance(p, str):
        if p == "fro" and (dims is None or len(dims) <= 2):
            if out is None:
                return ops.linalg.vector_norm(input, 2, dims, keepdim, dtype=dtype)
            return ops.linalg.vector_norm(input, 2, dims, keepdim, dtype=dtype, out=out)
        if dims is None:
            dims = list(range(input.dim()))
        if out is None:
            return ops.linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype)
        return ops.linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    else:  # noqa: RET505 - a program takes one branch by the type of `p`
        order = p if p is not None else 2
        if out is None:
            return ops.linalg.vector_norm(input, order, dims, keepdim, dtype=dtype)
        return ops.linalg.vector_norm(input, order, dims, keepdim, dtype=dtype, out=out)


def _dist_backward(grad: Any, self: Any, other: Any, p: Any, result: Any) -> Any:
    gap = self - other
    found = norm_backward(grad, gap, p, result, None, False)
    return ops.zeros_like(gap) if found is None else found


@kernel(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    autocast="cuda=float32",
    backward={
        "self": _dist_backward,
        "other": lambda grad, self, other, p, result: -_dist_backward(grad, self, other, p, result),
    },
)
def dist(data: np.ndarray, other: np.ndarray, p: Any) -> np.ndarray:
    """The p-norm of the difference, broadcasting.

    >>> import flambeau as torch
    >>> torch.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    difference = working_array(data) - working_array(other)
    if difference.dtype.kind in "biu":
        name = dt.from_numpy_dtype(difference.dtype).scalar_name
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{name} instead.")  # fmt: skip
    values = _norm(difference, _order(p), tuple(range(difference.ndim)), False)
    return finished(values, _joined_type(data, other).to_real().numpy_dtype)


def _joined_type(first: np.ndarray, second: np.ndarray) -> dt.dtype:
    """The type that two arrays give together; one without dims counts less."""
    types = [dt.from_numpy_dtype(array.dtype) for array in (first, second)]
    if bool(first.ndim) == bool(second.ndim):
        return promote_types(*types)
    whole, single = types if first.ndim else reversed(types)
    return combine(whole, single, None)
