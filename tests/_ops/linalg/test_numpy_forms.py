"""Identities and the contract of the linear algebra kernels, with NumPy as the oracle."""

import numpy as np
import pytest

from flambeau._ops.linalg import by_name as linalg

RANDOM = np.random.RandomState(0)
SIZES = [1, 3, 32, 33, 100]


def sample(*shape, dtype=np.float64):
    values = RANDOM.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RANDOM.standard_normal(shape)
    return values.astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_lu_rebuilds_its_matrix(size, dtype):
    for shape in ((2, size, size), (size + 3, size), (size, size + 3)):
        a = sample(*shape, dtype=dtype)
        before = a.copy()
        permutation, lower, upper = linalg.lu(a)
        np.testing.assert_allclose(permutation @ lower @ upper, a, atol=1e-4)
        np.testing.assert_array_equal(a, before)
        assert np.abs(lower).max() <= 1.5 and lower.dtype == dtype


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("upper", [True, False])
def test_triangular_ignores_the_other_half(size, upper):
    a = np.tril(sample(size, size)) / size + np.eye(size)
    a = a.T if upper else a
    b = sample(2, size, 3)
    full = a + np.triu(np.full((size, size), np.nan), 1).T if upper else a
    x = linalg.solve_triangular(full, b, upper=upper)
    np.testing.assert_allclose(a @ x, b, atol=1e-9)
    y = linalg.solve_triangular(a, b.mT, upper=upper, left=False)
    np.testing.assert_allclose(y @ a, b.mT, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_reflectors_rebuild_q(dtype):
    a = sample(2, 9, 5, dtype=dtype)
    reflectors, tau = linalg.geqrf(a)
    q = linalg.householder_product(reflectors, tau)
    np.testing.assert_allclose(q @ np.triu(reflectors[..., :5, :]), a, atol=1e-5)
    np.testing.assert_allclose(
        linalg.ormqr(reflectors, tau, a, transpose=True)[..., 5:, :], 0, atol=1e-5
    )
    assert q.dtype == dtype


@pytest.mark.parametrize("hermitian", [True, False])
def test_ldl_solves_indefinite_systems(hermitian):
    a = sample(12, 12, dtype=np.complex128)
    a = a + (a.conj() if hermitian else a).T
    a[np.arange(12), np.arange(12)] = 0
    b = sample(12, 2, dtype=np.complex128)
    factors, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    assert (pivots < 0).any()
    x = linalg.ldl_solve(factors, pivots, b, hermitian=hermitian)
    np.testing.assert_allclose(a @ x, b, atol=1e-9)


def test_matrix_exp_of_known_matrices():
    angle = 40.0
    a = np.array([[0.0, -angle], [angle, 0.0]])
    cosine, sine = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose(linalg.matrix_exp(a), [[cosine, -sine], [sine, cosine]], atol=1e-12)
    nilpotent = np.triu(np.ones((3, 3), np.float32), 1)
    expected = [[1, 1, 1.5], [0, 1, 1], [0, 0, 1]]
    np.testing.assert_allclose(linalg.matrix_exp(nilpotent), expected, rtol=1e-6)
    assert linalg.matrix_exp(nilpotent.astype(np.float16)).dtype == np.float16


def test_failures_name_the_batch_element():
    a = np.stack([np.eye(2), np.zeros((2, 2))])
    with pytest.raises(
        linalg.LinAlgError, match=r"\(Batch element 1\): The leading|minor of order 1"
    ):
        linalg.cholesky(a)
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 1"):
        linalg.inv(a)
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\): The solver failed"):
        linalg.solve(a, np.ones((2, 1)))
    assert issubclass(linalg.LinAlgError, RuntimeError)
