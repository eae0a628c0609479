"""Sums over flat vectors: right, and in a fixed order of rounding."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.optim.flat import Flat, dot, multiply_add, total

SIZES = [1, 3, 7, 8, 13, 16, 18, 24, 31, 33, 100, 513, 5000]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_sums(size: int, dtype: type) -> None:
    rng = np.random.default_rng(size)
    one, other = rng.standard_normal((2, size)).astype(dtype)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    exact_one, exact_other = one.astype(np.float64), other.astype(np.float64)
    assert abs(dot(one, other) - exact_one @ exact_other) < tolerance * size
    assert abs(total(one) - exact_one.sum()) < tolerance * size
    assert dot(one, other).dtype == total(one).dtype == dtype


def test_the_order_of_an_inner_product() -> None:
    """Huge terms cancel within a partial sum, and take the small ones before them along."""
    values = np.ones(32, np.float32)
    values[0], values[16] = 2.0**60, -(2.0**60)
    assert dot(values, np.ones(32, np.float32)) == 30  # both in the same partial sum
    values[16], values[31] = 1, -(2.0**60)
    assert dot(values, np.ones(32, np.float32)) < 30


def test_a_product_and_a_sum_are_rounded_once() -> None:
    one = np.array([1 + 2.0**-12], np.float32)
    found = multiply_add(one, one[0], np.array([-1 - 2.0**-11], np.float32))
    assert found == np.float32(2.0**-24)  # rounded twice it were 0


def test_parameters_as_one_vector() -> None:
    first = torch.zeros(2, 3, requires_grad=True)
    second = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
    (first * torch.arange(6.0).reshape(2, 3)).sum().backward()
    flat = Flat([first, second])
    assert flat.grad().tolist() == [0, 1, 2, 3, 4, 5, 0, 0, 0, 0]
    values = flat.copy()
    with torch.no_grad():
        flat.move(2.0, np.arange(10, dtype=np.float32))
    assert first.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert second.tolist() == [12 + 14j, 16 + 18j]
    flat.restore(values)
    assert first.tolist() == [[0, 0, 0]] * 2
