"""The CPU random generator: torch's mt19937 stream and state, word for word.

The engine is the classic 32-bit Mersenne Twister (Matsumoto and Nishimura, 1998) with the seeding
by ``init_genrand``, which NumPy's ``MT19937`` also has. Words are made in whole blocks of 624, one
twist of the state, so that the engine's state array is always the one of the block that is being
read, and torch's ``next`` and ``left`` follow from the reading position.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from flambeau._core import random_numbers
from flambeau._core.device import CPU, Cuda
from flambeau._core.device import device as Device  # noqa: N812  a parameter is called so

if TYPE_CHECKING:
    from numpy.random import Generator as NumpyGenerator

BLOCK = 624
DEFAULT_SEED = 67280421310721

_NO_WORDS = np.empty(BLOCK, np.uint32)
_UINT32_END = 1 << 32
_LOW_24 = np.uint32(0xFFFFFF)
_UNIT_24 = np.float32(2.0**-24)
_LOW_53 = (1 << 53) - 1
_LOW_53_BITS = np.uint64(_LOW_53)
_HALF = np.uint64(32)

# The bytes that torch.get_rng_state() returns: two C structs, one inside the other.
_STATE_LAYOUT = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("state", "<u8", BLOCK),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("normal_is_valid", "<i4"),
        ("padding", "<i4"),
        ("float_normal", "<f4"),
        ("float_normal_is_valid", "u1"),
        ("padding_end", "u1", 3),
    ]
)
STATE_BYTES = _STATE_LAYOUT.itemsize


NO_GENERATOR = {
    "cuda": "Cannot get CUDA generator without ATen_cuda library.",
    "xpu": "Cannot get XPU generator without ATen_xpu library.",
    "xla": "Cannot get XLA generator without torch_xla library.",
    "mps": "Cannot execute getNewGenerator() without MPS backend.",
    "mtia": "Cannot execute getNewGenerator() without MTIA backend.",
    "hpu": "Backend doesn`t support getNewGenerator()",
    "privateuseone": "Please register PrivateUse1HooksInterface by "
    "`RegisterPrivateUse1HooksInterface` first.",
}


def _place_of(device: object) -> Device:
    """The device of a generator. RuntimeError where there is none of that kind."""
    place = CPU if device is None or device == "cpu" else Device(device)
    if place.type == "cpu":
        return CPU
    if place.type != "cuda" or not Cuda.devices():
        missing = f"{place.type.upper()} device type not an accelerator."
        raise RuntimeError(NO_GENERATOR.get(place.type, missing))
    return place


class Generator:
    """A random stream of the CPU; ``torch.Generator``.

    ``numbers`` holds the functions that draw from it: ``stream.numbers.uniform_(out, 0.0, 1.0,
    stream)``. One generator must not be drawn from by two threads at once.
    """

    __slots__ = (
        "_block",
        "_engine",
        "_just_seeded",
        "_next",
        "_pairs",
        "_seed",
        "_state_address",
        "_units",
        "device",
        "float_normal",
        "next_normal",
    )

    numbers: ClassVar[Any] = random_numbers

    def __init__(self, device: object = None) -> None:
        """Make a generator with torch's default seed. Errors: RuntimeError for another device."""
        self.device = _place_of(device)
        self._engine: NumpyGenerator | None = None
        self._state_address = 0
        self._reseed(DEFAULT_SEED)

    # -- seeds ----------------------------------------------------------------------------------

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of ``seed``; a negative seed counts from 2**64 down. Returns self."""
        if not hasattr(seed, "__index__"):
            kind = type(seed).__name__
            raise RuntimeError(f"manual_seed expected a long, but got {kind}")
        value = seed.__index__()
        if not -(1 << 63) <= value < (1 << 64):
            raise ValueError("Overflow when unpacking long long")
        self._reseed(value % (1 << 64))
        return self

    def seed(self) -> int:
        """Start a stream from a seed that the operating system picks, and return that seed."""
        value = int.from_bytes(os.urandom(8), "little")
        self._reseed(value)
        return value

    def initial_seed(self) -> int:
        """The seed that started this stream."""
        return self._seed

    def _reseed(self, seed: int) -> None:
        # The twist and numpy.random itself wait for the first draw: seeding stays cheap.
        self._seed = seed
        self._just_seeded = True
        self._block = _NO_WORDS
        self._forget_pieces()
        self._next = BLOCK
        self.next_normal: float | None = None
        self.float_normal: float | None = None

    def _forget_pieces(self) -> None:
        """Drop what was made of the last block's words."""
        self._units: np.ndarray | None = None
        self._pairs: list[np.ndarray | None] = [None, None]

    # -- state ----------------------------------------------------------------------------------

    def get_state(self) -> np.ndarray:
        """The state as uint8 of shape (5056,), byte for byte what torch's CPU generator gives."""
        record = np.zeros((), _STATE_LAYOUT)
        record["seed"] = self._seed
        record["seeded"] = 1
        record["left"] = BLOCK + 1 - self._next
        record["next"] = 0 if self._just_seeded else self._next
        record["state"] = self._seeded_engine().bit_generator.state["state"]["key"]
        if self.next_normal is not None:
            record["normal_y"] = self.next_normal
            record["normal_is_valid"] = 1
        if self.float_normal is not None:
            record["float_normal"] = self.float_normal
            record["float_normal_is_valid"] = 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> Generator:
        """Go to a state that ``get_state`` or torch's generator gave. Returns self.

        Errors: TypeError unless uint8; RuntimeError for a wrong size or an impossible state.
        """
        if not isinstance(state, np.ndarray):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} "
                f"but found the input RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), _STATE_LAYOUT)[0]
        left, position = int(record["left"]), int(record["next"])
        used_up = left == 1
        if not record["seeded"] or not (used_up or left + position == BLOCK + 1):
            raise RuntimeError("Invalid mt19937 state")
        self._reseed(int(record["seed"]))
        self._enter_block(record["state"].astype(np.uint32))
        self._next = BLOCK if used_up else position
        self._just_seeded = used_up and position == 0
        if record["normal_is_valid"]:
            self.next_normal = float(record["normal_y"])
        if record["float_normal_is_valid"]:
            self.float_normal = float(record["float_normal"])
        return self

    def clone_state(self) -> Generator:
        """A new generator at the same place of the same stream."""
        return type(self)(self.device).set_state(self.get_state())

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.device, self.get_state())

    def _enter_block(self, key: np.ndarray) -> None:
        """Make ``key`` the engine's state array and temper it into the words of the block."""
        self._just_seeded = False
        inner = {"key": key, "pos": BLOCK}
        engine = self._seeded_engine()
        engine.bit_generator.state = {"bit_generator": "MT19937", "state": inner}
        words = key.copy()
        words ^= words >> np.uint32(11)
        words ^= (words << np.uint32(7)) & np.uint32(0x9D2C5680)
        words ^= (words << np.uint32(15)) & np.uint32(0xEFC60000)
        words ^= words >> np.uint32(18)
        self._block = words

    def _seeded_engine(self) -> NumpyGenerator:
        if self._engine is None:
            from numpy.random import MT19937
            from numpy.random import Generator as NumpyGenerator

            self._engine = NumpyGenerator(MT19937(0))
        if self._just_seeded and self._block is _NO_WORDS:
            self._engine.bit_generator._legacy_seeding(self._seed & 0xFFFFFFFF)  # type: ignore[attr-defined]
        return self._engine

    # -- words ----------------------------------------------------------------------------------

    def words(self, count: int) -> np.ndarray:
        """The next ``count`` raw words, uint32; often a view of the buffer: read only."""
        start = self._next
        stop = start + count
        if stop <= BLOCK:
            self._next = stop
            return self._block[start:stop]
        return self._more_words(count)

    def _more_words(self, count: int) -> np.ndarray:
        rest = self._block[self._next :]
        missing = count - rest.size
        blocks = -(-missing // BLOCK)
        fresh = self._seeded_engine().integers(0, _UINT32_END, blocks * BLOCK, np.uint32)
        self._block = fresh[-BLOCK:].copy()
        self._forget_pieces()
        self._just_seeded = False
        self._next = missing - (blocks - 1) * BLOCK
        if rest.size == 0:
            return fresh[:missing]
        return np.concatenate((rest, fresh[:missing]))

    def words_into(self, target: np.ndarray, twist: Callable[..., None]) -> None:
        """The next ``target.size`` raw words into uint32 memory of shape (n,).

        ``twist(state, out, last_block, blocks)`` takes the engine's state array, given by its
        address, that many blocks further and writes their words, those of the last one apart.
        """
        count = target.size
        rest = self._block[self._next : self._next + count]
        target[: rest.size] = rest
        missing = count - rest.size
        if not missing:
            self._next += count
            return
        blocks = (missing - 1) // BLOCK
        block = np.empty(BLOCK, np.uint32)
        twist(self._engine_state(), target[rest.size :], block, blocks + 1)
        self._renewed(block)
        self._next = missing - blocks * BLOCK
        target[count - self._next :] = block[: self._next]

    def one_by_one(self, sample: Callable[..., None]) -> None:
        """Let a kernel draw as many words as it happens to need.

        ``sample(state, block, place, waiting)`` gets the address of the engine's state array, the
        words of its block and, to be read and written: int64 of the next word's number and of how
        many blocks followed, float64 of the waiting normal number and of whether there is one.
        """
        state = self._engine_state()
        block = self._block.copy()
        place = np.array([self._next, 0], np.int64)
        held = self.next_normal
        waiting = np.array([0.0, 0.0] if held is None else [held, 1.0])
        sample(state, block, place, waiting)
        if place[1]:
            self._renewed(block)
        self._next = int(place[0])
        self.next_normal = float(waiting[0]) if waiting[1] else None

    def _engine_state(self) -> int:
        """The address of the engine's state array, with which NumPy's struct begins; all words of
        its block are used up."""
        engine = self._seeded_engine()
        if not self._state_address:
            self._state_address = engine.bit_generator.ctypes.state_address  # type: ignore[attr-defined]
        return self._state_address

    def _renewed(self, block: np.ndarray) -> None:
        """Take the words that the engine's state array has come to."""
        self._block = block
        self._forget_pieces()
        self._just_seeded = False

    def words64(self, count: int) -> np.ndarray:
        """The next ``count`` 64-bit words, uint64, the first of two words on top; a fresh array."""
        start = self._next
        stop = start + 2 * count
        if stop > BLOCK:
            return _join(self._more_words(2 * count))
        # small draws are slices of pairs made once for the block; its first word may be odd or even
        odd = start & 1
        pairs = self._pairs[odd]
        if pairs is None:
            pairs = self._pairs[odd] = _join(self._block[odd : BLOCK - odd])
        self._next = stop
        return pairs[start >> 1 : stop >> 1].copy()

    def units(self, count: int) -> np.ndarray:
        """The next ``count`` numbers of [0, 1), float32 of 24 bits; often a view: read only."""
        start = self._next
        stop = start + count
        # torch.rand(3) is one slice of a block that was scaled as a whole
        if stop > BLOCK:
            return _scale_24(self._more_words(count))
        if self._units is None:
            self._units = _scale_24(self._block)
        self._next = stop
        return self._units[start:stop]

    def units64(self, count: int) -> np.ndarray:
        """The next ``count`` numbers of [0, 1), float64 of 53 bits; a fresh array."""
        bits = self.words64(count)
        bits &= _LOW_53_BITS
        values = bits.view(np.int64).astype(np.float64)
        values *= 2.0**-53
        return values

    # -- one number, for samplers that reject -----------------------------------------------------

    def unit(self) -> float:
        """The next number of [0, 1) with 53 bits."""
        high, low = self.words(2).tolist()
        return ((high << 32 | low) & _LOW_53) * 2.0**-53

    def normal(self) -> float:
        """The next standard normal in double precision."""
        return self.normals(1)[0]

    def normals(self, count: int) -> list[float]:
        """The next standard normals in double precision (Box and Muller, 1958).

        Each pair of uniforms gives two; if ``count`` is odd, the last one waits for the next call.
        """
        values = [] if self.next_normal is None else [self.next_normal]
        missing = count - len(values)
        units = self.units64(missing + (missing & 1)).tolist()
        for turn, size in zip(units[::2], units[1::2], strict=True):
            theta = 2.0 * math.pi * turn
            radius = math.sqrt(-2.0 * math.log1p(-size))
            values += (radius * math.cos(theta), radius * math.sin(theta))
        self.next_normal = values.pop() if missing & 1 else None
        return values


def _join(words: np.ndarray) -> np.ndarray:
    """Pairs of uint32 words as uint64, the first word on top."""
    if np.little_endian:
        pairs = words.view(np.uint64)
        joined = pairs >> _HALF
        joined |= pairs << _HALF
        return joined
    return words.view(np.uint64).copy()


def _scale_24(words: np.ndarray) -> np.ndarray:
    values = (words & _LOW_24).view(np.int32).astype(np.float32)
    values *= _UNIT_24
    return values


def _restore(device: object, state: np.ndarray) -> Generator:
    return Generator(device).set_state(state)


default_generator = Generator()
default_generator.seed()


class OfThread(threading.local):
    """Per thread: the stream of its own that a worker has; `torch.random.thread_safe_generator`."""

    generator: Generator | None = None


of_thread = OfThread()
