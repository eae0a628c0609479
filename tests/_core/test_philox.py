"""Philox's words and layout, the generator of a CUDA device, and what is drawn from it."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._core import philox, philox_numbers, philox_sample, special_function_unit
from flambeau._core.generator import Generator
from flambeau._core.philox import Grid
from flambeau._core.philox_generator import PhiloxGenerator

SMALL = Grid(2, 512)
"""A card of 1,024 threads: several rounds for small arrays."""


class OnHost(PhiloxGenerator):
    """The generator of a device that need not be there."""

    __slots__ = ()

    def __init__(self, seed: int = 0, offset: int = 0, grid: Grid = SMALL) -> None:
        Generator.__init__(self)
        self.grid = grid
        self.manual_seed(seed).set_offset(offset)


def one(seed: int, thread: int, counter: int) -> list[int]:
    words = philox.blocks(seed, np.array([thread], np.uint64), counter)
    return [int(word[0]) for word in words]


@pytest.mark.parametrize(("counter", "key", "wanted"), [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
])  # fmt: skip
def test_the_answers_that_philox_was_published_with(counter: str, key: str, wanted: str) -> None:
    c, k = ([int(word, 16) for word in text.split()] for text in (counter, key))
    assert one(k[0] | k[1] << 32, c[2] | c[3] << 32, c[0] | c[1] << 32) == [
        int(word, 16) for word in wanted.split()
    ]


def test_a_card_has_so_many_threads_and_they_take_rounds() -> None:
    assert [Grid().threads(n) for n in (1, 256, 257, 10**9)] == [256, 256, 512, 270336]
    assert [SMALL.rounds(n, 4) for n in (1, 4096, 4097)] == [1, 1, 2]
    assert [SMALL.rounds(n, 2) for n in (2048, 2049)] == [1, 2]


@pytest.mark.parametrize("size", [1, 255, 1000, 5000, 20000])
def test_each_element_has_its_word(size: int) -> None:
    out = np.empty(size, np.int64)
    generator = OnHost(11, 24)
    philox_numbers.random_from_to_(out, 0, 1 << 27, generator)
    threads = SMALL.threads(size)
    for place in np.random.default_rng(size).integers(0, size, 40).tolist():
        turn, thread = divmod(place, threads)
        word = one(11, thread, 6 + turn // 4)[turn % 4]
        assert out[place] == word % (1 << 27), place
    assert generator.get_offset() == 24 + 4 * math.ceil(size / threads / 4)


def test_two_words_make_a_number_of_64_bits() -> None:
    out = np.empty(3000, np.int64)
    philox_numbers.random_from_to_(out, -(1 << 63), None, OnHost(3))
    place = 2 * 1024 + 5  # the third number of thread 5: its second round
    high, low, *_ = one(3, 5, 1)
    assert int(out[place]) & (1 << 64) - 1 == high << 32 | low


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_uniform_numbers_keep_their_bounds(dtype: Any) -> None:
    out = philox_numbers.uniform_(np.empty(100_000, dtype), -2.0, 3.0, OnHost(5))
    wide = out.astype(np.float64)
    assert wide.min() >= -2 and wide.max() < 3
    assert abs(wide.mean() - 0.5) < 0.02 and abs(wide.std() - 5 / math.sqrt(12)) < 0.02


def test_the_other_distributions_have_their_moments() -> None:
    def of(name: str, *parameters: float, dtype: Any = np.float32) -> np.ndarray:
        out = np.empty(200_000, dtype)
        return getattr(philox_numbers, name)(out, *parameters, OnHost(8)).astype(np.float64)

    for dtype in (np.float32, np.float64):
        normal = of("normal_", 1.0, 2.0, dtype=dtype)
        assert abs(normal.mean() - 1) < 0.02 and abs(normal.std() - 2) < 0.02
        assert abs(np.mean((normal - 1) ** 4) / 16 - 3) < 0.1
        assert abs(np.log(of("log_normal_", 1.0, 0.5, dtype=dtype)).std() - 0.5) < 0.01
        assert abs(of("exponential_", 2.0, dtype=dtype).mean() - 0.5) < 0.01
        assert abs(np.median(of("cauchy_", 3.0, 2.0, dtype=dtype)) - 3) < 0.03
        assert abs(of("geometric_", 0.2, dtype=dtype).mean() - 5) < 0.05
        assert abs(of("bernoulli_", 0.3, dtype=dtype).mean() - 0.3) < 0.01


def test_normal_numbers_come_from_sine_and_cosine_of_one_block() -> None:
    threads = SMALL.threads(5000)
    out = philox_numbers.normal_(np.empty(5000, np.float64), 0.0, 1.0, OnHost(4))
    words = one(4, 9, 0)
    low, turn = (((x ^ y << 21) & (1 << 53) - 1) * 2.0**-53 for x, y in (words[:2], words[2:]))
    radius, angle = math.sqrt(-2 * math.log(low + 2.0**-54)), 2 * math.pi * (turn + 2.0**-54)
    assert out[9] == pytest.approx(radius * math.sin(angle), rel=1e-12)
    assert out[9 + threads] == pytest.approx(radius * math.cos(angle), rel=1e-12)


def test_strided_arrays_are_filled_in_the_order_of_memory() -> None:
    flat = philox_numbers.normal_(np.empty(60, np.float32), 0.0, 1.0, OnHost(1))
    turned = np.empty((4, 5, 3), np.float32).transpose(2, 0, 1)
    assert (
        philox_numbers.normal_(turned, 0.0, 1.0, OnHost(1)).transpose(1, 2, 0).ravel() == flat
    ).all()
    gaps = np.zeros((6, 20), np.float32)
    philox_numbers.normal_(gaps[:, ::2], 0.0, 1.0, OnHost(1))
    assert (gaps[:, ::2].ravel() == flat).all() and not gaps[:, 1::2].any()
    pairs = philox_numbers.normal_(np.empty(30, np.complex64), 0.0, math.sqrt(2), OnHost(1))
    assert pairs.view(np.float32) == pytest.approx(flat, rel=1e-6)


def test_nothing_is_taken_for_nothing() -> None:
    generator = OnHost(1)
    philox_numbers.normal_(np.empty((0, 3), np.float32), 0.0, 1.0, generator)
    assert generator.get_offset() == 0


# ---- the special function unit


def test_the_units_sine_and_cosine_are_near_the_true_ones() -> None:
    angle = np.linspace(-math.pi, math.pi, 200_001).astype(np.float32)
    wide = angle.astype(np.float64)
    assert np.abs(special_function_unit.sine(angle) - np.sin(wide)).max() < 2.0**-20
    assert np.abs(special_function_unit.cosine(angle) - np.cos(wide)).max() < 2.0**-20
    assert special_function_unit.sine(np.zeros(1, np.float32))[0] == 0


# ---- samplers


def test_permutations_hold_every_number_once() -> None:
    for size in (0, 1, 2, 5, 300, 5000):
        generator = OnHost(size)
        order = philox_numbers.randperm(size, np.dtype(np.int64), generator)
        assert sorted(order.tolist()) == list(range(size))
        ties = 4 * math.ceil(size / 4)
        assert generator.get_offset() == (4 * SMALL.rounds(size, 2) + ties if size else 0)


def test_equal_keys_are_shuffled() -> None:
    order, keys = np.arange(9), np.array([1, 1, 2, 3, 3, 3, 3, 4, 5])
    seen = set()
    for seed in range(60):
        mixed = order.copy()
        philox_sample._shuffle_ties(mixed, keys, OnHost(seed))
        assert sorted(mixed[:2]) == [0, 1] and sorted(mixed[3:7]) == [3, 4, 5, 6]
        assert mixed[2] == 2 and mixed[7:].tolist() == [7, 8]
        seen.add(tuple(mixed.tolist()))
    assert len(seen) > 20


def test_samplers_have_their_means() -> None:
    many = np.full(40_000, 3.5, np.float32)
    assert abs(philox_numbers.poisson(many, OnHost(1)).mean() - 3.5) < 0.05
    assert abs(philox_numbers.poisson(many[:300] * 40, OnHost(1)).mean() - 140) < 4
    assert abs(philox_numbers.poisson(many * 2000, OnHost(1)).mean() - 7000) < 3
    assert abs(philox_numbers.standard_gamma(many, OnHost(1)).mean() - 3.5) < 0.05
    assert abs(philox_numbers.standard_gamma(many / 7, OnHost(1)).mean() - 0.5) < 0.02
    shares = philox_numbers.dirichlet(np.tile(np.float32([1, 3]), (9000, 1)), OnHost(1))
    assert shares.sum(-1) == pytest.approx(np.ones(9000)) and abs(shares[:, 0].mean() - 0.25) < 0.01
    trials, chance = np.full(3000, 30, np.float32), np.full(3000, 0.4, np.float32)
    assert abs(philox_numbers.binomial(trials, chance, OnHost(1)).mean() - 12) < 0.2
    weights = np.array([1.0, 0.0, 3.0], np.float32)
    drawn = philox_numbers.multinomial(weights, 9000, True, OnHost(1))
    assert np.bincount(drawn, minlength=3) / 9000 == pytest.approx([0.25, 0, 0.75], abs=0.02)
    assert sorted(philox_numbers.multinomial(weights + 1, 3, False, OnHost(1)).tolist()) == [
        0,
        1,
        2,
    ]


def test_dropout_serves_as_many_neighbours_as_an_access_moves() -> None:
    for dtype, size, lanes in ((np.float32, 4000, 4), (np.float32, 4001, 1), (np.float16, 4000, 8),
                               (np.float16, 4002, 2), (np.float64, 4000, 2)):  # fmt: skip
        data = np.ones(size + 16, dtype)
        data = data[-(data.ctypes.data // data.itemsize) % 16 :][:size]  # at a multiple of 16
        assert philox_sample.lanes_of(data) == lanes
        mask = philox_numbers.dropout_mask_(np.empty(size, np.bool_), data, 0.5, OnHost(2))
        threads = SMALL.threads(size)
        for place in range(0, size, 37):
            group, lane = divmod(place, lanes)
            turn, thread = divmod(group, threads)
            word = one(2, thread, (turn * lanes + lane) // 4)[(turn * lanes + lane) % 4]
            assert mask[place] == (np.float32(word) * np.float32(2.0**-32) < 0.5)


# ---- the generator


def test_the_state_is_seed_and_offset() -> None:
    generator = OnHost(42)
    assert generator.get_state().tolist() == [42, *[0] * 15]
    philox_numbers.uniform_(np.empty(5000, np.float32), 0.0, 1.0, generator)
    assert generator.get_offset() == 8 and generator.get_state().tolist()[8] == 8
    other = OnHost().set_state(generator.get_state())
    assert (other.initial_seed(), other.get_offset()) == (42, 8)
    other.set_state(np.array([7, *[0] * 7], np.uint8))
    assert (other.initial_seed(), other.get_offset()) == (7, 0)
    assert other.manual_seed(-1).initial_seed() == 2**64 - 1


def test_states_and_offsets_that_are_none() -> None:
    generator = OnHost()
    with pytest.raises(RuntimeError, match="offset must be a multiple of 4"):
        generator.set_offset(3)
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        generator.set_state(np.zeros(5, np.uint8))
    with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        generator.set_state(np.zeros(16, np.int32))
    with pytest.raises(TypeError, match="a stream for every thread"):
        generator.words(3)
    with pytest.raises(NotImplementedError, match="normal_kernel_cuda"):
        philox_numbers.normal_(np.empty(3, np.int32), 0.0, 1.0, generator)
