"""What the processor can do at most: its features, caches, threads, and the speed of loops of
nothing but one instruction.

    python benchmarks/peak.py [threads]

Figures of different machines can be compared as shares of these. Operands are random numbers:
AMX runs slower on them than on zeros, which switch less.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from flambeau._compiler.language import (
    i64,
    load,
    pointer,
    registers,
    splat,
    stack,
    static,
    store,
    u8,
    unroll,
    vector,
)
from flambeau._compiler.native import native
from flambeau._compiler.tiles import amx
from flambeau._compiler.types import f32, f64
from flambeau._core import settings
from flambeau._ops.products import tiles
from flambeau._ops.products.gemm_tiles import aligned
from flambeau._runtime import features, processor
from flambeau._runtime.launch import kernel

CHAINS = 24 if features.vector_bits() == 512 else 12
"""Sums at once: as many as there are registers for, beside the operands."""
ROUNDS = 20_000
APART = 1024
"""Elements between the memory of two threads."""


@native
def dot_loop(numbers: pointer(U), out: pointer(T), rounds: i64, task: i64, tasks: i64, U: static,  # type: ignore[no-untyped-def,valid-type]  # noqa: F821
             T: static, DOT: static, W: static):  # fmt: skip
    """CHAINS sums in registers: as many dots a second as the processor gives."""
    place = out + task * APART
    total = registers(vector(T, W), CHAINS)
    for i in unroll(CHAINS):  # different numbers: equal chains would be joined
        total[i] = splat(T(i), W)
    a = load(numbers, W)
    b = load(numbers + W, W)
    for _ in range(rounds):
        for i in unroll(CHAINS):
            total[i] = DOT(total[i], a, b, W)
    for i in unroll(CHAINS):
        store(place, load(place, W) + total[i])


@native
def tile_loop(numbers: pointer(u8), out: pointer(u8), rounds: i64, task: i64, tasks: i64,  # type: ignore[no-untyped-def,valid-type]
              PRODUCT: static):  # fmt: skip
    """Four tiles of sums: as many products a second as AMX gives."""
    none = stack(u8, 1)
    amx.configure_tiles(amx.HARDWARE)
    for n in unroll(4):
        amx.zero_tile(none, n, amx.HARDWARE)
        amx.load_tile(none, n + 4, numbers + n * amx.TILE, amx.ROW, amx.HARDWARE)
    for _ in range(rounds):
        for n in unroll(4):
            amx.dot_tiles(none, n, 4 + n // 2, 6 + n % 2, PRODUCT, amx.HARDWARE)
    for n in unroll(4):
        amx.store_tile(none, n, out + (task * 4 * APART + n * amx.TILE), amx.ROW, amx.HARDWARE)
    amx.release_tiles(amx.HARDWARE)


def fastest(run: Any, tasks: int, *arguments: Any) -> float:
    """The shortest time of a loop, of eight."""
    found = []
    for _ in range(8):
        start = time.perf_counter()
        run.parallel(tasks, *arguments)
        found.append(time.perf_counter() - start)
    return min(found)


def random_numbers(tile: tiles.Tile) -> np.ndarray:
    """Some KB of what a tile multiplies."""
    dtype = {"f32": np.float32, "f64": np.float64, "bf16": tiles.BFLOAT16}.get(
        tile.number.name, np.int8
    )
    found = aligned(8192 // np.dtype(dtype).itemsize, np.dtype(dtype))
    found[...] = (np.random.default_rng(0).standard_normal(found.size) * 3).astype(dtype)
    return found


def peak(tile: tiles.Tile, threads: int) -> float:
    """1e9 multiplications and additions a second of the instruction that a tile is made of."""
    numbers, out = random_numbers(tile), np.zeros(APART * 8 * threads, np.float64)
    if tile.cells:
        seconds = fastest(kernel(tile_loop, PRODUCT=tile.how[0]), threads, numbers, out, ROUNDS)
        return 4 * 2 * 16 * 16 * 16 * tile.group * ROUNDS * threads / seconds / 1e9
    run = kernel(dot_loop, U=tile.unit, T=tile.sums, DOT=tile.how[0], W=tile.width)
    seconds = fastest(run, threads, numbers, out, ROUNDS)
    return CHAINS * 2 * tile.width * tile.group * ROUNDS * threads / seconds / 1e9


def peaks(threads: int) -> dict[str, float]:
    """The peak of every tile that this processor has."""
    every = [tiles.of_fma(f32), tiles.of_fma(f64), *tiles.every_bfloat16(), *tiles.every_int8()]
    before = settings.get_num_threads()
    settings.set_num_threads(threads)
    try:
        return {f"{tile.number} {tile.name}": peak(tile, threads)
                for tile in every if "loops" not in tile.name}  # fmt: skip
    finally:
        settings.set_num_threads(before)


def machine() -> str:
    """The processor in a few lines."""
    caches = ", ".join(f"L{n} {size >> 10} KB" for n, size in processor.cache_sizes().items())
    name, _, present = features.made_for()
    wide = sorted(f for f in present if f.startswith(("avx", "amx", "fma", "neon", "sve")))
    return f"{name}, {settings.get_num_threads()} threads, {caches}\n{' '.join(wide)}"


def main() -> None:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else settings.get_num_threads()
    print(machine())
    for name, found in peaks(threads).items():
        print(f"{name:32} {found:9.0f} GFLOP/s on {threads} threads")


if __name__ == "__main__":
    main()
