"""The linear algebra kernels against torch: values over dtypes and batches, info, and refusals."""

import numpy as np
import pytest
import torch

from flambeau._ops.linalg import by_name as linalg

pytestmark = pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
BATCHES = [(), (3,), (2, 2), (0,)]
# Larger than one panel (32) and one block (64), so that the blocked paths run.
SIZES = [1, 2, 5, 33, 70]


def sample(*shape, dtype=np.float64, seed=0):
    random = np.random.RandomState(seed)
    values = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def well_conditioned(*shape, dtype=np.float64, seed=0):
    return sample(*shape, dtype=dtype, seed=seed) + 2 * shape[-1] ** 0.5 * np.eye(
        shape[-1], dtype=dtype
    )


def positive(*shape, dtype=np.float64, seed=0):
    a = sample(*shape, dtype=dtype, seed=seed)
    product = a @ np.swapaxes(a, -1, -2).conj()
    return (product + np.eye(shape[-1])).astype(dtype)


def check(actual, expected, dtype=np.float64):
    actual, expected = np.asarray(actual), expected.resolve_conj().numpy()
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    single = np.dtype(dtype).itemsize < 8 or dtype == np.complex64
    relative = 3e-3 if single else 1e-9
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=relative * 1e-2 * scale)


def check_all(actual, expected, dtype=np.float64):
    for ours, theirs in zip(actual, expected, strict=True):
        check(ours, theirs, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_square_functions(dtype, batch):
    for size in SIZES:
        a = well_conditioned(*batch, size, size, dtype=dtype)
        t = torch.from_numpy(a)
        check(linalg.inv(a), torch.linalg.inv(t), dtype)
        check_all(linalg.inv_ex(a), torch.linalg.inv_ex(t), dtype)
        check_all(linalg.slogdet(a), torch.linalg.slogdet(t), dtype)
        if size < 30:
            check(linalg.det(a), torch.linalg.det(t), dtype)
            check(linalg.matrix_power(a, 3), torch.linalg.matrix_power(t, 3), dtype)
            check(linalg.matrix_power(a, -2), torch.linalg.matrix_power(t, -2), dtype)
            check(linalg.matrix_power(a, 0), torch.linalg.matrix_power(t, 0), dtype)
        small = a / size
        check(linalg.matrix_exp(small), torch.linalg.matrix_exp(torch.from_numpy(small)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(5, 5), (3, 4, 4), (2, 7, 4), (4, 7), (70, 70), (0, 3, 3), (3, 0)]
)
def test_lu(dtype, shape):
    a = sample(*shape, dtype=dtype)
    t = torch.from_numpy(a)
    check_all(linalg.lu_factor_ex(a), torch.linalg.lu_factor_ex(t), dtype)
    check_all(linalg.lu(a), torch.linalg.lu(t), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
def test_solve_and_lu_solve(dtype, left):
    for size in SIZES:
        a = well_conditioned(2, 1, size, size, dtype=dtype)
        b = sample(3, size, 4, dtype=dtype, seed=1)
        b = b if left else np.ascontiguousarray(np.swapaxes(b, -1, -2))
        ta, tb = torch.from_numpy(a), torch.from_numpy(b)
        expected = torch.linalg.solve(ta, tb, left=left)
        check(linalg.solve(a, b, left=left), expected, dtype)
        factors, pivots = linalg.lu_factor(a)
        theirs = torch.linalg.lu_factor(ta)
        for adjoint in (False, True):
            # X A = B is handed over as A^H X^H = B^H
            given = b if left else np.swapaxes(b, -1, -2).conj()
            found = linalg.lu_solve(factors, pivots, given, left=left, adjoint=adjoint == left)
            check(
                found if left else np.swapaxes(found, -1, -2).conj(),
                torch.linalg.lu_solve(*theirs, tb, left=left, adjoint=adjoint),
                dtype,
            )


def test_solve_with_vectors():
    a, b = well_conditioned(3, 4, 4), sample(3, 4, seed=1)
    check(linalg.solve(a, b), torch.linalg.solve(torch.from_numpy(a), torch.from_numpy(b)))
    one = sample(4, seed=2)
    check(linalg.solve(a, one), torch.linalg.solve(torch.from_numpy(a), torch.from_numpy(one)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular(dtype, upper, unit):
    for size in (*SIZES, 0):
        a = sample(2, 1, size, size, dtype=dtype) / max(size, 1)
        a = a + np.eye(size, dtype=dtype)
        for left in (True, False):
            b = sample(3, size, 3, dtype=dtype) if left else sample(3, 3, size, dtype=dtype)
            options = {"upper": upper, "left": left, "unitriangular": unit}
            expected = torch.linalg.solve_triangular(
                torch.from_numpy(a), torch.from_numpy(b), **options
            )
            check(linalg.solve_triangular(a, b, **options), expected, dtype)
        b = sample(3, size, 3, dtype=dtype)
        for transpose in (False, True):
            ours = linalg.triangular_solve(b, a, upper, transpose, unit)
            theirs = torch.triangular_solve(
                torch.from_numpy(b), torch.from_numpy(a), upper, transpose, unit
            )
            check_all(ours, theirs, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("batch", BATCHES)
def test_cholesky(dtype, upper, batch):
    for size in (1, 4, 70):
        a = positive(*batch, size, size, dtype=dtype)
        t = torch.from_numpy(a)
        ours, theirs = linalg.cholesky(a, upper=upper), torch.linalg.cholesky(t, upper=upper)
        check(ours, theirs, dtype)
        b = sample(size, 2, dtype=dtype)
        expected = torch.cholesky_solve(torch.from_numpy(b), theirs, upper)
        check(linalg.cholesky_solve(b, theirs.numpy(), upper), expected, dtype)
        expected = torch.cholesky_inverse(theirs, upper)
        check(linalg.cholesky_inverse(theirs.numpy(), upper), expected, dtype)


def test_cholesky_ex_of_what_is_not_positive():
    a = np.stack([positive(4, 4), positive(4, 4) - 3 * np.eye(4), np.zeros((4, 4))])
    expected = torch.linalg.cholesky_ex(torch.from_numpy(a))
    factor, info = linalg.cholesky_ex(a)
    check(info, expected.info)
    check(factor[0], expected.L[0])
    b = np.array([[1.0, 2.0], [2.0, 1.0]])
    check_all(linalg.cholesky_ex(b), torch.linalg.cholesky_ex(torch.from_numpy(b)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 6, 4), (2, 4, 6), (70, 40), (3, 0), (0, 2, 2)])
def test_qr_and_reflectors(dtype, shape):
    a = sample(*shape, dtype=dtype)
    t = torch.from_numpy(a)
    for mode in ("reduced", "complete", "r"):
        check_all(linalg.qr(a, mode), torch.linalg.qr(t, mode), dtype)
    reflectors, tau = torch.geqrf(t)
    check_all(linalg.geqrf(a), (reflectors, tau), dtype)
    ours = reflectors.numpy(), tau.numpy()
    if shape[-2] >= shape[-1]:
        expected = torch.linalg.householder_product(reflectors, tau)
        check(linalg.householder_product(*ours), expected, dtype)
    for left in (True, False):
        rows = (shape[-2], 3) if left else (3, shape[-2])
        other = sample(*shape[:-2], *rows, dtype=dtype, seed=1)
        for transpose in (False, True):
            expected = torch.ormqr(reflectors, tau, torch.from_numpy(other), left, transpose)
            check(linalg.ormqr(*ours, other, left, transpose), expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 6, 4), (2, 4, 6), (3, 0), (0, 2, 2)])
def test_svd_and_its_children(dtype, shape):
    a = sample(*shape, dtype=dtype)
    t = torch.from_numpy(a)
    check(linalg.svdvals(a), torch.linalg.svdvals(t), dtype)
    for full in (True, False):
        u, s, vh = linalg.svd(a, full)
        expected = torch.linalg.svd(t, full)
        check(s, expected.S, dtype)
        assert (u.shape, vh.shape) == (expected.U.shape, expected.Vh.shape)
        count = s.shape[-1]
        rebuilt = (u[..., :count] * s[..., None, :]) @ vh[..., :count, :]
        np.testing.assert_allclose(rebuilt, a, atol=1e-5)
    check(linalg.pinv(a), torch.linalg.pinv(t), dtype)
    check(linalg.pinv(a, atol=1.0), torch.linalg.pinv(t, atol=1.0), dtype)
    check(linalg.pinv(a, rtol=0.5), torch.linalg.pinv(t, rtol=0.5), dtype)
    check(linalg.matrix_rank(a), torch.linalg.matrix_rank(t))
    check(linalg.matrix_rank(a, atol=1.5), torch.linalg.matrix_rank(t, atol=1.5))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues(dtype):
    a = sample(3, 5, 5, dtype=dtype)
    t = torch.from_numpy(a)
    for uplo in ("L", "U"):
        check(linalg.eigvalsh(a, uplo), torch.linalg.eigvalsh(t, uplo), dtype)
        values, vectors = linalg.eigh(a, uplo)
        check(values, torch.linalg.eigh(t, uplo).eigenvalues, dtype)
        assert vectors.dtype == dtype
    values, vectors = linalg.eig(a)
    assert values.dtype == vectors.dtype == torch.linalg.eig(t).eigenvectors.numpy().dtype
    np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], atol=1e-4)
    ours = np.sort_complex(linalg.eigvals(a))
    np.testing.assert_allclose(ours, np.sort_complex(torch.linalg.eigvals(t).numpy()), atol=1e-4)
    check(
        linalg.pinv(a, hermitian=True),
        torch.linalg.pinv(t, hermitian=True),
        dtype,
    )
    check(linalg.matrix_rank(a, hermitian=True), torch.linalg.matrix_rank(t, hermitian=True))


def test_not_finite_matrices():
    a = np.stack([np.eye(2), np.full((2, 2), np.nan)])
    t = torch.from_numpy(a)
    check(linalg.eigvalsh(a), torch.linalg.eigvalsh(t))
    check(linalg.eigh(a)[0], torch.linalg.eigh(t)[0])
    check(linalg.matrix_exp(a), torch.linalg.matrix_exp(t))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 3), (4, 4)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lstsq(driver, shape, dtype):
    a = sample(*shape, dtype=dtype)
    b = sample(*shape[:-1], 2, dtype=dtype, seed=1)
    ours = linalg.lstsq(a, b, driver=driver)
    theirs = torch.linalg.lstsq(torch.from_numpy(a), torch.from_numpy(b), driver=driver)
    check(ours.solution, theirs.solution, dtype)
    check(ours.residuals, theirs.residuals, dtype)
    check(ours.rank, theirs.rank)
    check(ours.singular_values, theirs.singular_values, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl(dtype, hermitian):
    for size in (1, 2, 6, 20):
        a = sample(3, size, size, dtype=dtype)
        diagonal = np.arange(size)
        a[0, diagonal, diagonal] = 0.0
        if size == 1:
            a = a + 1
        t = torch.from_numpy(a)
        ours = linalg.ldl_factor_ex(a, hermitian=hermitian)
        theirs = torch.linalg.ldl_factor_ex(t, hermitian=hermitian)
        check_all((ours[1], ours[2]), (theirs.pivots, theirs.info))
        check(ours[0], theirs.LD.tril(), dtype)
        b = sample(size, 2, dtype=dtype, seed=1)
        b = np.stack([b] * 3)
        expected = torch.linalg.ldl_solve(
            theirs.LD, theirs.pivots, torch.from_numpy(b), hermitian=hermitian
        )
        check(linalg.ldl_solve(*ours[:2], b, hermitian=hermitian), expected, dtype)


def test_matrix_exp_over_sizes_of_norm():
    for scale in (1e-8, 1e-3, 0.1, 1.0, 10.0, 50.0):
        a = sample(4, 6, 6) * scale
        a[0] *= 1e-3
        expected = torch.linalg.matrix_exp(torch.from_numpy(a))
        check(linalg.matrix_exp(a), expected)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.int64, np.int8, np.uint8, np.complex64, np.float16]
)
def test_cross(dtype):
    a = (sample(2, 3, 4) * 5).astype(dtype)
    b = (sample(1, 3, 4, seed=1) * 5).astype(dtype)
    for dim in (1, -2):
        expected = torch.linalg.cross(torch.from_numpy(a), torch.from_numpy(b), dim=dim)
        check(linalg.cross(a, b, dim), expected, np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.complex64])
def test_vander(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    check(linalg.vander(x), torch.linalg.vander(torch.from_numpy(x)), np.float32)
    check(linalg.vander(x, 5), torch.linalg.vander(torch.from_numpy(x), N=5), np.float32)


def half(*shape):
    return np.ones(shape, np.float16)


EYE, ZERO = np.eye(2), np.zeros((2, 2))
SINGULAR = np.stack([EYE, ZERO])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
NAN = np.stack([EYE, ZERO * np.nan])
ONE_MATRIX = [
    *("inv", "inv_ex", "cholesky", "cholesky_ex", "qr", "svd", "svdvals", "eigh", "eigvalsh"),
    *("eig", "det", "slogdet", "logdet", "matrix_rank", "pinv", "lu_factor"),
    *("lu", "ldl_factor_ex", "geqrf", "cholesky_inverse"),
]
WRONG_MATRICES = {
    "half": half(2, 2),
    "int": np.ones((2, 2), np.int64),
    "rectangular": np.ones((2, 3)),
    "vector": np.ones(3),
    "zero": ZERO,
    "singular": SINGULAR,
    "indefinite": np.stack([EYE, INDEFINITE]),
    "empty": np.ones((3, 0)),
}


def outcome(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except (RuntimeError, NotImplementedError, IndexError) as error:
        return type(error).__name__, str(error).splitlines()[0]
    return "passes"


@pytest.mark.parametrize("name", ONE_MATRIX)
@pytest.mark.parametrize("wrong", WRONG_MATRICES)
def test_refusals_of_one_matrix(name, wrong):
    a = WRONG_MATRICES[wrong]
    theirs = getattr(torch.linalg, name, None) or getattr(torch, name)
    assert outcome(getattr(linalg, name), a) == outcome(theirs, torch.from_numpy(a))


def _pairs():
    a = {"eye": EYE, "half": half(2, 2), "int": np.ones((2, 2), int), "wide": np.ones((2, 3))}
    a |= {"vector": np.ones(3), "zero": ZERO, "singular": SINGULAR}
    b = {"two": np.ones(2), "three": np.ones(3), "matrix": EYE, "tall": np.ones((3, 2))}
    b |= {"single": EYE.astype(np.float32), "batch": np.ones((5, 2, 2)), "half": half(2, 2)}
    b |= {"int": np.ones((2, 2), int)}
    rows = [(f"{x}-{y}", a[x], b[y]) for x in a for y in b]
    # (2, 2, 2) with (5, 2, 2) does not broadcast: the words of that error belong to broadcasting.
    return [row for row in rows if row[0] != "singular-batch"]


PAIR_CALLS = {
    "solve": (linalg.solve, torch.linalg.solve),
    "solve_right": (
        lambda a, b: linalg.solve(a, b, left=False),
        lambda a, b: torch.linalg.solve(a, b, left=False),
    ),
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=True),
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
    ),
    "triangular_solve": (
        lambda a, b: linalg.triangular_solve(b, a),
        lambda a, b: torch.triangular_solve(b, a),
    ),
    "cholesky_solve": (
        lambda a, b: linalg.cholesky_solve(b, a),
        lambda a, b: torch.cholesky_solve(b, a),
    ),
    "lstsq": (linalg.lstsq, torch.linalg.lstsq),
    "cross": (linalg.cross, torch.linalg.cross),
}


@pytest.mark.parametrize("name", PAIR_CALLS)
def test_refusals_of_pairs(name):
    ours, theirs = PAIR_CALLS[name]
    for label, a, b in _pairs():
        if name == "cross" and a.dtype != b.dtype:
            continue  # the operator promotes before its kernel runs
        expected = outcome(theirs, torch.from_numpy(a), torch.from_numpy(b))
        assert outcome(ours, a, b) == expected, label


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9, 6, 6), (8, 40, 33), (7, 33, 40), (2, 130, 140), (150, 70)])
def test_lu_of_many_and_of_large_matrices(dtype, shape):
    a = sample(*shape, dtype=dtype, seed=3)
    check_all(linalg.lu(a), torch.linalg.lu(torch.from_numpy(a)), dtype)
