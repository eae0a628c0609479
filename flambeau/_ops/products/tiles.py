"""Which register tile multiplies which type on this processor: asked once, narrow to wide.

| type | tiles, the best one last |
|---|---|
| bfloat16 | float32's, AVX512-BF16 (`vdpbf16ps`) or NEON's (`bfdot`), AMX (`tdpbf16ps`) |
| int8 | pairs of int16 (`vpmaddwd`), VNNI (`vpdpbusd`) or NEON's (`sdot`), AMX (`tdpbssd`) |
| float32, float16, float64 | fma over vectors; float16 becomes float32 while it is packed |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from flambeau._compiler.tiles import amx, dots
from flambeau._compiler.types import Scalar, bf16, f32, f64, i8, i16, i32
from flambeau._core.precision import bfloat16_will_do
from flambeau._ops.products.kernels.tiles import matrices, vectors
from flambeau._runtime import features, processor

CHUNK_BYTES = 64
BFLOAT16, INT8 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.int8)
FLOAT32 = np.dtype(np.float32)
GROUPED = frozenset({BFLOAT16, INT8})
"""Types that instructions take in groups."""
SHOWN = (FLOAT32, np.dtype(np.float64), BFLOAT16, INT8)
"""Types whose tiles `flambeau env` shows."""
UNSIGN = -0x7F7F7F80
"""What makes four signed bytes unsigned: 128 more each."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile: `rows` by `columns` sums of type `sums`, over units of `group` numbers.

    Numbers are packed as `number`, units are lanes of type `unit`; `flip` is what packed units of A
    are changed by. `native` is the kernel that adds up, `how` the constants that it ends with, and
    `cells` says whether it needs AMX's tiles, and in which form.
    """

    name: str
    number: Scalar
    unit: Scalar
    sums: Scalar
    group: int
    rows: int
    columns: int
    width: int
    native: Any
    how: tuple[Any, ...]
    flip: int = 0
    cells: str = ""

    @property
    def chunk(self) -> int:
        """Units of a chunk: 64 bytes."""
        return CHUNK_BYTES // self.unit.size

    @property
    def panel(self) -> int:
        """Columns of a packed panel of B."""
        return matrices.PANEL if self.cells else self.columns

    @property
    def constants(self) -> dict[str, Any]:
        """As the kernels name them."""
        return {"E": self.number, "U": self.unit, "T": self.sums, "GROUP": self.group,
                "FLIP": self.flip, "TILE": self.native, "HOW": self.how, "UNIT": self.cells,
                "MR": self.rows, "NR": self.columns, "PANEL": self.panel, "W": self.width,
                "CHUNK": self.chunk}  # fmt: skip

    def with_rows(self, count: int) -> Tile:
        """The same for a product of few rows; tiles of AMX have 32."""
        if self.cells or count >= self.rows:
            return self
        dot, shift, _, *rest = self.how
        return replace(self, rows=count, how=(dot, shift, count, *rest))


def of_vectors(name: str, number: Scalar, unit: Scalar, sums: Scalar, group: int, dot: Any,
               bits: int, flip: int = 0) -> Tile:  # fmt: skip
    """A tile of vectors of so many bits: as many sums as there are registers, less what feeds
    them: of 16 registers 12 (x86 with AVX), of 32 28 (AVX-512) or 21 (NEON, for which LLVM loads
    numbers of A ahead: with 24 sums it puts registers by)."""
    rows, count = {512: (14, 2), 256: (6, 2)}.get(bits, (7, 3))
    width = bits // 8 // unit.size
    if flip:  # registers for what is taken off again
        rows -= 2
    how = (dot, flip, rows, count, width, CHUNK_BYTES // unit.size)
    return Tile(name, number, unit, sums, group, rows, count * width, width, vectors.vector_tile,
                how, flip)  # fmt: skip


def of_amx(number: Scalar, sums: Scalar, group: int, product: str, cells: str) -> Tile:
    """The tile of AMX for a product of tiles."""
    name = product if cells == amx.HARDWARE else f"{product} in loops"
    return Tile(name, number, i32, sums, group, matrices.MR, matrices.NR, 16, matrices.matrix_tile,
                (product, cells), cells=cells)  # fmt: skip


@cache
def every_bfloat16() -> tuple[Tile, ...]:
    """All tiles for bfloat16, those in loops first: they run anywhere."""
    bits = features.vector_bits()
    found = [
        of_amx(bf16, f32, 2, amx.BFLOAT16, amx.LOOPS),
        of_vectors("vdpbf16ps in loops", bf16, i32, f32, 2, dots.bfloat16_loops, bits),
        of_vectors("bfdot in loops", bf16, i32, f32, 2, dots.bfloat16_odd, bits),
        of_vectors("pairs of fma", bf16, i32, f32, 2, dots.bfloat16_wide, bits),
    ]
    if features.has("bf16"):  # as LLVM names Arm's
        found.append(of_vectors("bfdot", bf16, i32, f32, 2, dots.bfloat16_128, 128))
    if features.has("avx512bf16"):
        found.append(of_vectors("vdpbf16ps", bf16, i32, f32, 2, dots.bfloat16_512, 512))
    if features.has("amx-bf16") and processor.has_tiles():
        found.append(of_amx(bf16, f32, 2, amx.BFLOAT16, amx.HARDWARE))
    return tuple(found)


@cache
def every_int8() -> tuple[Tile, ...]:
    """All tiles for int8, those in loops first."""
    bits = features.vector_bits()
    found = [
        of_amx(i8, i32, 4, amx.SIGNED_BYTES, amx.LOOPS),
        of_vectors("vpdpbusd in loops", i8, i32, i32, 4, dots.bytes_loops, bits, UNSIGN),
        of_vectors("sdot in loops", i8, i32, i32, 4, dots.signed_bytes_loops, bits),
        of_vectors("pairs of int16", i16, i32, i32, 2, dots.words, bits),
    ]
    if features.has("dotprod"):
        found.append(of_vectors("sdot", i8, i32, i32, 4, dots.signed_bytes_128, 128))
    if features.has("avx512vnni"):
        found.append(of_vectors("vpdpbusd", i8, i32, i32, 4, dots.bytes_512, 512, UNSIGN))
    elif features.has("avxvnni") and bits == 256:
        found.append(of_vectors("vpdpbusd", i8, i32, i32, 4, dots.bytes_256, 256, UNSIGN))
    if features.has("amx-int8") and processor.has_tiles():
        found.append(of_amx(i8, i32, 4, amx.SIGNED_BYTES, amx.HARDWARE))
    return tuple(found)


@cache
def of_fma(unit: Scalar) -> Tile:
    """The tile of float32 and of float64."""
    name = f"fma of {features.vector_bits()} bits"
    return of_vectors(name, unit, unit, unit, 1, dots.multiply_add, features.vector_bits())


def is_shortened(dtype: np.dtype) -> bool:
    """Whether a type is rounded to bfloat16 for products: float32 where programs allow it
    (`set_float32_matmul_precision("medium")`) and there is AMX."""
    return dtype == FLOAT32 and bfloat16_will_do() and bool(every_bfloat16()[-1].cells)


def tile_for(dtype: np.dtype) -> Tile:
    """What multiplies a type here."""
    if dtype == BFLOAT16 or is_shortened(dtype):
        return every_bfloat16()[-1]
    if dtype == INT8:
        return every_int8()[-1]
    return of_fma(f64 if dtype == np.float64 else f32)


@cache
def bfloat16_dots() -> bool:
    """Whether the processor multiplies bfloat16 itself."""
    return features.has("avx512bf16") or bool(tile_for(BFLOAT16).cells)
