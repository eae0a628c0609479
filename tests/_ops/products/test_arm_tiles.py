"""Register tiles of Arm: machine code made on any processor, and run by an emulator where one is
installed (qemu-user): the loops round as the instructions do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._compiler.tiles import dots
from flambeau._compiler.types import bf16, f32, f64, i8, i32
from flambeau._ops.products import panels, tiles
from flambeau._ops.products.gemm_finish import NOTHING
from flambeau._ops.products.tiles import BFLOAT16, Tile
from tests._ops.products import arm_program

WIDTH = 128
FMA = tiles.of_vectors("fma", f32, f32, f32, 1, dots.multiply_add, WIDTH)
DOUBLE = tiles.of_vectors("fma", f64, f64, f64, 1, dots.multiply_add, WIDTH)
SDOT = tiles.of_vectors("sdot", i8, i32, i32, 4, dots.signed_bytes_128, WIDTH)
BFDOT = tiles.of_vectors("bfdot", bf16, i32, f32, 2, dots.bfloat16_128, WIDTH)
SDOT_LOOPS = tiles.of_vectors("", i8, i32, i32, 4, dots.signed_bytes_loops, WIDTH)
BFDOT_LOOPS = tiles.of_vectors("", bf16, i32, f32, 2, dots.bfloat16_odd, WIDTH)
CODE = [("fmla", FMA, ""), ("fmla", DOUBLE, ""), ("sdot", SDOT, "+dotprod"),
        ("bfdot", BFDOT, "+bf16")]  # fmt: skip
EMULATED = pytest.mark.skipif(arm_program.emulator() is None, reason="no qemu-aarch64: qemu-user")
SIZES = [(3, 5, 4), (33, 65, 70), (5, 2100, 18)]


@pytest.mark.parametrize(("instruction", "tile", "features"), CODE)
def test_machine_code(instruction: str, tile: Tile, features: str) -> None:
    """Five times 24 sums, in registers: no loop of the tile puts one by."""
    try:
        machine = arm_program.machine(features)
    except RuntimeError:
        pytest.skip("this LLVM has no AArch64")
    parsed = arm_program.module(tile)
    lines = machine.emit_assembly(parsed).splitlines()
    places = [at for at, line in enumerate(lines) if line.startswith(f"\t{instruction}\t")]
    assert len(places) >= 5 * tile.rows * 3  # noqa: PLR2004
    step = lines[places[0] : places[4 * tile.rows * 3 - 1]]  # four units, written out
    assert not [line for line in step if re.search(r"\[sp|\tstr\t|\tstp\t", line)]
    assert machine.emit_object(parsed)


def operand(rng: Any, tile: Tile, shape: tuple[int, int], scale: float = 1.0) -> np.ndarray:
    """Numbers of the type that a tile multiplies."""
    if tile.sums is i32:
        return rng.integers(-128, 128, shape, np.int8)
    kind = BFLOAT16 if tile.number is bf16 else np.dtype(f"f{tile.number.size}")
    return (rng.standard_normal(shape) * scale).astype(kind)


def looped(tile: Tile, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """By the same tile in loops, on this processor."""
    dtype = np.dtype(np.int32 if tile.sums is i32 else np.float32)
    plan = panels.Panels(left, right, dtype, tile, 1)
    out = np.full(plan.shape, -77, dtype)
    plan.run(left, right, out, NOTHING)
    return out


@EMULATED
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("tile", "features"), [case[1:] for case in CODE],
                         ids=["float32", "float64", "sdot", "bfdot"])  # fmt: skip
def test_products(tile: Tile, features: str, size: Any, transposed: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows, depth, columns = size
    left, right = operand(rng, tile, (rows, depth)), operand(rng, tile, (depth, columns))
    if transposed:
        rows, columns = columns, rows
        left, right = (np.ascontiguousarray(x).T for x in (right, left))
        left, right = np.asfortranarray(left), np.asfortranarray(right)
    wide, other = left.astype(np.float64), right.astype(np.float64)
    found = arm_program.product(tile, features, left, right, tmp_path)
    allowed = {i32: 0, f32: 2e-6, f64: 1e-14}[tile.sums]
    assert (abs(found - wide @ other) <= allowed * (abs(wide) @ abs(other))).all()


@EMULATED
@pytest.mark.parametrize("scale", [1.0, 1e-19, 3e18, 1e19], ids=str)
@pytest.mark.parametrize(
    ("tile", "loops", "features"),
    [(SDOT, SDOT_LOOPS, "+dotprod"), (BFDOT, BFDOT_LOOPS, "+bf16")], ids=["sdot", "bfdot"],
)  # fmt: skip
def test_loops_round_as_the_instruction_does(tile: Tile, loops: Tile, features: str, scale: float,
                                             tmp_path: Path) -> None:  # fmt: skip
    """Subnormal numbers, operands and sums, and infinite ones are among them."""
    rng = np.random.default_rng(3)
    left = operand(rng, tile, (37, 300), scale)
    right = operand(rng, tile, (300, 50), scale)
    if tile.number is bf16:
        left[:, ::7] = np.float32(1e-40)
    one = arm_program.product(tile, features, left, right, tmp_path)
    other = looped(loops, left, right)
    np.testing.assert_array_equal(one, other)
    numbers = ~np.isnan(one)  # nan has no sign to compare
    np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])
