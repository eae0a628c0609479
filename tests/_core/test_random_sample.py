"""Permutations and samplers: recorded numbers, laws."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flambeau._core import random_sample
from flambeau._core.generator import Generator

INT64 = np.dtype(np.int64)


def seeded(seed: int = 42) -> Generator:
    return Generator().manual_seed(seed)


def test_recorded_numbers() -> None:
    assert random_sample.randperm(10, INT64, seeded()).tolist() == [2, 6, 1, 8, 4, 5, 0, 9, 3, 7]
    longer = random_sample.randperm(50000, INT64, seeded())
    assert hashlib.sha256(longer.tobytes()).hexdigest().startswith("55ecb6cd4e1eb482")
    weights = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    assert random_sample.multinomial(weights, 6, True, seeded()).tolist() == [0, 0, 1, 0, 2, 2]
    assert random_sample.multinomial(weights, 3, False, seeded()).tolist() == [3, 1, 2]
    rates = np.array([0.5, 3, 20, 1e4], np.float32)
    assert random_sample.poisson(rates, seeded()).tolist() == [0, 1, 28, 9872]
    counts = np.array([10, 100, 1000], np.float32)
    chances = np.array([0.3, 0.5, 0.9], np.float32)
    assert random_sample.binomial(counts, chances, seeded()).tolist() == [1, 43, 899]
    gammas = random_sample.standard_gamma(np.array([0.3, 1, 20], np.float32), seeded())
    expected = ["0x1.3ced34p+0", "0x1.aedf96p-1", "0x1.543be2p+3"]
    assert gammas.tolist() == [float.fromhex(text) for text in expected]


def swapped(targets: list[int]) -> list[int]:
    order = list(range(len(targets) + 1))
    for place, target in enumerate(targets):
        order[place], order[target] = order[target], order[place]
    return order


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=60))
def test_swaps_followed_at_once_are_the_swaps_in_turn(shares: list[float]) -> None:
    size = len(shares) + 1
    targets = [place + int(share * (size - place)) for place, share in enumerate(shares)]
    result = random_sample._follow_swaps(np.array(targets))
    assert result.tolist() == swapped(targets)


@pytest.mark.parametrize("size", [0, 1, 2, 1000, 1001, 20000])
def test_permutations_hold_every_number_once(size: int) -> None:
    order = random_sample.randperm(size, INT64, seeded())
    np.testing.assert_array_equal(np.sort(order), np.arange(size))


def test_the_variant_for_huge_sizes_permutes() -> None:
    # sizes from 214748364 on take gigabytes; the algorithm itself is tried on few elements
    order = random_sample._shuffled_inside_out(20000, seeded())
    np.testing.assert_array_equal(np.sort(order), np.arange(20000))
    targets = [word % (place + 1) for place, word in enumerate(seeded().words64(6).tolist())]
    expected: list[int] = []
    for place, target in enumerate(targets):
        expected.append(place)
        expected[place] = expected[target]
        expected[target] = place
    assert random_sample._shuffled_inside_out(6, seeded()).tolist() == expected


def test_without_replacement_draws_differ() -> None:
    weights = np.array([[0.0, 1, 2, 3], [4, 0, 1, 1]], np.float64)
    for seed in range(50):
        drawn = random_sample.multinomial(weights, 3, False, seeded(seed))
        assert sorted(drawn[0].tolist()) == [1, 2, 3]
        assert sorted(drawn[1].tolist()) == [0, 2, 3]


def test_frequencies_follow_the_weights() -> None:
    weights = np.array([0.0, 1.0, 3.0], np.float32)
    drawn = random_sample.multinomial(weights, 40000, True, seeded())
    shares = np.bincount(drawn, minlength=3) / 40000
    np.testing.assert_allclose(shares, [0, 0.25, 0.75], atol=0.01)


@pytest.mark.parametrize("rate", [0.3, 4.0, 15.0, 900.0])
def test_poisson_mean_and_variance(rate: float) -> None:
    drawn = random_sample.poisson(np.full(20000, rate), seeded())
    assert abs(drawn.mean() - rate) < 4 * np.sqrt(rate / 20000)
    assert abs(drawn.var() / rate - 1) < 0.05


@pytest.mark.parametrize("alpha", [0.4, 1.0, 7.5])
def test_gamma_mean_and_variance(alpha: float) -> None:
    drawn = random_sample.standard_gamma(np.full(20000, alpha), seeded())
    assert abs(drawn.mean() - alpha) < 4 * np.sqrt(alpha / 20000)
    assert abs(drawn.var() / alpha - 1) < 0.1


@pytest.mark.parametrize(("count", "chance"), [(10, 0.2), (10, 0.9), (400, 0.3), (400, 0.8)])
def test_binomial_mean_and_variance(count: int, chance: float) -> None:
    drawn = random_sample.binomial(np.full(10000, float(count)), np.full(10000, chance), seeded())
    variance = count * chance * (1 - chance)
    assert abs(drawn.mean() - count * chance) < 4 * np.sqrt(variance / 10000)
    assert abs(drawn.var() / variance - 1) < 0.1
    assert drawn.min() >= 0
    assert drawn.max() <= count


def test_edges() -> None:
    generator = seeded()
    edges = np.array([0.0, 5.0, 5.0])
    chances = np.array([0.5, 0.0, 1.0])
    assert random_sample.binomial(edges, chances, generator).tolist() == [0, 0, 5]
    assert random_sample.poisson(np.zeros(3), generator).tolist() == [0, 0, 0]
    assert random_sample.standard_gamma(np.zeros(1), generator)[0] == np.finfo(np.float64).tiny
    np.testing.assert_array_equal(generator.get_state(), seeded().get_state())
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        random_sample.poisson(np.array([-1.0]), generator)


def test_dirichlet_rows_sum_to_one() -> None:
    shares = random_sample.dirichlet(np.full((50, 4), 0.7, np.float32), seeded())
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-6)


def test_slopes_only_where_leaky() -> None:
    values = np.array([-1.0, 2.0, 0.0, 3.0], np.float32)
    noise = random_sample.rrelu_noise(values, 0.125, 0.5, seeded())
    assert noise[[1, 3]].tolist() == [1, 1]
    assert ((noise[[0, 2]] >= 0.125) & (noise[[0, 2]] < 0.5)).all()
