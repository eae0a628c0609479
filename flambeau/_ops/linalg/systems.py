"""Square systems: inverses, solutions, triangular and Cholesky factors.

The numbers come from `_ops/linalg/by_name.py`. Gradients are the published adjoints (Giles, An
extended collection of matrix derivative results, 2008; Murray, Differentiation of the Cholesky
decomposition, 2016), written for complex matrices. Throughout, G is the gradient of the result X.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.settings import warn_once
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.linalg import by_name as kernels
from flambeau._ops.linalg.checks import (
    check_kernel,
    check_square,
    is_vector,
    raise_first_failure,
)
from flambeau._ops.linalg.cholesky import _NOT_POSITIVE
from flambeau._ops.linalg.lu import _NOT_INVERTIBLE
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.dispatch import result_type
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import EXACT, castable
from flambeau._runtime import blas_threads  # noqa: F401  # those of LAPACK follow ours

SINGULAR = "The solver failed because the input matrix is singular."


# ---- shared by the modules of linear algebra


def fresh(array: np.ndarray) -> np.ndarray:
    """The array in memory of its own, row-major."""
    array = np.asarray(array)
    owned = array.base is None and array.flags.c_contiguous and array.flags.writeable
    return array if owned else np.array(array, order="C")


def fresh_all(arrays: Any) -> tuple[np.ndarray, ...]:
    """Several results, each in memory of its own."""
    return tuple([fresh(array) for array in arrays])


def column_major(array: np.ndarray) -> np.ndarray:
    """Matrices in memory of their own, column after column, as LAPACK leaves them.

    A batch of vectors counts as one matrix here, as in PyTorch; a vector stays as it is.
    """
    array = np.asarray(array)
    if array.ndim < 2:
        return fresh(array)
    return np.array(array.swapaxes(-2, -1), order="C").swapaxes(-2, -1)


def column_major_all(arrays: Any) -> tuple[np.ndarray, ...]:
    """The first of several results column-major, the others row-major."""
    first, *others = arrays
    return (column_major(first), *fresh_all(others))


def adjoint(tensor: Any) -> Any:
    """The conjugate transpose of matrices."""
    return conj(tensor).transpose(-2, -1)


def times_adjoint(left: Any, right: Any) -> Any:
    """`left @ right.mH`."""
    return ops._times_adjoint(left, right)


def adjoint_times(left: Any, right: Any) -> Any:
    """`left.mH @ right`."""
    return ops._adjoint_times(left, right)


def check_info(info: Any, name: str, sentence: str, error: Any = kernels.LinAlgError) -> None:
    """Raise for the first matrix whose factorization broke down."""
    raise_first_failure(info._data, name, sentence, error)


def named(row: Any, *values: Any) -> Any:
    """Several results of a composite as torch's named tuple."""
    return result_type(row)(values)


def diagonal_of(tensor: Any) -> Any:
    """The diagonals of matrices."""
    return ops.diagonal(tensor, 0, -2, -1)


def expanded(numbers: Any) -> Any:
    """One number a matrix, as matrices of size 1 x 1."""
    return numbers.unsqueeze(-1).unsqueeze(-1)


def padded(tensor: Any, shape: Any) -> Any:
    """Zeros of a shape with a tensor in its upper left corner."""
    rows = shape[-2] - tensor._data.shape[-2]
    columns = shape[-1] - tensor._data.shape[-1]
    if rows:
        zeros = ops.new_zeros(tensor, (*shape[:-2], rows, tensor._data.shape[-1]))
        tensor = ops.cat([tensor, zeros], -2)
    if columns:
        zeros = ops.new_zeros(tensor, (*shape[:-1], columns))
        tensor = ops.cat([tensor, zeros], -1)
    return tensor


# ---- inverses


@kernel(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    batch=(2,),
    autocast="cpu=float32",
    namespace="linalg",
    public="inv_ex",
    out=True,
    nondifferentiable=("info",),
    backward={
        # -X^H G X^H
        "A": lambda grad, inverse: -adjoint_times(inverse, times_adjoint(grad, inverse)),
    },
)
def inv_ex(a: np.ndarray, check_errors: bool) -> tuple[np.ndarray, ...]:
    """(inverse, info): info is not 0 where a matrix is singular.

    >>> import flambeau as torch
    >>> torch.linalg.inv_ex(torch.tensor([[2., 0.], [0., 0.]])).info
    tensor(2, dtype=torch.int32)
    """
    inverse, info = kernels.inv_ex(a)
    if check_errors:
        raise_first_failure(info, "linalg.inv_ex", _NOT_INVERTIBLE)
    return column_major(inverse), np.asarray(info)


def _inverse(tensor: Any, name: str) -> Any:
    inverse, info = ops.linalg.inv_ex(tensor)
    check_info(info, name, _NOT_INVERTIBLE)
    return inverse


@composite(
    "linalg_inv(Tensor A) -> Tensor",
    out_writer="linalg_inv_ex",
    autocast="cpu=float32",
    namespace="linalg",
    public="inv",
    out_type=EXACT,
)
def inv(A: Any, *, out: Any = None) -> Any:
    """The inverse of square matrices.

    >>> import flambeau as torch
    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return write(inv, out, _inverse(A, "linalg.inv"))


@composite(
    "inverse(Tensor self) -> Tensor",
    out_writer="linalg_inv_ex",
    autocast="cpu=float32",
    out_type=EXACT,
)
def inverse(input: Any, *, out: Any = None) -> Any:
    """The inverse of square matrices: `linalg.inv`.

    >>> import flambeau as torch
    >>> torch.inverse(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return write(inverse, out, _inverse(input, "linalg.inv"))


# ---- solutions


def _solve_backward(grad: Any, A: Any, B: Any, result: Any, left: bool, wanted: Any) -> Any:
    """gB = A^-H G; gA = -gB X^H, or -X^H gB for X A = B (Giles 2008, 2.3.1)."""
    vector = is_vector(A._data, B._data)
    if vector:
        grad, result = grad.unsqueeze(-1), result.unsqueeze(-1)
    # Where the pass is recorded, a matrix without an inverse is an error.
    if modes.grad.enabled:
        of_b = ops.linalg.solve(adjoint(A), grad, left=left)
    else:
        of_b = ops.linalg.solve_ex(adjoint(A), grad, left=left)[0]
    of_a = None
    if wanted[0]:
        of_a = -(times_adjoint(of_b, result) if left else adjoint_times(result, of_b))
    return of_a, of_b.squeeze(-1) if vector else of_b


@kernel(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)"
    " -> (Tensor result, Tensor info)",
    namespace="linalg",
    public="solve_ex",
    out=True,
    nondifferentiable=("info",),
    backward={("A", "B"): _solve_backward},
)
def solve_ex(a: np.ndarray, b: np.ndarray, left: bool, check_errors: bool) -> Any:
    """(X, info) with A X = B, or X A = B where `left` is False.

    Shapes: A (*, n, n), B and X (*, n, k), or (*, n) for single vectors; info (*).

    >>> import flambeau as torch
    >>> torch.linalg.solve_ex(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 8.]))[0]
    tensor([1., 2.])
    """
    result, info = kernels.solve_ex(a, b, left=left)
    if check_errors:
        raise_first_failure(info, "torch.linalg.solve_ex", SINGULAR)
    return column_major(result) if left else fresh(result), np.asarray(info)


@composite("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", bare=True,
           out_writer="_linalg_solve_ex", autocast="cpu=float32", namespace="linalg",
           public="solve", out_type=EXACT)  # fmt: skip
def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """X with A X = B: A [*, N, N], B [*, N, K], or [*, N] for vectors; batches broadcast.

    >>> import flambeau as torch
    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    result, info = ops.linalg.solve_ex(A, B, left=left)
    check_info(info, "torch.linalg.solve", SINGULAR)
    return write(solve, out, result)


def _triangle(tensor: Any, upper: bool, unit: bool) -> Any:
    """The triangle that a solver reads, without the diagonal if that counts as ones."""
    return ops.triu(tensor, int(unit)) if upper else ops.tril(tensor, -int(unit))


def _triangular_backward(grad: Any, A: Any, result: Any, upper: bool, left: bool,
                         unitriangular: bool, wanted: Any) -> Any:  # fmt: skip
    of_b = ops.linalg.solve_triangular(
        adjoint(A), grad, upper=not upper, left=left, unitriangular=unitriangular
    )
    if not wanted[0]:
        return None, of_b
    of_a = -(times_adjoint(of_b, result) if left else adjoint_times(result, of_b))
    return _triangle(of_a, upper, unitriangular), of_b


@kernel(
    "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    python_names={"A": "input"},
    batch=(2, 2),
    namespace="linalg",
    public="solve_triangular",
    method=False,
    out=True,
    out_type="expected scalar type {want} but found {have}",
    backward={
        ("A", "B"): _triangular_backward,
    },
)
def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, left: bool,
                     unitriangular: bool) -> np.ndarray:  # fmt: skip
    """X with A X = B, or X A = B, for a triangular A whose other triangle is not read.

    Shapes: A (*, n, n), B and X (*, n, k), or (*, k, n) where X A = B.

    >>> import flambeau as torch
    >>> torch.linalg.solve_triangular(torch.tensor([[2.0, 1.0], [0.0, 4.0]]),
    ...     torch.tensor([[3.0], [4.0]]), upper=True)
    tensor([[1.],
            [1.]])
    """
    return column_major(
        kernels.solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)
    )


def _old_triangular_backward(given: Any, A: Any, solution: Any, upper: bool, transpose: bool,
                             unitriangular: bool, wanted: Any) -> Any:  # fmt: skip
    """The gradient of the copy goes to `A` as it is."""
    of_solution, of_copy = given
    if of_solution is None:
        return ops.zeros_like(solution), of_copy
    matrix = A.mT if transpose else A
    of_a, of_b = _triangular_backward(of_solution, matrix, solution, upper != transpose, True,
                                      unitriangular, (wanted[1],))  # fmt: skip
    if of_a is None:
        return of_b, None
    of_a = of_a.mT if transpose else of_a
    return of_b, of_a if of_copy is None else of_a + of_copy


@kernel(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    batch=(2, 2),
    autocast="cpu=float32",
    out=True,
    also_saved=("self",),
    backward={("self", "A"): _old_triangular_backward},
)
def triangular_solve(b: np.ndarray, a: np.ndarray, upper: bool, transpose: bool,
                     unitriangular: bool) -> tuple[np.ndarray, ...]:  # fmt: skip
    """(X, copy of A) with A X = self: the older form of `linalg.solve_triangular`.

    Shapes: self (*, n, k), A (*, n, n), X (*, n, k).

    >>> import flambeau as torch
    >>> a, b = torch.tensor([[2., 1.], [0., 4.]]), torch.tensor([[4.], [8.]])
    >>> torch.linalg.solve_triangular(a, b, upper=True)  # the way of today
    tensor([[1.],
            [2.]])
    """
    warn_once(OLD_TRIANGULAR)
    solution, copy = kernels.triangular_solve(b, a, upper, transpose, unitriangular)
    return column_major(solution), column_major(copy)


OLD_TRIANGULAR = (
    "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be "
    "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments "
    "reversed and does not return a copy of one of the inputs.\nX = torch.triangular_solve(B, "
    "A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B)."
)


# ---- Cholesky factors


def _cholesky_backward(grad: Any, L: Any, upper: bool) -> Any:
    """L^-H S L^-1, where S is half of the lower triangle of L^H G and its mirror image."""
    if upper:
        L, grad = adjoint(L), adjoint(grad)
    lower = ops.tril(adjoint_times(L, grad))
    phi = (lower + adjoint(ops.tril(lower, -1))) * 0.5
    half = ops.linalg.solve_triangular(adjoint(L), phi, upper=True)
    return ops.linalg.solve_triangular(L, half, upper=False, left=False)


def _cholesky_tangent(tangent: Any, L: Any, upper: bool) -> Any:
    """L P(L^-1 T L^-H), where P halves the diagonal of the lower triangle."""
    if upper:
        L = adjoint(L)
    inner = ops.linalg.solve_triangular(L, tangent, upper=False)
    inner = ops.linalg.solve_triangular(adjoint(L), inner, upper=True, left=False)
    found = ops.matmul(L, (ops.tril(inner) + ops.tril(inner, -1)) * 0.5)
    return adjoint(found) if upper else found, None


@kernel(
    "linalg_cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False)"
    " -> (Tensor L, Tensor info)",
    python_names={"A": "input"},
    batch=(2,),
    autocast="cpu=float32",
    namespace="linalg",
    public="cholesky_ex",
    method=False,
    out=True,
    nondifferentiable=("info",),
    backward={"A": _cholesky_backward},
    tangent=_cholesky_tangent,
)
def cholesky_ex(a: np.ndarray, upper: bool, check_errors: bool) -> tuple[np.ndarray, ...]:
    """(L, info) with A = L L^H, or U^H U: info is not 0 where A is not positive-definite.

    >>> import flambeau as torch
    >>> torch.linalg.cholesky_ex(torch.tensor([[4., 2.], [2., 5.]])).L
    tensor([[2., 0.],
            [1., 2.]])
    """
    factor, info = kernels.cholesky_ex(a, upper=upper)
    if check_errors:
        raise_first_failure(info, "linalg.cholesky_ex", _NOT_POSITIVE)
    return column_major(factor), np.asarray(info)


@composite("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
           autocast="cpu=float32", namespace="linalg",
           public="cholesky", method=False, out_type=EXACT)  # fmt: skip
def linalg_cholesky(input: Any, *, upper: bool = False, out: Any = None) -> Any:
    """L with A = L L^H (U with A = U^H U) for Hermitian positive-definite A.

    Shapes (*, n, n).

    >>> import flambeau as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    factor, info = ops.linalg.cholesky_ex(input, upper=upper)
    check_info(info, "linalg.cholesky", _NOT_POSITIVE)
    return write(linalg_cholesky, out, factor)


@composite("cholesky(Tensor self, bool upper=False) -> Tensor", autocast="cpu=float32",
           out_type=castable("cholesky"))  # fmt: skip
def cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """L with A = L L^H: the older form of `linalg.cholesky`.

    Shapes (*, n, n).

    >>> import flambeau as torch
    >>> torch.linalg.cholesky(torch.tensor([[4., 2.], [2., 5.]]))  # the way of today
    tensor([[2., 0.],
            [1., 2.]])
    """
    if hasattr(input, "_data"):  # torch looks at types first
        warn_once(OLD_CHOLESKY)
    if not input._data.size:  # and at nothing else here
        return write(cholesky, out, ops.clone(input))
    check_square(input._data, "cholesky")
    check_kernel(input._data, "cholesky_cpu")
    factor, info = ops.linalg.cholesky_ex(input, upper=upper)
    check_info(info, "cholesky", _NOT_POSITIVE)
    return write(cholesky, out, factor)


OLD_CHOLESKY = (
    "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a "
    "future PyTorch release.\nL = torch.cholesky(A)\nshould be replaced with\nL = "
    "torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, upper=True)\nshould be replaced with\n"
    "U = torch.linalg.cholesky(A).mH\nThis transform will produce equivalent results for all valid "
    "(symmetric positive definite) inputs."
)


def _factor_gradient(common: Any, factor: Any, upper: bool) -> Any:
    """The gradient of a Cholesky factor from that of the matrix, -(common + common^H)."""
    common = common + adjoint(common)
    return -(ops.matmul(factor, common) if upper else ops.matmul(common, factor))


def _cholesky_solve_backward(grad: Any, input2: Any, result: Any, upper: bool,
                             wanted: Any) -> Any:  # fmt: skip
    of_b = ops.cholesky_solve(grad, input2, upper)
    if not wanted[1]:
        return of_b, None
    return of_b, _factor_gradient(times_adjoint(of_b, result), input2, upper)


@kernel(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    batch=(2, 2),
    autocast="cpu=float32",
    out=True,
    out_type=castable("cholesky_solve"),
    also_saved=("self",),
    saved_for={"self": "input2"},
    backward={("self", "input2"): _cholesky_solve_backward},
)
def cholesky_solve(b: np.ndarray, factor: np.ndarray, upper: bool) -> np.ndarray:
    """X with A X = B from A's Cholesky factor.

    Shapes: B (*, n, k), the factor (*, n, n), X (*, n, k).

    >>> import flambeau as torch
    >>> factor = torch.tensor([[2., 0.], [1., 2.]])
    >>> torch.cholesky_solve(torch.tensor([[4.], [6.]]), factor)
    tensor([[0.5000],
            [1.0000]])
    """
    return column_major(kernels.cholesky_solve(b, factor, upper))


def _cholesky_inverse_backward(grad: Any, self: Any, result: Any, upper: bool) -> Any:
    middle = ops.matmul(ops.matmul(result, grad), result)
    return _factor_gradient(middle, self, upper)


@kernel(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    shape="ones",
    batch=(2,),
    autocast="cpu=float32",
    out=True,
    out_type=castable("cholesky_inverse"),
    backward={"self": _cholesky_inverse_backward},
)
def cholesky_inverse(factor: np.ndarray, upper: bool) -> np.ndarray:
    """The inverse of A from its Cholesky factor.

    Shapes (*, n, n).

    >>> import flambeau as torch
    >>> torch.cholesky_inverse(torch.tensor([[2., 0.], [1., 2.]]))
    tensor([[ 0.3125, -0.1250],
            [-0.1250,  0.2500]])
    """
    return column_major(kernels.cholesky_inverse(factor, upper))


# ---- made of these


@composite("linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
           autocast="cpu=float32", namespace="linalg",
           public="tensorinv", method=False,
           out_type=castable("tensorinv"))  # fmt: skip
def tensorinv(input: Any, ind: int = 2, *, out: Any = None) -> Any:
    """The inverse of `tensordot(A, ., ind)`.

    The first `ind` sizes have the product of the others; the result has the others first.

    >>> import flambeau as torch
    >>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4), ind=2).shape
    torch.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = input._data.shape
    if ind > len(shape):
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {len(shape)}")
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    inverse_, info = ops.linalg.inv_ex(input.reshape(rows, columns))
    check_info(info, "inv", _NOT_INVERTIBLE)
    return write(tensorinv, out, inverse_.reshape([*shape[ind:], *shape[:ind]]))


@composite("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
           out_writer="copy_", autocast="cpu=float32",
           namespace="linalg", public="tensorsolve", method=False,
           out_type=castable("tensorsolve"))  # fmt: skip
def tensorsolve(input: Any, other: Any, dims: Any = None, *, out: Any = None) -> Any:
    """X with `tensordot(A, X, X.ndim) == B`; `dims` of A are moved to its end first.

    >>> import flambeau as torch
    >>> torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 2, 2), torch.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    ndim = input._data.ndim
    if dims is not None:
        input = ops.movedim(input, tuple(dims), tuple(range(ndim - len(dims), ndim)))
    shape = input._data.shape
    count = other._data.ndim
    rows, columns = math.prod(other._data.shape), math.prod(shape[count:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    solution = ops.linalg.solve(input.reshape(rows, columns), other.reshape(-1))
    return write(tensorsolve, out, solution.reshape(shape[count:]))
