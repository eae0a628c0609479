"""Distributions into arrays: recorded numbers, order of memory, bounds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from flambeau._core import random_fill
from flambeau._core.generator import Generator

Fill = Callable[[np.ndarray, Generator], np.ndarray]

FILLS: dict[str, Fill] = {
    "uniform_": lambda out, generator: random_fill.uniform_(out, -1.0, 3.0, generator),
    "normal_": lambda out, generator: random_fill.normal_(out, 1.0, 2.0, generator),
    "bernoulli_": lambda out, generator: random_fill.bernoulli_(out, 0.25, generator),
    "exponential_": lambda out, generator: random_fill.exponential_(out, 2.0, generator),
    "cauchy_": lambda out, generator: random_fill.cauchy_(out, 0.0, 1.0, generator),
    "log_normal_": lambda out, generator: random_fill.log_normal_(out, 0.0, 0.5, generator),
    "geometric_": lambda out, generator: random_fill.geometric_(out, 0.2, generator),
}
MEANS = {
    "uniform_": 1.0,
    "normal_": 1.0,
    "bernoulli_": 0.25,
    "exponential_": 0.5,
    "log_normal_": 1.1331,
    "geometric_": 5.0,
}
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def seeded() -> Generator:
    return Generator().manual_seed(42)


def test_recorded_numbers() -> None:
    small = random_fill.normal_(np.empty(5, np.float32), 0.0, 1.0, seeded())
    expected = [
        "0x1.58c55cp-2",
        "0x1.07cd3ap-3",
        "0x1.e02dcep-3",
        "0x1.d7b8d8p-3",
        "-0x1.1f7384p+0",
    ]
    assert small.tolist() == [float.fromhex(text) for text in expected]
    exponential = random_fill.exponential_(np.empty(3, np.float32), 1.0, seeded())
    expected = ["0x1.ead0ccp-5", "0x1.0a2468p-4", "0x1.0e2a62p-3"]
    assert exponential.tolist() == [float.fromhex(text) for text in expected]
    mask = random_fill.bernoulli_(np.empty(12, np.int64), 0.5, seeded())
    assert mask.tolist() == [1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1]
    trials = random_fill.geometric_(np.empty(5, np.int64), 0.2, seeded())
    assert trials.tolist() == [13, 13, 10, 14, 3]


def test_recorded_blocks() -> None:
    values = random_fill.normal_(np.empty(100000, np.float32), 0.0, 1.0, seeded())
    assert hashlib.sha256(values.tobytes()).hexdigest().startswith("d577cf2f85de7638")


@pytest.mark.parametrize("name", MEANS)
def test_means(name: str) -> None:
    values = FILLS[name](np.empty(200000, np.float32), seeded())
    assert abs(values.mean(dtype=np.float64) - MEANS[name]) < 0.02 * (1 + MEANS[name])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FILLS)
def test_out_is_filled_and_returned(name: str, dtype: type) -> None:
    for shape in [(), (0,), (3,), (4, 8), (2, 0, 3)]:
        out = np.full(shape, -7.0, dtype)
        assert FILLS[name](out, seeded()) is out
        assert not (out == -7).any()


@pytest.mark.parametrize("name", FILLS)
def test_permuted_arrays_fill_in_memory_order(name: str) -> None:
    memory = np.empty((3, 5), np.float32)
    FILLS[name](memory.T, seeded())
    straight = FILLS[name](np.empty((3, 5), np.float32), seeded())
    np.testing.assert_array_equal(memory, straight)


@pytest.mark.parametrize("name", FILLS)
def test_slices_leave_the_rest_alone(name: str) -> None:
    memory = np.full((6, 10), -7.0)
    FILLS[name](memory[::2, 1:4], seeded())
    assert not (memory[::2, 1:4] == -7).any()
    memory[::2, 1:4] = -7
    assert (memory == -7).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_stays_below_its_end(dtype: type) -> None:
    values = random_fill.uniform_(np.empty(100000, dtype), 0.0, 1.0, seeded())
    assert (values >= 0).all()
    assert (values < 1).all()


def test_complex_numbers_are_pairs_of_reals() -> None:
    values = random_fill.normal_(np.empty(50000, np.complex64), 0.0, 1.0, seeded())
    assert abs((np.abs(values) ** 2).mean() - 1) < 0.03
    column = np.empty((4, 3), np.complex128)[:, 1]
    random_fill.uniform_(column, 0.0, 1.0, seeded())
    reals = Generator().manual_seed(42).units64(8)
    np.testing.assert_array_equal(column, reals[0::2] + 1j * reals[1::2])


@pytest.mark.parametrize("dtype", FLOATS)
def test_probabilities_broadcast(dtype: type) -> None:
    chances = np.array([0.0, 1.0, 0.5], dtype)
    out = random_fill.bernoulli_tensor_(np.empty((1000, 3), bool), chances, seeded())
    assert not out[:, 0].any()
    assert out[:, 1].all()
    assert 0.4 < out[:, 2].mean() < 0.6


def test_probabilities_outside_are_refused() -> None:
    for chance in (-0.1, 1.1, float("nan")):
        with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1"):
            random_fill.bernoulli_tensor_(np.empty(1), np.array([chance]), seeded())
