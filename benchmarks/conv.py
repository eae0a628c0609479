"""Convolutions and pools against torch: `python benchmarks/conv.py [name ...]`.

Prints for each case milliseconds of torch and flambeau, their ratio (above 1: flambeau is faster),
flambeau's GFLOP/s and their share of what the machine's multiply-adds can do: forward, gradient of
the input, gradient of the weight; for pools forward and backward. Rounds alternate.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from flambeau._compiler.language import (
    f32,
    i64,
    pointer,
    registers,
    splat,
    static,
    store,
    unroll,
    vector,
)
from flambeau._compiler.native import native
from flambeau._core.settings import get_num_threads
from flambeau._ops.conv import choice as convolve
from flambeau._ops.pooling import launch as compiled_pool
from flambeau._runtime.engine import vector_bits
from flambeau._runtime.launch import kernel

# name: input, outputs, kernel, stride, groups
CONVOLUTIONS = {
    "k7s2_3x224": ((8, 3, 224, 224), 64, 7, 2, 1),
    "k3_64x56": ((8, 64, 56, 56), 64, 3, 1, 1),
    "k3_128x28": ((8, 128, 28, 28), 128, 3, 1, 1),
    "k1_256x56": ((8, 256, 56, 56), 64, 1, 1, 1),
    "k3_512x7": ((8, 512, 7, 7), 512, 3, 1, 1),
    "k3s2_64x56": ((8, 64, 56, 56), 128, 3, 2, 1),
    "k3_1x28": ((64, 1, 28, 28), 32, 3, 1, 1),
    "k3_32x26": ((64, 32, 26, 26), 64, 3, 1, 1),
    "batch1_64x56": ((1, 64, 56, 56), 64, 3, 1, 1),
    "groups32_128x28": ((8, 128, 28, 28), 128, 3, 1, 32),
    "dw3_96x56": ((8, 96, 56, 56), 96, 3, 1, 96),
    "dw3s2_144x56": ((8, 144, 56, 56), 144, 3, 2, 144),
    "dw3_960x7": ((8, 960, 7, 7), 960, 3, 1, 960),
}
# name: input, kernel, stride, padding
POOLS = {
    "pool2_64x112": ((8, 64, 112, 112), 2, 2, 0),
    "pool3s2_64x112": ((8, 64, 112, 112), 3, 2, 1),
    "pool3s1_64x28": ((8, 64, 28, 28), 3, 1, 1),
    "pool2_32x28": ((64, 32, 28, 28), 2, 2, 0),
}
SUMS = 12
"""Chains of multiply-adds that keep the machine busy."""

Call = Callable[[], object]


@native
def multiply_adds(out: pointer(f32), rounds: i64, task: i64, tasks: i64, W: static):  # type: ignore[no-untyped-def] # noqa: F821
    """Nothing but multiply-adds in registers."""
    sums = registers(vector(f32, W), SUMS)
    factor = splat(out[0], W)
    for _ in range(rounds):
        for k in unroll(SUMS):
            sums[k] = sums[k] * factor + factor
    for k in unroll(SUMS):
        store(out + (task * SUMS + k) * W, sums[k])


def best(*calls: Call, rounds: int = 3, repeats: int = 4) -> list[float]:
    """The least milliseconds of each call.

    Rounds of some calls alternate: right after a call the threads of one library still wait for
    more, in the way of the other's.
    """
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            call()
            for _ in range(repeats):
                start = time.perf_counter()
                call()
                found[place] = min(found[place], time.perf_counter() - start)
    return [seconds * 1e3 for seconds in found]


def peak() -> float:
    """GFLOP/s of all threads together."""
    width, tasks, rounds = vector_bits() // 32, get_num_threads(), 1 << 20
    out = np.zeros(tasks * SUMS * width, np.float32)
    native_kernel = kernel(multiply_adds, W=width)
    (taken,) = best(lambda: native_kernel.parallel(tasks, out, rounds))
    return 2 * SUMS * width * rounds * tasks / taken / 1e6


def convolution(name: str) -> list[tuple[Call, Call, float]]:
    """Torch's and flambeau's calls, and the operations of one."""
    shape, outputs, size, step, groups = CONVOLUTIONS[name]
    pad = size // 2
    x, bias = torch.randn(shape), torch.randn(outputs)
    weight = torch.randn(outputs, shape[1] // groups, size, size)
    y = torch.conv2d(x, weight, bias, step, pad, 1, groups)
    grad = torch.randn_like(y)
    numbers = ((step, step), (pad, pad), (1, 1), groups)
    arrays = [tensor.numpy() for tensor in (x, weight, bias, grad)]
    work = 2.0 * y.numel() * weight[0].numel()

    def backward(*wanted: bool) -> Call:
        return lambda: torch.ops.aten.convolution_backward(
            grad, x, weight, [outputs], *map(list, numbers[:3]), False, [0, 0], groups, wanted
        )

    input, factors, shift, slopes = arrays
    return [
        (lambda: torch.conv2d(x, weight, bias, step, pad, 1, groups),
         lambda: convolve.conv(input, factors, shift, *numbers), work),
        (backward(True, False, False),
         lambda: convolve.conv_backward_input(slopes, factors, shape, *numbers), work),
        (backward(False, True, False),
         lambda: convolve.conv_backward_weight(slopes, input, factors.shape, *numbers), work),
    ]  # fmt: skip


def pool(name: str) -> list[tuple[Call, Call, float]]:
    """As `convolution`: max pool with positions, its backward, average pool, its backward."""
    shape, size, step, pad = POOLS[name]
    x = torch.randn(shape)
    numbers = ((size, size), (step, step), (pad, pad))
    y, places = F.max_pool2d(x, *numbers, return_indices=True)
    grad = torch.randn_like(y)
    output, ones, aten = tuple(y.shape[2:]), (1, 1), torch.ops.aten
    input, slopes, found = x.numpy(), grad.numpy(), places.numpy()
    work = float(y.numel() * size * size)
    ours = compiled_pool
    return [
        (lambda: F.max_pool2d(x, *numbers, return_indices=True),
         lambda: ours.max_pool_with_indices(input, *numbers, ones, output), work),
        (lambda: aten.max_pool2d_with_indices_backward(grad, x, *numbers, ones, False, places),
         lambda: ours.scatter_planes(slopes, found, shape[2:]), work),
        (lambda: F.avg_pool2d(x, *numbers),
         lambda: ours.avg_pool(input, *numbers, output), work),
        (lambda: aten.avg_pool2d_backward(grad, x, *numbers, False, True, None),
         lambda: ours.avg_pool_backward(slopes, shape[2:], *numbers), work),
    ]  # fmt: skip


def main() -> None:
    """Print one line per case."""
    torch.set_num_threads(get_num_threads())
    highest = peak()
    print(f"{get_num_threads()} threads, multiply-adds: {highest:.0f} GFLOP/s")
    for name in [*CONVOLUTIONS, *POOLS]:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        cells = []
        for theirs, ours, work in (convolution if name in CONVOLUTIONS else pool)(name):
            there, here = best(theirs, ours)
            rate = work / here / 1e6
            share = 100 * rate / highest
            cells.append(f"{there:7.2f} {here:7.2f} {there / here:5.2f}x {rate:4.0f} {share:3.0f}%")
        print(f"{name:16s}", " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
