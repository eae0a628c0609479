"""The linear algebra kernels by torch's names, gathered from their families.

Arrays in, new arrays out, batches over all dims but the last two.  float32, float64, complex64 and
complex128 keep their dtype; what other dtypes raise is torch's own refusal.
"""

from flambeau._ops.linalg.checks import LinAlgError
from flambeau._ops.linalg.cholesky import cholesky, cholesky_ex, cholesky_inverse, cholesky_solve
from flambeau._ops.linalg.householder import geqrf, householder_product, ormqr, qr
from flambeau._ops.linalg.ldl import ldl_factor, ldl_factor_ex, ldl_solve
from flambeau._ops.linalg.lu import (
    det,
    inv,
    inv_ex,
    logdet,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    lu_unpack,
    slogdet,
    solve,
    solve_ex,
)
from flambeau._ops.linalg.matrix_functions import cross, matrix_exp, matrix_power, vander
from flambeau._ops.linalg.numpy_spectral import (
    LeastSquares,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lstsq,
    matrix_rank,
    pinv,
    pinv_factors,
    svd,
    svdvals,
)
from flambeau._ops.linalg.triangular import solve_triangular, triangular_solve

__all__ = [
    "LeastSquares",
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cholesky_inverse",
    "cholesky_solve",
    "cross",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "geqrf",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "logdet",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "matrix_power",
    "matrix_rank",
    "ormqr",
    "pinv",
    "pinv_factors",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "triangular_solve",
    "vander",
]
