"""LDL factorization of symmetric (or Hermitian) indefinite matrices, and solving with it.

Bunch and Kaufman's diagonal pivoting (Math. Comp. 31, 1977), lower triangle, in LAPACK's storage:
L below, D on the diagonal with its 2x2 blocks' corners below it; pivots count from one, and a 2x2
block has the same negative pivot twice.  The batch runs matrix by matrix.
"""

import numpy as np

from flambeau._ops.linalg.checks import (
    Array,
    LinAlgError,
    broadcast_batches,
    check_floating,
    check_kernel,
    check_square,
    type_name,
)
from flambeau._ops.linalg.triangular import check_old_style

_ALPHA = (1.0 + 17.0**0.5) / 8.0


def ldl_factor_ex(a: Array, *, hermitian: bool = False) -> tuple[Array, Array, Array]:
    """(LD, pivots, info): (*, n, n), int32 (*, n) and int32 (*); info names the first zero of D."""
    check_square(a, "torch.linalg.ldl_factor_ex")
    check_floating(a, "torch.linalg.ldl_factor_ex")
    check_kernel(a, "ldl_factor_kernel_cpu")
    hermitian = hermitian and a.dtype.kind == "c"
    mirrored = np.swapaxes(np.tril(a, -1), -1, -2)
    factors = np.tril(a) + (mirrored.conj() if hermitian else mirrored)
    if hermitian:
        diagonal = np.arange(a.shape[-1])
        factors[..., diagonal, diagonal] = factors[..., diagonal, diagonal].real
    pivots = np.zeros(a.shape[:-1], np.int32)
    info = np.zeros(a.shape[:-2], np.int32)
    for index in np.ndindex(*a.shape[:-2]):
        info[index] = _factor(factors[index], pivots[index], hermitian)
    return np.tril(factors), pivots, info


def ldl_factor(a: Array, *, hermitian: bool = False) -> tuple[Array, Array]:
    """(LD, pivots); LinAlgError where D is singular."""
    factors, pivots, info = ldl_factor_ex(a, hermitian=hermitian)
    if info.any():
        raise LinAlgError(f"torch.linalg.ldl_factor: D has a zero, first at {int(info.max())}.")
    return factors, pivots


def _size(x: Array) -> Array:
    return np.abs(x.real) + np.abs(x.imag)


def _factor(a: Array, pivots: Array, hermitian: bool) -> int:
    """Factor in place; ``a`` holds both triangles.  The 1-based first zero of D, or 0."""
    info = 0
    k = 0
    while k < a.shape[-1]:
        if hermitian:
            a[k, k] = a[k, k].real
        step, chosen, zero = _choose_pivot(a, k)
        if zero and not info:
            info = k + 1
        last = k + step - 1
        _swap(a[k:, k:], last - k, chosen - k)
        if not zero:
            _eliminate(a, k, k + step)
        pivots[k : k + step] = chosen + 1 if step == 1 else -(chosen + 1)
        k += step
    return info


def _swap(trailing: Array, first: int, second: int) -> None:
    trailing[[first, second]] = trailing[[second, first]]
    trailing[:, [first, second]] = trailing[:, [second, first]]


def _eliminate(a: Array, start: int, stop: int) -> None:
    block = a[start:stop, start:stop]
    factors = _divided(a[stop:, start:stop], block)
    a[stop:, stop:] -= factors @ a[start:stop, stop:]
    a[stop:, start:stop] = factors


def _divided(rows: Array, block: Array) -> Array:
    """rows times the inverse of a 1x1 or 2x2 block."""
    if block.shape[-1] == 1:
        return rows / block
    return rows @ np.linalg.inv(block)


def _choose_pivot(a: Array, k: int) -> tuple[int, int, bool]:
    """(block size, row to bring to the block's end, whether the column is zero)."""
    diagonal = float(_size(a[k, k]))
    below = _size(a[k + 1 :, k])
    row = k + 1 + int(below.argmax()) if below.size else k
    largest = float(below.max(initial=0))
    if max(diagonal, largest) == 0 or np.isnan(diagonal):
        return 1, k, True
    if diagonal >= _ALPHA * largest:
        return 1, k, False
    others = np.concatenate([_size(a[row, k:row]), _size(a[row + 1 :, row])])
    other = float(others.max())
    if diagonal >= _ALPHA * largest * (largest / other):
        return 1, k, False
    if float(_size(a[row, row])) >= _ALPHA * other:
        return 1, row, False
    return 2, row, False


def ldl_solve(factors: Array, pivots: Array, b: Array, *, hermitian: bool = False) -> Array:
    """X with A X = B from ``ldl_factor``'s output; batches broadcast."""
    name = "torch.linalg.ldl_solve"
    check_square(factors, name)
    check_floating(factors, name)
    check_old_style(b, factors, name)
    _check_pivots(factors, pivots, name)
    check_kernel(factors, "ldl_solve_kernel_cpu")
    hermitian = hermitian and factors.dtype.kind == "c"
    factors, b = broadcast_batches(factors, b)
    pivots = np.broadcast_to(pivots.astype(np.int64), factors.shape[:-1])
    result = b.copy()
    with np.errstate(all="ignore"):
        for index in np.ndindex(*b.shape[:-2]):
            _solve(factors[index], pivots[index], result[index], hermitian)
    return result


def _check_pivots(factors: Array, pivots: Array, name: str) -> None:
    """An integer for each row of each matrix."""
    if factors.shape[:-1] != pivots.shape:
        raise RuntimeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but "
                           f"got pivots with shape {list(pivots.shape)} instead")  # fmt: skip
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {type_name(pivots)}")


def _blocks(pivots: Array) -> list[tuple[int, int, int]]:
    """(start, stop, row swapped with stop - 1) of every block of D."""
    blocks = []
    start = 0
    while start < pivots.size:
        stop = start + (1 if pivots[start] > 0 else 2)
        blocks.append((start, stop, abs(int(pivots[start])) - 1))
        start = stop
    return blocks


def _solve(a: Array, pivots: Array, x: Array, hermitian: bool) -> None:
    """Solve in place, from D's blocks downwards and back again."""
    blocks = _blocks(pivots)
    for start, stop, chosen in blocks:
        x[[stop - 1, chosen]] = x[[chosen, stop - 1]]
        x[stop:] -= a[stop:, start:stop] @ x[start:stop]
        x[start:stop] = _divided(x[start:stop].T, _whole_block(a, start, stop, hermitian).T).T
    for start, stop, chosen in reversed(blocks):
        below = a[stop:, start:stop]
        x[start:stop] -= (below.conj() if hermitian else below).T @ x[stop:]
        x[[stop - 1, chosen]] = x[[chosen, stop - 1]]


def _whole_block(a: Array, start: int, stop: int, hermitian: bool) -> Array:
    block = a[start:stop, start:stop].copy()
    if stop - start == 2:
        block[0, 1] = block[1, 0].conj() if hermitian else block[1, 0]
    return block
