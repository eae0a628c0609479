"""Box and Muller: accuracy of the polynomials, exactness of the fused step."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flambeau._core import random_normal
from flambeau._core.generator import Generator


def test_logarithm_is_close() -> None:
    values = np.append(1 - Generator().manual_seed(1).units(20000), np.float32(1))
    result = random_normal.log_single(values.astype(np.float32))
    expected = np.log(values.astype(np.float64))
    np.testing.assert_allclose(result, expected, rtol=3e-7, atol=1e-10)
    assert result[-1] == 0


def test_cosine_and_sine_are_close() -> None:
    angles = np.linspace(0, 2 * math.pi, 20001, dtype=np.float32)
    cosine, sine = random_normal.cos_sin_single(angles)
    np.testing.assert_allclose(cosine, np.cos(angles.astype(np.float64)), atol=1e-7)
    np.testing.assert_allclose(sine, np.sin(angles.astype(np.float64)), atol=2e-7)


@pytest.mark.parametrize(
    ("draw", "transform"),
    [
        ("units", random_normal.box_muller_single),
        ("units64", random_normal.box_muller_double),
    ],
)
def test_blocks_are_normal(draw: str, transform: object) -> None:
    units = getattr(Generator().manual_seed(5), draw)(160000).reshape(-1, 16)
    values = transform(units, 3.0, 2.0)
    assert values.shape == units.shape
    assert values.dtype == units.dtype
    assert abs(values.mean() - 3) < 0.02
    assert abs(values.std() - 2) < 0.02


FINITE = st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-60)


@given(st.lists(FINITE, min_size=1, max_size=5), FINITE, FINITE)
def test_fused_multiply_add_rounds_once(values: list[float], factor: float, addend: float) -> None:
    result = random_normal.fused_multiply_add(np.array(values), factor, addend)
    exact = [float(Fraction(value) * Fraction(factor) + Fraction(addend)) for value in values]
    assert result.tolist() == exact


def test_c_library_functions_by_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "log", lambda values: np.log2(values))
    random_normal.libm.cache_clear()
    slow = random_normal.libm("log")
    values = np.array([[0.5, 1.0], [2.0, 0.0]])
    with np.errstate(divide="ignore"):
        result = slow(values)
    random_normal.libm.cache_clear()
    assert result.tolist() == [[math.log(0.5), 0.0], [math.log(2.0), -math.inf]]
