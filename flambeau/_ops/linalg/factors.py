"""LU and LDL, as operators with gradients.

LU's adjoint splits A = P L U into triangles (Giles 2008 gives the square case).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.programs import EAGER
from flambeau._core.settings import warn_once
from flambeau._ops.linalg import by_name as kernels
from flambeau._ops.linalg.checks import raise_first_failure
from flambeau._ops.linalg.lu import _SINGULAR
from flambeau._ops.linalg.systems import (
    adjoint,
    adjoint_times,
    check_info,
    column_major,
    column_major_all,
    fresh_all,
    named,
    padded,
    times_adjoint,
)
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import EXACT
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.saved_fields import OfInput

# ---- LU


def _lu_gradient(of_l: Any, of_u: Any, P: Any, L: Any, U: Any) -> Any:
    """P L1^-H (tril(L1^H gL1, -1) + triu(gU1 U1^H)) U1^-H for the square parts L1 and U1.

    The rows of L below and the columns of U beyond the square part are linear in A.
    """
    rows, columns = L._data.shape[-2], U._data.shape[-1]
    count = min(rows, columns)
    l1, u1 = L.narrow(-2, 0, count), U.narrow(-1, 0, count)
    if rows > count:  # as triangles, whose other elements have no gradient
        l1 = ops.tril(l1, -1) + ops.eye(count, dtype=l1.dtype, device=l1.device)
    lower = adjoint_times(l1, of_l.narrow(-2, 0, count))
    of_u1 = of_u.narrow(-1, 0, count)
    if columns > count:
        # What stands below may be infinite in a gradient, and is no part of U.
        u1, of_u1 = ops.triu(u1), ops.triu(of_u1)
    upper = times_adjoint(of_u1, u1)
    if rows > count:
        l2, of_l2 = (t.narrow(-2, count, rows - count) for t in (L, of_l))
        upper = upper - adjoint_times(l2, of_l2)
    if columns > count:
        u2, of_u2 = (t.narrow(-1, count, columns - count) for t in (U, of_u))
        lower = lower - times_adjoint(of_u2, u2)
    inner = ops.tril(lower, -1) + ops.triu(upper)
    solved = ops.linalg.solve_triangular(adjoint(u1), inner, upper=False, left=False)
    grad = _solve_unit(l1, solved)
    if rows > count:
        below = ops.linalg.solve_triangular(adjoint(u1), of_l2, upper=False, left=False)
        grad = ops.cat([grad, below], -2)
    if columns > count:
        grad = ops.cat([grad, _solve_unit(l1, of_u2)], -1)
    return ops.matmul(P, grad)


def _solve_unit(l1: Any, right: Any) -> Any:
    return ops.linalg.solve_triangular(adjoint(l1), right, upper=True, unitriangular=True)


def _packed_gradient(grad: Any, LU: Any, pivots: Any) -> Any:
    P, L, U = ops.lu_unpack(LU, pivots)
    count = min(LU._data.shape[-2:])
    of_l = ops.tril(grad.narrow(-1, 0, count), -1)
    of_u = ops.triu(grad.narrow(-2, 0, count))
    return _lu_gradient(of_l, of_u, P, L, U)


@kernel(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)"
    " -> (Tensor LU, Tensor pivots, Tensor info)",
    batch=(2,),
    namespace="linalg",
    public="lu_factor_ex",
    out=True,
    nondifferentiable=("pivots", "info"),
    also_saved=("pivot",),
    backward={"A": _packed_gradient},
)
def lu_factor_ex(a: np.ndarray, pivot: bool, check_errors: bool) -> tuple[np.ndarray, ...]:
    """(LU, pivots, info): L below the diagonal, U on and above it; pivots count from 1.

    Shapes for A (*, m, n): LU the same, pivots (*, min(m, n)), info (*).

    >>> import flambeau as torch
    >>> torch.linalg.lu_factor_ex(torch.tensor([[2., 1.], [4., 3.]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    result = kernels.lu_factor_ex(a, pivot)
    if check_errors:
        raise_first_failure(result[2], "torch.linalg.lu_factor_ex", _SINGULAR, RuntimeError)
    return column_major_all(result)


@composite("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
           namespace="linalg", public="lu_factor")  # fmt: skip
def lu_factor(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """(LU, pivots) with A = P L U; an error where U has a zero on its diagonal.

    Shapes for A (*, m, n): LU the same, pivots (*, min(m, n)).

    >>> import flambeau as torch
    >>> factors, pivots = torch.linalg.lu_factor(torch.eye(2))
    >>> pivots
    tensor([1, 2], dtype=torch.int32)
    """
    factors, pivots, info = ops.linalg.lu_factor_ex(A, pivot=pivot)
    check_info(info, "torch.linalg.lu_factor", _SINGULAR, RuntimeError)
    return write(lu_factor, out, named(lu_factor, factors, pivots))


@composite("lu(Tensor self, bool pivot=True, bool get_infos=False) -> (Tensor, Tensor)",
           program=True)  # fmt: skip
def lu(A: Any, pivot: bool = True, get_infos: bool = False,
       out: tuple[Tensor, ...] | None = None) -> Any:  # fmt: skip
    """(LU, pivots), and info where asked for: the older form of `linalg.lu_factor_ex`.

    Shapes for A (*, m, n): LU the same, pivots (*, min(m, n)), info (*).

    >>> import flambeau as torch
    >>> torch.linalg.lu_factor(torch.tensor([[2., 1.], [4., 3.]])).LU  # the way of today
    tensor([[ 4.0000,  3.0000],
            [ 0.5000, -0.5000]])
    """
    found = ops._lu_with_info(A, pivot, not get_infos)
    if get_infos:
        if EAGER:
            return write(lu, out, found)
        if out is None:
            return found
        return _put(out[0], found[0]), _put(out[1], found[1]), _put(out[2], found[2])
    if EAGER:
        return write(lu, out, (found[0], found[1]))
    if out is None:
        return found[0], found[1]
    return _put(out[0], found[0]), _put(out[1], found[1])


def _put(place: Tensor, value: Tensor) -> Tensor:
    return place.resize_as_(value).copy_(value)


@composite("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True)"
           " -> (Tensor LU, Tensor pivots, Tensor info)",
           autocast="cpu=float32", method=False)  # fmt: skip
def lu_with_info(input: Any, pivot: bool = True, check_errors: bool = True) -> Any:
    """`linalg.lu_factor_ex` as `torch.lu` returns it."""
    if hasattr(input, "_data"):  # torch looks at types first
        warn_once(OLD_LU)
    return named(lu_with_info, *ops.linalg.lu_factor_ex(input, pivot=pivot))


OLD_LU = (
    "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will"
    " be removed in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be "
    "replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info ="
    " torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\nLU, pivots, info = "
    "torch.linalg.lu_factor_ex(A, compute_pivots)"
)


@kernel(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    batch=(2,),
    namespace="linalg",
    public="lu",
    out=True,
    nondifferentiable=("P",),
    also_saved=("pivot",),
    backward={"A": lambda grads, P, L, U: _lu_gradient(grads[1], grads[2], P, L, U)},
)
def linalg_lu(a: np.ndarray, pivot: bool) -> tuple[np.ndarray, ...]:
    """(P, L, U) with A = P L U.

    Shapes for A (*, m, n), with k = min(m, n): P (*, m, m), L (*, m, k), U (*, k, n).

    >>> import flambeau as torch
    >>> torch.linalg.lu(torch.tensor([[2., 1.], [4., 3.]])).U
    tensor([[ 4.0000,  3.0000],
            [ 0.0000, -0.5000]])
    """
    return fresh_all(kernels.lu(a, pivot))


def _unpack_backward(grads: Any, LU_data_shape: Any, unpack_data: bool) -> Any:
    _, of_l, of_u = grads
    if not unpack_data:
        return None
    lower = padded(ops.tril(of_l, -1), LU_data_shape)
    return lower + padded(ops.triu(of_u), LU_data_shape)


@kernel(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)"
    " -> (Tensor P, Tensor L, Tensor U)",
    shape="ones",
    out=True,
    method=False,
    nondifferentiable=("P",),
    saved_names={"LU_data_shape": None, "unpack_data": None},
    saved_facts={
        "LU_data_sym_argsize_minus_1": OfInput("LU_data", -1),
        "LU_data_sym_argsize_minus_2": OfInput("LU_data", -2),
    },
    backward={"LU_data": _unpack_backward},
)
def lu_unpack(factors: np.ndarray, pivots: np.ndarray, unpack_data: bool,
              unpack_pivots: bool) -> tuple[np.ndarray, ...]:  # fmt: skip
    """(P, L, U) from `lu_factor`'s results; what is not asked for is an empty tensor.

    Shapes for LU (*, m, n), with k = min(m, n): P (*, m, m), L (*, m, k), U (*, k, n).

    >>> import flambeau as torch
    >>> lu, pivots = torch.linalg.lu_factor(torch.tensor([[2., 1.], [4., 3.]]))
    >>> torch.lu_unpack(lu, pivots).U
    tensor([[ 4.0000,  3.0000],
            [ 0.0000, -0.5000]])
    """
    return fresh_all(kernels.lu_unpack(factors, pivots, unpack_data, unpack_pivots))


def _lu_solve_backward(grad: Any, LU: Any, pivots: Any, result: Any, left: bool, conjugate: bool,
                       wanted: Any) -> Any:  # fmt: skip
    of_b = ops._lu_solve(LU, pivots, grad, left, not conjugate)
    if not wanted[0]:
        return None, of_b
    of_a = times_adjoint(result, of_b) if conjugate else times_adjoint(of_b, result)
    P, L, U = ops.lu_unpack(LU, pivots)
    inner = adjoint_times(P, -of_a)
    of_lu = ops.tril(times_adjoint(inner, U), -1) + ops.triu(adjoint_times(L, inner))
    return of_lu, of_b


@kernel(
    "_lu_solve(Tensor LU, Tensor pivots, Tensor B, bool left, bool conjugate) -> Tensor",
    method=False,
    batch=(2, 1, 2),
    shape="ones",
    node="LinalgLuSolveBackward0",
    saved_names={"conjugate": "adjoint"},
    backward={("LU", "B"): _lu_solve_backward},
)
def _lu_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, left: bool,
              conjugate: bool) -> np.ndarray:  # fmt: skip
    """X with A X = B or (conjugate) A^H X = B from A's LU; B and X are adjoints if not `left`."""
    solution = kernels.lu_solve(factors, pivots, b, left=left, adjoint=conjugate)
    return column_major(solution)


@composite(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False)"
    " -> Tensor",
    namespace="linalg",
    public="lu_solve",
    out_type=EXACT,
)
def linalg_lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False,
                    out: Any = None) -> Any:  # fmt: skip
    """X with A X = B, X A = B or (adjoint) A^H X = B from A's LU. Complex solutions of X A = B are
    conjugate views, unless they are empty.

    Shapes: LU (*, n, n), pivots (*, n), B and X (*, n, k), or (*, k, n) where X A = B.

    >>> import flambeau as torch
    >>> a, b = torch.tensor([[2., 1.], [4., 3.]]), torch.tensor([[4.], [10.]])
    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)
    tensor([[1.],
            [2.]])
    """
    if left or B.ndim < 2:
        return write(linalg_lu_solve, out, ops._lu_solve(LU, pivots, B, left, adjoint))
    # X A = B is A^H X^H = B^H.
    turned = ops._lu_solve(LU, pivots, ops.adjoint(B), left, not adjoint)
    solution = ops.adjoint(turned)
    if not solution.numel():
        solution = solution.resolve_conj()
    return write(linalg_lu_solve, out, solution)


@composite(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    autocast="cpu=float32",
    out_type=EXACT,
)
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """X with A X = input from A's LU: the older form of `linalg.lu_solve`.

    Shapes: input and X (*, n, k), LU (*, n, n), pivots (*, n).

    >>> import flambeau as torch
    >>> a, b = torch.tensor([[2., 1.], [4., 3.]]), torch.tensor([[4.], [10.]])
    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)  # the way of today
    tensor([[1.],
            [2.]])
    """
    if all(hasattr(given, "_data") for given in (input, LU_data, LU_pivots)):  # types come first
        warn_once(OLD_LU_SOLVE)
    return write(lu_solve, out, ops.linalg.lu_solve(LU_data, LU_pivots, input))


OLD_LU_SOLVE = (
    "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future "
    "PyTorch release.\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = "
    "torch.lu_solve(B, LU, pivots)\nshould be replaced with\nX = torch.linalg.lu_solve(LU, pivots, "
    "B)"
)


# ---- LDL


@kernel(
    "linalg_ldl_factor_ex(Tensor A, *, bool hermitian=False, bool check_errors=False)"
    " -> (Tensor LD, Tensor pivots, Tensor info)",
    python_names={"A": "input"},
    namespace="linalg",
    public="ldl_factor_ex",
    method=False,
    out=True,
    underived=True,
)
def ldl_factor_ex(a: np.ndarray, hermitian: bool, check_errors: bool) -> tuple[np.ndarray, ...]:
    """(LD, pivots, info) with A = L D L^T (L D L^H): Bunch and Kaufman's pivoting.

    >>> import flambeau as torch
    >>> torch.linalg.ldl_factor_ex(torch.tensor([[4., 2.], [2., 5.]])).info
    tensor(0, dtype=torch.int32)
    """
    result = kernels.ldl_factor_ex(a, hermitian=hermitian)
    if check_errors:
        raise_first_failure(result[2], "torch.linalg.ldl_factor_ex", "D has a zero at {info}.")
    return column_major_all(result)


@composite("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
           namespace="linalg", public="ldl_factor", method=False)  # fmt: skip
def ldl_factor(input: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """(LD, pivots) with A = L D L^T (L D L^H).

    >>> import flambeau as torch
    >>> torch.linalg.ldl_factor(torch.tensor([[4., 2.], [2., 5.]])).LD
    tensor([[4.0000, 0.0000],
            [0.5000, 4.0000]])
    """
    factors, pivots, info = ops.linalg.ldl_factor_ex(input, hermitian=hermitian)
    check_info(info, "torch.linalg.ldl_factor", "D has a zero at {info}.")
    return write(ldl_factor, out, named(ldl_factor, factors, pivots))


@kernel(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    shape="ones",
    namespace="linalg",
    public="ldl_solve",
    out=True,
    out_type=EXACT,
    underived=True,
)
def ldl_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray,
              hermitian: bool) -> np.ndarray:  # fmt: skip
    """X with A X = B from `ldl_factor`'s results.

    Shapes: LD (*, n, n), pivots (*, n), B and X (*, n, k).

    >>> import flambeau as torch
    >>> ld, pivots = torch.linalg.ldl_factor(torch.tensor([[4., 2.], [2., 5.]]))
    >>> torch.linalg.ldl_solve(ld, pivots, torch.tensor([[8.], [12.]]))
    tensor([[1.],
            [2.]])
    """
    return column_major(kernels.ldl_solve(factors, pivots, b, hermitian=hermitian))
