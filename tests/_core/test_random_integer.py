"""Random integers: recorded numbers, ranges, what a dtype cannot hold."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flambeau._core.generator import Generator
from flambeau._core.random_integer import random_, random_from_to_


def seeded() -> Generator:
    return Generator().manual_seed(42)


def test_recorded_numbers() -> None:
    digits = random_from_to_(np.empty(8, np.int64), 0, 10, seeded())
    assert digits.tolist() == [2, 7, 6, 4, 6, 5, 0, 4]
    wide = random_from_to_(np.empty(3, np.int64), 0, 2**40, seeded())
    assert wide.tolist() == [441507790259, 395924837646, 458615280711]
    full = random_(np.empty(3, np.int64), seeded())
    assert full.tolist() == [6909045637428952499, 8314211556539077902, 4279532810384561223]


@pytest.mark.parametrize("extent", [1, 2, 3, 10, 2**28 - 1, 2**28, 2**32, 2**40 + 1])
def test_numbers_are_remainders(extent: int) -> None:
    result = random_from_to_(np.empty(1000, np.int64), -5, extent - 5, seeded())
    draws = seeded().words(1000) if extent < 2**28 else seeded().words64(1000)
    assert result.tolist() == [word % extent - 5 for word in draws.tolist()]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64])
def test_without_bounds_all_but_negative(dtype: type) -> None:
    values = random_(np.empty(10000, dtype), seeded()).astype(np.int64)
    largest = np.iinfo(dtype).max
    assert values.min() >= 0
    assert values.max() > 0.9 * largest


@pytest.mark.parametrize(("dtype", "digits"), [(np.float16, 11), (ml_dtypes.bfloat16, 8)])
def test_floats_get_whole_numbers_they_can_hold(dtype: type, digits: int) -> None:
    values = random_(np.empty(100000, dtype), seeded()).astype(np.int64)
    assert values.min() == 0
    assert values.max() == 2**digits


def test_a_float_range_stays_below_its_end() -> None:
    with pytest.warns(UserWarning, match="to - 1 is out of bounds"):
        values = random_from_to_(np.empty(1000000, np.float16), 0, 65504, seeded())
    assert values.max() < 65504


@pytest.mark.parametrize(
    ("dtype", "low", "high", "message"),
    [
        (np.int8, 0, 300, "to - 1 is out of bounds for signed char"),
        (np.uint8, -1, 3, "from is out of bounds for unsigned char"),
        (np.int64, 5, 5, "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"),
        (np.bool_, 0, 3, "to - 1 is out of bounds for bool"),
        (np.int32, -(2**63), None, "random_full_64_bits_range_kernel_cpu handles only"),
        (np.complex64, 0, 3, "check_random_bounds handles only"),
        (np.complex64, 0, None, "random_from_to_impl handles only"),
    ],
)
def test_errors(dtype: type, low: int, high: int | None, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        random_from_to_(np.empty(3, dtype), low, high, seeded())


def test_dtypes_without_a_kernel() -> None:
    with pytest.raises(NotImplementedError, match="\"random_kernel_cpu\" .* for 'UInt16'"):
        random_(np.empty(3, np.uint16), seeded())


def test_empty_arrays_draw_nothing() -> None:
    generator = seeded()
    random_(np.empty(0, np.int64), generator)
    random_from_to_(np.empty((3, 0), np.int64), 0, 5, generator)
    np.testing.assert_array_equal(generator.get_state(), seeded().get_state())
