"""Linear algebra through cuSOLVER: one column-major matrix after the other, in place.

Addresses are those of the device; `info` gets a number for each matrix, 0 where all went well.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_byte, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any

from flambeau._runtime.cuda.libraries.cublaslt_numbers import TYPES
from flambeau._runtime.cuda.libraries.foreign import Foreign, opened
from flambeau._runtime.cuda.libraries.workspaces import workspace
from flambeau._runtime.cuda.memory import Current

LOWER, UPPER = 0, 1
AS_IT_IS, TRANSPOSED, ADJOINT = 0, 1, 2
REAL = {"float32": "float32", "float64": "float64", "complex64": "float32",
        "complex128": "float64"}  # fmt: skip
"""Types that there are functions for, and those of their real parts."""
WORDS = {
    1: "CUSOLVER_STATUS_NOT_INITIALIZED", 2: "CUSOLVER_STATUS_ALLOC_FAILED",
    3: "CUSOLVER_STATUS_INVALID_VALUE", 4: "CUSOLVER_STATUS_ARCH_MISMATCH",
    6: "CUSOLVER_STATUS_EXECUTION_FAILED", 7: "CUSOLVER_STATUS_INTERNAL_ERROR",
    9: "CUSOLVER_STATUS_NOT_SUPPORTED",
}  # fmt: skip
_START = (c_void_p, c_void_p)
_SPACES = (c_void_p, c_size_t, c_void_p, c_size_t, c_void_p)
_MATRIX = (c_int, c_void_p, c_int64)
_POTRF = (*_START, c_int, c_int64, *_MATRIX)
_GETRF = (*_START, c_int64, c_int64, *_MATRIX)
_SYEVD = (*_START, c_int, c_int, c_int64, *_MATRIX, c_int, c_void_p)
_GESVD = (*_START, c_byte, c_byte, c_int64, c_int64, *_MATRIX, c_int, c_void_p, *_MATRIX, *_MATRIX)
_SIZES = (c_int, c_void_p, c_void_p)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cusolverDnCreate": (c_void_p,), "cusolverDnCreateParams": (c_void_p,),
    "cusolverDnSetStream": (c_void_p, c_void_p),
    "cusolverDnXpotrf_bufferSize": (*_POTRF, *_SIZES),
    "cusolverDnXpotrf": (*_POTRF, c_int, *_SPACES),
    "cusolverDnXgetrf_bufferSize": (*_GETRF, *_SIZES),
    "cusolverDnXgetrf": (*_GETRF, c_void_p, c_int, *_SPACES),
    "cusolverDnXgetrs": (*_START, c_int, c_int64, c_int64, *_MATRIX, c_void_p, *_MATRIX, c_void_p),
    "cusolverDnXsyevd_bufferSize": (*_SYEVD, *_SIZES),
    "cusolverDnXsyevd": (*_SYEVD, c_int, *_SPACES),
    "cusolverDnXgesvd_bufferSize": (*_GESVD, *_SIZES),
    "cusolverDnXgesvd": (*_GESVD, c_int, *_SPACES),
}  # fmt: skip


class Solver:
    """The library on a device."""

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign
        held, params = c_void_p(), c_void_p()
        foreign.call("cusolverDnCreate", byref(held))
        foreign.call("cusolverDnCreateParams", byref(params))
        self.start = held.value, params.value
        self.on_host: Any = None
        self.lock = threading.Lock()

    def _run(self, name: str, sizes: tuple[Any, ...], rest: tuple[Any, ...], info: int,
             beside: tuple[int, ...] = ()) -> None:  # fmt: skip
        """A function with the memory that it asks for; on the current stream."""
        call, here, host = self.foreign.call, c_size_t(), c_size_t()
        with self.lock:  # the handle holds the stream
            call("cusolverDnSetStream", self.start[0], Current.stream)
            call(f"cusolverDn{name}_bufferSize", *self.start, *sizes, *rest, byref(here),
                 byref(host))  # fmt: skip
            self.on_host = ctypes.create_string_buffer(max(host.value, 1))
            call(f"cusolverDn{name}", *self.start, *sizes, *beside, *rest,
                 workspace(max(here.value, 1)), here.value, self.on_host, host.value,
                 info)  # fmt: skip

    def cholesky(self, dtype: str, size: int, matrix: int, upper: bool, info: int) -> None:
        """The factor of a Hermitian matrix over one of its triangles."""
        kind = TYPES[dtype]
        self._run("Xpotrf", (int(upper), size, kind, matrix, max(size, 1)), (kind,), info)

    def lu(self, dtype: str, rows: int, columns: int, matrix: int, pivots: int, info: int) -> None:
        """L and U over a matrix; pivots, int64, count from 1."""
        kind = TYPES[dtype]
        self._run("Xgetrf", (rows, columns, kind, matrix, max(rows, 1)), (kind,), info, (pivots,))

    def solve(self, dtype: str, size: int, columns: int, factors: int, pivots: int, right: int,
              info: int) -> None:  # fmt: skip
        """The solutions over right-hand sides, from the factors of `lu`."""
        kind = TYPES[dtype]
        with self.lock:
            self.foreign.call("cusolverDnSetStream", self.start[0], Current.stream)
            self.foreign.call("cusolverDnXgetrs", *self.start, AS_IT_IS, size, columns, kind,
                              factors, size, pivots, kind, right, size, info)  # fmt: skip

    def eigh(self, dtype: str, size: int, matrix: int, values: int, upper: bool, vectors: bool,
             info: int) -> None:  # fmt: skip
        """Eigenvalues, rising, of a Hermitian matrix of which one triangle is read; eigenvectors
        over it where wanted."""
        kind, real = TYPES[dtype], TYPES[REAL[dtype]]
        sizes = int(vectors), int(upper), size, kind, matrix, size, real, values
        self._run("Xsyevd", sizes, (kind,), info)

    def svd(self, dtype: str, rows: int, columns: int, matrix: int, values: int, left: int,
            right: int, full: bool, info: int) -> None:  # fmt: skip
        """U, S and V^H of a matrix with at least as many rows as columns, which is overwritten."""
        kind, real = TYPES[dtype], TYPES[REAL[dtype]]
        job = ord("A" if full else "S")
        sizes = (job, job, rows, columns, kind, matrix, rows, real, values, kind, left, rows, kind,
                 right, columns)  # fmt: skip
        self._run("Xgesvd", sizes, (kind,), info)


@cache
def library(device: int) -> Solver:
    """The library on a device, which is the current one.

    Raises:
        MissingLibrary: it is not installed.
    """
    from flambeau._runtime.cuda.libraries.stand_in.cusolver import StandIn

    return Solver(opened("cuSOLVER", StandIn, SIGNATURES, WORDS))
