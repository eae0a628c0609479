"""Matrix products: GFLOP/s, the share of the FMA peak, and the ratios to torch and to NumPy.

    python benchmarks/matmul.py [nn|nt|tn|linear|batch ...]

The peak is measured: a loop of nothing but fma, on as many threads. Each candidate runs in blocks
with pauses between them, since the threads of BLAS and OpenMP keep spinning after their work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import flambeau
from flambeau._compiler.language import (
    f32,
    fma,
    i64,
    load,
    pointer,
    registers,
    splat,
    static,
    store,
    unroll,
    vector,
)
from flambeau._compiler.native import native
from flambeau._runtime import engine
from flambeau._runtime.launch import kernel

SQUARES = [(n, n, n) for n in (64, 96, 128, 192, 256, 384, 512, 1024, 2048)]
NETS = [(128, 784, 512), (768, 128, 384), (768, 65, 128), (32, 256, 1024), (1120, 256, 1024),
        (1120, 256, 2000)]  # fmt: skip
PAUSE = 0.12
"""Seconds until the threads of OpenBLAS have stopped spinning."""
BATCHES = [(512, 32, 32, 32), (48, 64, 32, 64), (48, 64, 64, 32)]


@native
def fma_loop(out: pointer(f32), rounds: i64, task: i64, tasks: i64, W: static, N: static):  # type: ignore[no-untyped-def,valid-type]  # noqa: F821
    """N chains of fma: as fast as the machine gets."""
    total = registers(vector(f32, W), N)
    for i in unroll(N):  # different numbers: equal chains would be joined
        total[i] = splat(f32(i), W)
    x = load(out + task * 64, W)
    for _ in range(rounds):
        for i in unroll(N):
            total[i] = fma(total[i], x, x)
    for i in unroll(N):
        store(out + task * 64, load(out + task * 64, W) + total[i])


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


def peak(threads: int) -> float:
    """Multiplications and additions per second, in 1e9."""
    width = engine.vector_bits() // 32
    run = kernel(fma_loop, W=width, N=12)
    out = np.zeros(64 * threads, np.float32)
    (seconds,) = fastest([lambda: run.parallel(threads, out, 50_000)])
    return 2 * width * 12 * 50_000 * threads / seconds / 1e9


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


def main(wanted: list[str]) -> None:
    """Print a table for each layout."""
    most = peak(torch.get_num_threads())
    print(f"FMA peak: {peak(1):.0f} GFLOP/s on one thread, {most:.0f} on all\n")
    for layout in wanted or ["nn", "nt", "tn", "linear", "batch"]:
        print(f"| {layout} | flambeau | GFLOP/s | of the peak | torch / ours | NumPy / ours |")
        print("|---|---|---|---|---|---|")
        for shape in BATCHES if layout == "batch" else SQUARES + NETS:
            ours, theirs, numpy = fastest(products("nn" if layout == "batch" else layout, shape))
            rate = 2 * float(np.prod(shape)) / ours / 1e9
            print(f"| {'x'.join(map(str, shape))} | {ours * 1e6:.1f} us | {rate:.0f} | "
                  f"{rate / most:.0%} | {theirs / ours:.2f} | {numpy / ours:.2f} |",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
