"""Matrix products: GFLOP/s, the share of the peak, and the ratios to torch and to NumPy.

    python benchmarks/matmul.py [nn|nt|tn|linear|batch|bfloat16|float16|int8|rows ...]

The peak is measured: a loop of nothing but the instruction that the product's tile is made of, on
as many threads (benchmarks/peak.py). Each candidate runs in blocks with pauses between them, since
the threads of BLAS and OpenMP keep spinning after their work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from peak import machine, peaks

import flambeau
from flambeau._ops.products import tiles

SQUARES = [(n, n, n) for n in (64, 96, 128, 192, 256, 384, 512, 1024, 2048)]
NETS = [(128, 784, 512), (768, 128, 384), (768, 65, 128), (32, 256, 1024), (1120, 256, 1024),
        (1120, 256, 2000)]  # fmt: skip
PAUSE = 0.12
"""Seconds until the threads of OpenBLAS have stopped spinning."""
NARROW = ("bfloat16", "float16", "int8")
ROWS = [(rows, n, n) for n in (1024, 4096) for rows in (1, 2, 4, 8, 16, 32)]
"""Few rows beside a weight, which is transposed in memory."""
BATCHES = [(512, 32, 32, 32), (48, 64, 32, 64), (48, 64, 64, 32)]


def fastest(functions: list[Callable[[], Any]], rounds: int = 4, seconds: float = 0.02) -> Any:
    """The shortest time of each function, from alternating blocks."""
    best = [1e9] * len(functions)
    for _ in range(rounds):
        for position, function in enumerate(functions):
            time.sleep(PAUSE)
            function()
            end = time.perf_counter() + seconds
            while True:
                start = time.perf_counter()
                function()
                now = time.perf_counter()
                best[position] = min(best[position], now - start)
                if now > end:
                    break
    return best


def operands(shape: tuple[int, ...], layout: str) -> tuple[np.ndarray, np.ndarray]:
    """A and B; `t` marks the one that is transposed in memory."""
    *batch, rows, depth, columns = shape
    rng = np.random.default_rng(0)
    a = rng.standard_normal((*batch, rows, depth), np.float32)
    b = rng.standard_normal((*batch, depth, columns), np.float32)
    if layout[0] == "t":
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout[1] == "t":
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    return a, b


def narrow_products(name: str, shape: tuple[int, ...]) -> list[Callable[[], Any]]:
    """The product of a narrow type under flambeau and torch; NumPy has none that counts."""
    a, b = operands(shape, "nn")
    calls: list[Callable[[], Any]] = []
    for library in (flambeau, torch):
        if name == "int8":
            x, y = (library.from_numpy((array * 40).astype(np.int8)) for array in (a, b))
            calls.append(partial(library._int_mm, x, y))
        else:
            x, y = (library.from_numpy(array).to(getattr(library, name)) for array in (a, b))
            calls.append(partial(library.matmul, x, y))
    return calls


def products(layout: str, shape: tuple[int, ...]) -> list[Callable[[], Any]]:
    """The product under flambeau, torch and NumPy; `linear`: with a bias."""
    linear = layout == "linear"
    a, b = operands(shape, "nt" if linear else layout)
    ours = [flambeau.from_numpy(x) for x in (a, b)]
    theirs = [torch.from_numpy(x) for x in (a, b)]
    if not linear:
        return [lambda: flambeau.matmul(*ours), lambda: torch.matmul(*theirs),
                lambda: np.matmul(a, b)]  # fmt: skip
    bias = b[0].copy()
    calls: list[Callable[[], Any]] = []
    for library in (flambeau, torch):
        x, w, c = (library.from_numpy(array) for array in (a, b.T, bias))
        calls.append(partial(library.nn.functional.linear, x, w, c))
    return [*calls, lambda: a @ b + bias]


def tile_of(layout: str) -> tiles.Tile:
    """The tile that multiplies what a table is about."""
    narrow = {"bfloat16": tiles.BFLOAT16, "int8": tiles.INT8}
    return tiles.tile_for(narrow.get(layout, np.dtype(np.float32)))


def shapes_of(layout: str) -> list[tuple[int, ...]]:
    """The sizes of a table."""
    if layout in NARROW:
        return [(n, n, n) for n in (128, 256, 512, 1024, 2048, 4096)]
    return {"batch": BATCHES, "rows": ROWS}.get(layout, SQUARES + NETS)


def row(layout: str, shape: tuple[int, ...], most: float) -> str:
    """A line of a table."""
    if layout in NARROW:
        calls = narrow_products(layout, shape)
    else:
        calls = products({"batch": "nn", "rows": "nt"}.get(layout, layout), shape)
    ours, theirs, *numpy = fastest(calls)
    rate = 2 * float(np.prod(shape)) / ours / 1e9
    size = "x".join(map(str, shape))
    last = f"{numpy[0] / ours:.2f}" if numpy else "-"
    return (f"| {size} | {ours * 1e6:.1f} us | {rate:.0f} | {rate / most:.0%} | "
            f"{theirs / ours:.2f} | {last} |")  # fmt: skip


def main(wanted: list[str]) -> None:
    """Print a table for each layout."""
    every = peaks(torch.get_num_threads())
    print(machine())
    for name, most in every.items():
        print(f"{name}: {most:.0f} GFLOP/s on {torch.get_num_threads()} threads")
    for layout in wanted or ["nn", "nt", "tn", "linear", "batch", "rows", *NARROW]:
        tile = tile_of(layout)
        print(f"\n| {layout} | flambeau | GFLOP/s | of the peak | torch / ours | NumPy / ours |")
        print("|---|---|---|---|---|---|")
        for shape in shapes_of(layout):
            print(row(layout, shape, every[f"{tile.number} {tile.name}"]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
