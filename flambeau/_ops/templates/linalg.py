"""The linear algebra kernels by torch's names, gathered from their families.

Arrays in, new arrays out, batches over all dims but the last two.  float32, float64, complex64 and
complex128 keep their dtype; what other dtypes raise is torch's own refusal.
"""

from .cholesky import cholesky, cholesky_ex, cholesky_inverse, cholesky_solve
from .householder import geqrf, householder_product, ormqr, qr
from .ldl import ldl_factor, ldl_factor_ex, ldl_solve
from .linalg_checks import LinAlgError
from .lu import (
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
from .matrix_functions import cross, matrix_exp, matrix_power, vander
from .spectral import (
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
from .triangular import solve_triangular, triangular_solve

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
