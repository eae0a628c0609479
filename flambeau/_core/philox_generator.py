"""The random generator of a CUDA device: a seed and an offset into Philox's streams."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from flambeau._core import philox_numbers
from flambeau._core.device import device as Device  # noqa: N812  a parameter is called so
from flambeau._core.generator import Generator
from flambeau._core.philox import Grid

STATE_BYTES = 16
"""The seed and the offset, eight bytes each."""


class PhiloxGenerator(Generator):
    """A random stream of a CUDA device, whose functions are those of `philox_numbers`.

    `grid` is how many threads the device runs at a time. Words one after another, as the CPU's
    generator hands them out, are not to be had: `words` and what is made of it raise TypeError.
    """

    __slots__ = ("_offset", "grid")

    numbers: ClassVar[Any] = philox_numbers

    def __init__(self, device: object = "cuda", grid: Grid = Grid()) -> None:  # noqa: B008
        """Make a generator with torch's default seed. Errors: RuntimeError without CUDA."""
        super().__init__(device)
        if self.device.index is None:
            self.device = Device(self.device.type, 0)
        self.grid = grid

    def _reseed(self, seed: int) -> None:
        super()._reseed(seed)
        self._offset = 0

    def reserve(self, count: int) -> tuple[int, int]:
        """The seed, and the offset where `count` words a thread begin; the next ones come after."""
        before = self._offset
        self._offset = before + (count + 3) // 4 * 4
        return self._seed, before

    def get_offset(self) -> int:
        """How many words each thread has had; a multiple of 4."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Go to an offset. Errors: RuntimeError unless it is a multiple of 4."""
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self._offset = offset % (1 << 64)

    def get_state(self) -> np.ndarray:
        """The state as uint8 of shape (16,): seed and offset."""
        return np.array([self._seed, self._offset], "<u8").view(np.uint8)

    def set_state(self, state: np.ndarray) -> PhiloxGenerator:
        """Go to a state; one of 8 bytes is a seed alone. Returns self.

        Errors: TypeError unless uint8; RuntimeError for a wrong size.
        """
        if not isinstance(state, np.ndarray):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size not in (STATE_BYTES // 2, STATE_BYTES):
            raise RuntimeError("RNG state is wrong size")
        seed, *offset = np.frombuffer(state.tobytes(), "<u8").tolist()
        self._reseed(seed)
        self.set_offset(offset[0] if offset else 0)
        return self

    def _seeded_engine(self) -> Any:
        raise TypeError("a CUDA generator has a stream for every thread, and none for the CPU")
