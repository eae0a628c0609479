"""What compiled products have in common: element types, the register tile, sizes of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

from flambeau._compiler.types import Scalar, f32, f64
from flambeau._runtime import features
from flambeau._runtime.cpu import address
from flambeau._runtime.pool_kernels import X86

SUMS = {
    np.dtype(np.float32): f32,
    np.dtype(np.float64): f64,
    np.dtype(np.float16): f32,
    np.dtype(ml_dtypes.bfloat16): f32,
}
"""What is multiplied here, and the type that its sums have."""
SUM_DTYPES = {f32: np.dtype(np.float32), f64: np.dtype(np.float64)}


@dataclass(frozen=True, slots=True)
class Tile:
    """The part of C that registers hold: `rows` by `vectors` vectors of `width` elements."""

    rows: int
    vectors: int
    width: int

    @property
    def columns(self) -> int:
        """NR."""
        return self.vectors * self.width

    @property
    def constants(self) -> dict[str, int]:
        """As the kernels name them."""
        return {"MR": self.rows, "NV": self.vectors, "W": self.width}


@cache
def usable() -> bool:
    """Whether the processor multiplies and adds in one instruction; all but old x86 do."""
    return not X86 or features.has("fma")


@cache
def tile_of(sums: Scalar) -> Tile:
    """The tile for sums of a type: as many registers as the machine has, less what feeds them.

    Of 16 registers 12 hold sums (x86 with AVX), of 32 28 (AVX-512) or 21 (NEON, whose narrow
    vectors want more columns per number that is spread; with 24 LLVM puts registers by).
    """
    bits = features.vector_bits()
    rows, vectors = {512: (14, 2), 256: (6, 2)}.get(bits, (7, 3))
    return Tile(rows, vectors, bits // 8 // sums.size)


HIGHEST = 14
"""The most rows of a tile: so many rows of A of any depth have room where kernels pack them."""


@cache
def tile_within(sums: Scalar, columns: int) -> Tile | None:
    """The widest tile whose panels fill so many columns without a rest, with as many sums as
    registers hold; None where they are no whole vectors.
    """
    best = tile_of(sums)
    for vectors in range(best.vectors, 0, -1):
        if columns % (vectors * best.width) == 0:
            rows = min(best.rows * best.vectors // vectors, HIGHEST)
            return Tile(rows, vectors, best.width)
    return None


DEPTH_BLOCK = 384
ROW_BLOCK = 96
"""About what a block of k and of rows is: NR x DEPTH_BLOCK stays in the first cache,
ROW_BLOCK x DEPTH_BLOCK in the second."""


def parts(count: int, size: int) -> int:
    """How many pieces of a size hold so many elements."""
    return -(-count // size)


def strides(array: np.ndarray) -> tuple[int, ...]:
    """The strides in elements."""
    size = array.itemsize
    return tuple([step // size for step in array.strides])


def aligned(count: int, dtype: np.dtype) -> np.ndarray:
    """New memory that begins with a cache line."""
    extra = 64 // dtype.itemsize
    owner = np.empty(count + extra, dtype)
    start = -address(owner) // dtype.itemsize % extra
    return owner[start : start + count]
