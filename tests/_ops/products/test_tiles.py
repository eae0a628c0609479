"""Register tiles: every one against NumPy, in loops on any processor; the instruction's bits where
the processor has it; and machine code for processors that are not here."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import llvmlite.binding as llvm

from flambeau._compiler.tiles import amx, dots
from flambeau._compiler.types import bf16, f32, i8, i32
from flambeau._ops.products import panels, tiles
from flambeau._ops.products.gemm_finish import NOTHING
from flambeau._ops.products.kernels import panels as kernels
from flambeau._ops.products.tiles import BFLOAT16, Tile
from flambeau._runtime import llvm as maker
from flambeau._runtime import processor

SIZES = [(1, 1, 1), (3, 5, 4), (33, 65, 70), (64, 128, 96), (5, 2100, 18), (3, 0, 4),
         (130, 70, 40)]  # fmt: skip
TILES = [*tiles.every_bfloat16(), *tiles.every_int8()]
EACH = pytest.mark.parametrize("tile", TILES, ids=[tile.name for tile in TILES])


def operand(rng: Any, tile: Tile, shape: tuple[int, int]) -> np.ndarray:
    """Numbers of the type that a tile multiplies; the extremes of bytes are among them."""
    if tile.sums is i32:
        return rng.integers(-128, 128, shape, np.int8)
    return rng.standard_normal(shape).astype(BFLOAT16)


def product(tile: Tile, left: np.ndarray, right: np.ndarray, threads: int = 1) -> np.ndarray:
    """By a tile, into memory that held something else."""
    dtype = np.dtype(np.int32 if tile.sums is i32 else np.float32)
    plan = panels.Panels(left, right, dtype, tile, threads)
    out = np.full(plan.shape, -77, dtype)
    plan.run(left, right, out, NOTHING)
    return out


@EACH
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", range(4))
def test_every_tile(tile: Tile, size: Any, layout: int) -> None:
    rng = np.random.default_rng(layout)
    rows, depth, columns = size
    left, right = operand(rng, tile, (rows, depth)), operand(rng, tile, (depth, columns))
    if layout & 1:
        left = np.ascontiguousarray(left.T).T
    if layout & 2:
        right = np.ascontiguousarray(right.T).T
    wide, other = left.astype(np.float64), right.astype(np.float64)
    error = abs(product(tile, left, right) - wide @ other)
    allowed = 0 if tile.sums is i32 else 2e-6
    assert (error <= allowed * (abs(wide) @ abs(other)) + (0 if tile.sums is i32 else 1e-30)).all()


@pytest.mark.parametrize("scale", [1.0, 1e-19, 1e19], ids=str)
@pytest.mark.parametrize("name", ["tdpbf16ps", "vdpbf16ps", "tdpbssd", "vpdpbusd"])
def test_loops_round_as_the_instruction_does(name: str, scale: float) -> None:
    found = {tile.name: tile for tile in TILES}
    if name not in found:
        pytest.skip(f"this processor has no {name}")
    rng = np.random.default_rng(3)
    shapes = (37, 300), (300, 50)
    left, right = (operand(rng, found[name], shape) for shape in shapes)
    if left.dtype == BFLOAT16:  # subnormal numbers, operands and sums, and infinite ones
        left = (left.astype(np.float64) * scale).astype(BFLOAT16)
        right = (right.astype(np.float64) * scale).astype(BFLOAT16)
        left[:, ::7] = np.float32(1e-40)
    loops = found[f"{name} in loops"]
    if not loops.cells:
        loops = loops.with_rows(found[name].rows)
    one, other = product(found[name], left, right), product(loops, left, right)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


@EACH
def test_bits_do_not_depend_on_threads(tile: Tile) -> None:
    rng = np.random.default_rng(5)
    left, right = operand(rng, tile, (300, 600)), operand(rng, tile, (600, 210))
    first = product(tile, left, right, 1)
    for threads in (2, 5):
        np.testing.assert_array_equal(product(tile, left, right, threads), first)


CODE = [
    ("sapphirerapids", "tdpbf16ps", tiles.of_amx(bf16, f32, 2, amx.BFLOAT16, amx.HARDWARE), 6),
    ("sapphirerapids", "tdpbssd", tiles.of_amx(i8, i32, 4, amx.SIGNED_BYTES, amx.HARDWARE), 6),
    ("znver4", "vdpbf16ps",
     tiles.of_vectors("", bf16, i32, f32, 2, dots.bfloat16_512, 512), 28),
    ("znver4", "vpdpbusd",
     tiles.of_vectors("", i8, i32, i32, 4, dots.bytes_512, 512, tiles.UNSIGN), 24),
    ("alderlake", "vpdpbusd",
     tiles.of_vectors("", i8, i32, i32, 4, dots.bytes_256, 256, tiles.UNSIGN), 8),
]  # fmt: skip


@pytest.mark.parametrize(("cpu", "instruction", "tile", "times"), CODE,
                         ids=[f"{cpu}-{word}" for cpu, word, *_ in CODE])  # fmt: skip
def test_machine_code_for_other_processors(cpu: str, instruction: str, tile: Tile, times: int):
    """The driver with this tile is valid, assembles, and has the instruction so many times."""
    statics = {"S": tile.number, "O": tile.sums, "BIAS": 0, "SCALED": False, "OTHER": False,
               "SHARED": True, **tile.constants}  # fmt: skip
    parsed = llvm.parse_assembly(maker.text_of(kernels.multiply_panels, statics, False).text())
    parsed.verify()
    try:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    except RuntimeError:
        pytest.skip("this LLVM has no x86")
    machine = target.create_target_machine(cpu=cpu, opt=1)
    maker.optimise(parsed, maker.PASSES)
    assert machine.emit_assembly(parsed).count(f"{instruction}\t") >= times
    assert machine.emit_object(parsed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.skipif(not tiles.tile_for(BFLOAT16).cells, reason="this processor has no AMX")
def test_a_child_has_tiles_too() -> None:
    left = np.ones((64, 64), BFLOAT16)
    tile = tiles.tile_for(BFLOAT16)
    product(tile, left, left)
    child = os.fork()
    if not child:
        os._exit(0 if (product(tile, left, left) == 64).all() else 1)  # noqa: PLR2004
    assert os.waitpid(child, 0)[1] == 0


def test_what_a_processor_without_tiles_multiplies_with(monkeypatch: Any) -> None:
    """The system may refuse AMX: then there is the next best."""
    monkeypatch.setattr(processor, "has_tiles", lambda: False)
    names = [tile.name for tile in tiles.every_bfloat16.__wrapped__()]
    assert "tdpbf16ps" not in names


def test_sizes_of_caches_are_powers_of_two_times_something() -> None:
    sizes = processor.cache_sizes()
    assert sizes[1] <= sizes[2]
    assert all(size % 1024 == 0 for size in sizes.values())
