"""The kernels of linear algebra against what NumPy makes of the same matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.linalg import cholesky, launch, lu, triangular
from flambeau._runtime import choice

DTYPES = [np.float32, np.float64]


def generator() -> np.random.Generator:
    seed = int(np.random.default_rng().integers(1 << 30))
    print("seed", seed)
    return np.random.default_rng(seed)


def both(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> tuple[Any, Any]:
    """What the kernel and what NumPy answers."""
    found = []
    for limit in (0, choice.NEVER):
        monkeypatch.setitem(choice.LIMITS, "linalg", limit)
        found.append(function())
    return found[0], found[1]


def check_close(found: np.ndarray, expected: np.ndarray, factor: float) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = factor * np.finfo(found.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=tolerance,
                               atol=tolerance * np.abs(expected).max(initial=1))  # fmt: skip


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_systems(monkeypatch: pytest.MonkeyPatch, dtype: Any, unit: bool, left: bool,
                            upper: bool) -> None:  # fmt: skip
    """The other triangle holds nan, and B may be shared by all matrices of a batch."""
    rng = generator()
    for batch, size, columns in (((), 1, 1), ((3,), 7, 3), ((2, 1), 70, 5), ((), 150, 40)):
        a = rng.standard_normal((*batch, size, size)) / size + 2 * np.eye(size)
        outside = np.tri(size, k=-1, dtype=bool)
        a[..., outside if upper else outside.T] = np.nan
        b = rng.standard_normal((size, columns) if left else (columns, size)).astype(dtype)
        a = a.astype(dtype)
        found, expected = both(monkeypatch, lambda a=a, b=b: triangular.substitute(
            a, b, upper=upper, left=left, unit=unit))  # fmt: skip
        if size > triangular.BLOCK:  # there products of whole blocks read nothing but numbers
            assert not np.isnan(found).any()
        check_close(found, expected, 500)


def test_zero_on_the_diagonal_gives_infinities(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.array([[0.0, 0.0], [1.0, 1.0]], np.float32)
    b = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 1.0]], np.float32)
    found, expected = both(monkeypatch, lambda: triangular.substitute(a, b, upper=False))
    np.testing.assert_array_equal(found, expected)
    assert np.isinf(found[0, :2]).all() and np.isnan(found[0, 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    """Tall and wide matrices, batches of small ones, equal pivots, columns of zeros."""
    rng = generator()
    for shape in ((1, 1), (40, 8, 8), (9, 5, 12), (9, 12, 5), (150, 70), (2, 70, 150)):
        a = rng.standard_normal(shape)
        a[..., 0, :] = a[..., -1, :].round()
        if shape[-1] > 2:
            a[..., 1] = 0
        a = a.astype(dtype)
        found, expected = both(monkeypatch, lambda a=a: lu.lu_factor_ex(a))
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_array_equal(found[2], expected[2])
        check_close(found[0], expected[0], 3000)


def test_a_nan_is_the_pivot(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.array([[1.0, 2.0, 3.0], [np.nan, 5.0, 6.0], [np.nan, 1.0, 2.0]])
    found, expected = both(monkeypatch, lambda: lu.lu_factor_ex(a))
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


def test_bits_are_the_same_for_any_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((6, 20, 20)), rng.standard_normal((6, 20, 50))
    monkeypatch.setitem(choice.LIMITS, "linalg", 0)
    one = triangular.substitute(a, b, upper=True), lu.lu_factor_ex(a)[0]
    monkeypatch.setattr(launch, "TASK_NUMBERS", 64)
    monkeypatch.setattr(launch, "get_num_threads", lambda: 3)
    several = triangular.substitute(a, b, upper=True), lu.lu_factor_ex(a)[0]
    assert [x.tobytes() for x in one] == [x.tobytes() for x in several]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(monkeypatch: pytest.MonkeyPatch, dtype: Any, upper: bool) -> None:
    """Only one triangle is read; matrices that are not positive-definite are told by their info."""
    rng = generator()
    for shape in ((1, 1), (50, 8, 8), (2, 3, 13, 13), (32, 32)):
        a = rng.standard_normal(shape)
        a = a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])
        outside = np.tri(shape[-1], k=-1, dtype=bool)
        a[..., outside if upper else outside.T] = np.nan
        a = a.astype(dtype)
        for broken in (False, True):
            if broken:
                a[..., -1, -1] = -1
            pairs = both(monkeypatch, lambda a=a: cholesky.cholesky_ex(a, upper=upper))
            for found, expected in zip(*pairs, strict=True):
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
            assert (pairs[0][1] == (shape[-1] if broken else 0)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    rng = generator()
    for shape in ((7, 1, 1), (60, 8, 8), (2, 3, 32, 32)):
        a = rng.standard_normal(shape).astype(dtype)
        a[:1, ..., 0] = 0
        found, expected = both(monkeypatch, lambda a=a: lu.det(a))
        check_close(found, expected, 100)
        assert (found[:1] == 0).all()
