"""The generator: recorded words, states that come back, seeds."""

from __future__ import annotations

import copy
import hashlib
import pickle

import numpy as np
import pytest

from flambeau._core import generator as generator_module
from flambeau._core.generator import BLOCK, STATE_BYTES, Generator, default_generator
from flambeau._core.random_fill import normal_


def from_hex(*texts: str) -> list[float]:
    return [float.fromhex(text) for text in texts]


def test_words_are_those_of_the_reference_twister() -> None:
    # init_genrand(5489) is the default of the reference program; its 10000th word is well known
    words = Generator().manual_seed(5489).words(10000)
    assert words[0] == 3499211612
    assert words[-1] == 4123659995


def test_recorded_uniforms() -> None:
    units = Generator().manual_seed(42).units(4)
    assert units.dtype == np.float32
    assert units.tolist() == from_hex(
        "0x1.c3b8ccp-1", "0x1.d47b66p-1", "0x1.880d7p-2", "0x1.eb2a1cp-1"
    )
    wide = Generator().manual_seed(42).units64(3)
    assert wide.tolist() == from_hex(
        "0x1.dc66cbea3db30p-5", "0x1.01ae177aca870p-4", "0x1.fa3563ccea238p-4"
    )


def test_recorded_state() -> None:
    generator = Generator().manual_seed(42)
    normal_(np.empty(3, np.float32), 0.0, 1.0, generator)
    state = generator.get_state()
    assert state.shape == (STATE_BYTES,)
    assert state.dtype == np.uint8
    assert hashlib.sha256(state.tobytes()).hexdigest().startswith("465eb69e777fa921")


@pytest.mark.parametrize("first", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5000])
def test_pieces_of_the_stream_join(first: int) -> None:
    whole = Generator().manual_seed(7).words(first + 2000)
    generator = Generator().manual_seed(7)
    np.testing.assert_array_equal(generator.words(first), whole[:first])
    np.testing.assert_array_equal(generator.words(2000), whole[first:])


def test_all_ways_to_draw_take_from_one_stream() -> None:
    words = Generator().manual_seed(3).words(2000)
    generator = Generator().manual_seed(3)
    units = generator.units(3)
    np.testing.assert_array_equal(units, (words[:3] & 0xFFFFFF).astype(np.float32) * 2.0**-24)
    one = generator.unit()
    assert one == ((int(words[3]) << 32 | int(words[4])) & (2**53 - 1)) * 2.0**-53
    wide = generator.words64(700)
    pairs = words[5:1405].astype(np.uint64)
    np.testing.assert_array_equal(wide, pairs[0::2] << np.uint64(32) | pairs[1::2])


def test_units_are_fresh_arrays() -> None:
    generator = Generator().manual_seed(1)
    first = generator.units(4)
    first[:] = 9
    assert (generator.manual_seed(1).units(4) < 1).all()


@pytest.mark.parametrize("drawn", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3000])
def test_states_come_back(drawn: int) -> None:
    generator = Generator().manual_seed(11)
    generator.words(drawn)
    generator.normal()
    state = generator.get_state()
    clone = generator.clone_state()
    np.testing.assert_array_equal(clone.get_state(), state)
    following = generator.words(1000).copy()
    normal = generator.normal()
    for other in (clone, Generator().set_state(state)):
        np.testing.assert_array_equal(other.words(1000), following)
        assert other.normal() == normal
        assert other.initial_seed() == 11


def test_copies_and_pickles_keep_the_place() -> None:
    generator = Generator().manual_seed(4)
    generator.words(100)
    others = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    following = generator.words(50).copy()
    for other in others:
        np.testing.assert_array_equal(other.words(50), following)


def test_the_single_precision_normal_of_a_state_is_kept() -> None:
    generator = Generator()
    generator.float_normal = 0.5
    assert generator.clone_state().float_normal == 0.5


def test_seeds() -> None:
    generator = Generator()
    assert generator.initial_seed() == 67280421310721
    assert generator.manual_seed(-1) is generator
    assert generator.initial_seed() == 2**64 - 1
    assert generator.manual_seed(np.int64(5)).initial_seed() == 5
    picked = generator.seed()
    assert generator.initial_seed() == picked
    assert 0 <= picked < 2**64
    assert generator_module.default_generator is default_generator


def test_seeding_drops_what_was_waiting() -> None:
    generator = Generator().manual_seed(1)
    first = generator.normal()
    assert generator.manual_seed(1).normal() == first


def test_only_the_low_half_of_a_seed_counts() -> None:
    low = Generator().manual_seed(7).words(5).copy()
    np.testing.assert_array_equal(Generator().manual_seed(7 + 2**40).words(5), low)


@pytest.mark.parametrize(
    ("seed", "kind", "message"),
    [
        (2**64, ValueError, "Overflow when unpacking long long"),
        (-(2**63) - 1, ValueError, "Overflow when unpacking long long"),
        (1.5, RuntimeError, "manual_seed expected a long, but got float"),
    ],
)
def test_bad_seeds(seed: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Generator().manual_seed(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ([1], TypeError),
        (np.zeros(STATE_BYTES), TypeError),
        (np.zeros(3, np.uint8), RuntimeError),
        (np.zeros(STATE_BYTES, np.uint8), RuntimeError),
    ],
)
def test_bad_states_leave_the_generator_alone(state: object, kind: type[Exception]) -> None:
    generator = Generator().manual_seed(2)
    with pytest.raises(kind):
        generator.set_state(state)  # type: ignore[arg-type]
    assert generator.initial_seed() == 2


def test_other_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="cuda"):
        Generator("cuda")
