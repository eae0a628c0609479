"""cuSOLVER's functions: column-major matrices, overwritten as LAPACK does."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cusolver
from flambeau._runtime.cuda.libraries.cublaslt_numbers import TYPES
from flambeau._runtime.cuda.libraries.stand_in.memory import (
    Refusal,
    device_array,
    guarded,
    numpy_type,
    put,
)

NAMES = {number: name for name, number in TYPES.items()}
INVALID_VALUE, INTERNAL_ERROR = 3, 7
ON_DEVICE, ON_HOST = 512, 64
function = guarded(INTERNAL_ERROR)


def _matrix(address: int, rows: int, columns: int, ld: int, kind: int) -> Any:
    return device_array(address, (rows, columns), (1, ld), numpy_type(NAMES[kind]))


def _tell(info: int, number: int) -> None:
    device_array(info, (1,), (1,), np.dtype(np.int32))[0] = number


class StandIn:
    """The library."""

    def __init__(self) -> None:
        self.stream = 0
        for name in ("Xpotrf", "Xgetrf", "Xsyevd", "Xgesvd"):
            setattr(self, f"cusolverDn{name}_bufferSize", self._sizes)

    @function
    def cusolverDnCreate(self, target: int) -> None:
        ctypes.c_uint64.from_address(target).value = 16

    @function
    def cusolverDnCreateParams(self, target: int) -> None:
        ctypes.c_uint64.from_address(target).value = 32

    @function
    def cusolverDnSetStream(self, handle: int, stream: int | None) -> None:
        self.stream = stream or 0

    @function
    def _sizes(self, *arguments: int) -> None:
        ctypes.c_size_t.from_address(arguments[-2]).value = ON_DEVICE
        ctypes.c_size_t.from_address(arguments[-1]).value = ON_HOST

    def _check(self, spaces: tuple[Any, ...]) -> None:
        here, on_device, there, on_host, _ = spaces
        if not here or not there or (on_device, on_host) != (ON_DEVICE, ON_HOST):
            raise Refusal(INVALID_VALUE)

    @function
    def cusolverDnXpotrf(self, _: int, __: int, uplo: int, n: int, kind: int, a: int, ld: int,
                         ___: int, *spaces: int) -> None:  # fmt: skip
        self._check(spaces)

        def work() -> None:
            matrix = _matrix(a, n, n, ld, kind)
            triangle = np.triu(matrix) if uplo == cusolver.UPPER else np.tril(matrix)
            whole = triangle + triangle.conj().T - np.diag(np.diagonal(triangle).real)
            lower, failed = _cholesky(whole)
            mask = np.tril(np.ones((n, n), bool))
            if uplo == cusolver.UPPER:
                lower, mask = lower.conj().T, mask.T
            matrix[mask] = lower[mask]
            _tell(spaces[4], failed)

        put(self.stream, work, (), (a, spaces[0], spaces[4]))

    @function
    def cusolverDnXgetrf(self, _: int, __: int, m: int, n: int, kind: int, a: int, ld: int,
                         pivots: int, ___: int, *spaces: int) -> None:  # fmt: skip
        self._check(spaces)

        def work() -> None:
            matrix = _matrix(a, m, n, ld, kind)
            places = device_array(pivots, (min(m, n),), (1,), np.dtype(np.int64))
            _tell(spaces[4], _eliminate(matrix, places))

        put(self.stream, work, (), (a, pivots, spaces[0], spaces[4]))

    @function
    def cusolverDnXgetrs(self, _: int, __: int, trans: int, n: int, columns: int, kind: int, a: int,
                         ld: int, pivots: int, ___: int, b: int, of_b: int,
                         info: int) -> None:  # fmt: skip
        def work() -> None:
            factors, right = _matrix(a, n, n, ld, kind), _matrix(b, n, columns, of_b, kind)
            places = device_array(pivots, (n,), (1,), np.dtype(np.int64))
            for row, place in enumerate(places):
                right[[row, place - 1]] = right[[place - 1, row]]
            lower = np.tril(factors, -1) + np.eye(n, dtype=factors.dtype)
            right[...] = np.linalg.solve(np.triu(factors), np.linalg.solve(lower, right))
            _tell(info, 0)

        put(self.stream, work, (a, pivots), (b, info))

    @function
    def cusolverDnXsyevd(self, _: int, __: int, job: int, uplo: int, n: int, kind: int, a: int,
                         ld: int, real: int, w: int, ___: int, *spaces: int) -> None:  # fmt: skip
        self._check(spaces)

        def work() -> None:
            matrix = _matrix(a, n, n, ld, kind)
            values, vectors = np.linalg.eigh(matrix, "U" if uplo == cusolver.UPPER else "L")
            device_array(w, (n,), (1,), numpy_type(NAMES[real]))[...] = values
            matrix[...] = vectors if job else np.nan
            _tell(spaces[4], 0)

        put(self.stream, work, (), (a, w, spaces[0], spaces[4]))

    @function
    def cusolverDnXgesvd(self, _: int, __: int, jobu: int, jobv: int, m: int, n: int, kind: int,
                         a: int, ld: int, real: int, s: int, ___: int, u: int, of_u: int,
                         ____: int, v: int, of_v: int, _____: int,
                         *spaces: int) -> None:  # fmt: skip
        self._check(spaces)
        if m < n or jobu != jobv or chr(jobu) not in "AS":
            raise Refusal(INVALID_VALUE)

        def work() -> None:
            matrix = _matrix(a, m, n, ld, kind)
            left, values, right = np.linalg.svd(matrix, chr(jobu) == "A")
            matrix[...] = np.nan
            _matrix(u, len(left), left.shape[1], of_u, kind)[...] = left
            device_array(s, (n,), (1,), numpy_type(NAMES[real]))[...] = values
            _matrix(v, len(right), n, of_v, kind)[...] = right
            _tell(spaces[4], 0)

        put(self.stream, work, (), (a, s, u, v, spaces[0], spaces[4]))


def _cholesky(matrix: Any) -> tuple[Any, int]:
    """The lower factor, and the order of the first leading minor that is not positive, or 0."""
    for size in range(1, len(matrix) + 1):
        try:
            np.linalg.cholesky(matrix[:size, :size])
        except np.linalg.LinAlgError:
            return matrix, size
    return np.linalg.cholesky(matrix) if len(matrix) else matrix, 0


def _eliminate(matrix: Any, pivots: Any) -> int:
    """Gaussian elimination in place with the greatest pivots; the first that is 0, counted from
    1, or 0."""
    failed = 0
    for step in range(len(pivots)):
        column = matrix[step:, step]
        place = step + int((abs(column.real) + abs(column.imag)).argmax())
        pivots[step] = place + 1
        matrix[[step, place]] = matrix[[place, step]]
        if matrix[step, step] == 0:
            failed = failed or step + 1
            continue
        matrix[step + 1 :, step] /= matrix[step, step]
        below = np.outer(matrix[step + 1 :, step], matrix[step, step + 1 :])
        matrix[step + 1 :, step + 1 :] -= below
    return failed
