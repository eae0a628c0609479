"""Time the pool kernels against torch on one thread: `python benchmarks/pool_kernels.py`.

Set OMP_NUM_THREADS=1. Prints milliseconds, ours / torch's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from conv_kernels import milliseconds

from flambeau._ops.pooling import numpy_form as pool

# name, input, kernel, stride, padding
CASES = [
    ("2x2", (8, 64, 112, 112), 2, 2, 0),
    ("3x3, stride 2", (8, 64, 112, 112), 3, 2, 1),
    ("3x3, stride 1", (8, 64, 28, 28), 3, 1, 1),
    ("2x2, 28", (64, 32, 28, 28), 2, 2, 0),
]


Pair = tuple[Callable[[], object], Callable[[], object]]


def pairs(shape: tuple[int, ...], size: int, step: int, pad: int) -> list[Pair]:
    """Ours and torch's: max pool with indices, its backward, average pool, its backward."""
    aten = torch.ops.aten
    input = torch.randn(shape)
    kernel, stride, padding, dilation = (size,) * 2, (step,) * 2, (pad,) * 2, (1, 1)
    output, indices = F.max_pool2d(input, kernel, stride, padding, return_indices=True)
    grad, spatial, sizes = torch.randn_like(output), shape[2:], tuple(output.shape[2:])
    found, places, array = grad.numpy(), indices.numpy(), input.numpy()
    numbers = kernel, stride, padding
    return [
        (
            lambda: pool.max_pool_with_indices(array, *numbers, dilation, sizes),
            lambda: F.max_pool2d(input, *numbers, return_indices=True),
        ),
        (
            lambda: pool.max_pool_backward(found, places, spatial, kernel, stride, dilation),
            lambda: aten.max_pool2d_with_indices_backward(
                grad, input, *numbers, dilation, False, indices
            ),
        ),
        (
            lambda: pool.avg_pool(array, *numbers, sizes),
            lambda: F.avg_pool2d(input, *numbers),
        ),
        (
            lambda: pool.avg_pool_backward(found, spatial, *numbers),
            lambda: aten.avg_pool2d_backward(grad, input, *numbers, False, True, None),
        ),
    ]


def main() -> None:
    """Print one line per case."""
    torch.set_num_threads(1)
    for name, *case in CASES:
        both = [(milliseconds(ours), milliseconds(theirs)) for ours, theirs in pairs(*case)]
        print(f"{name:16s}", *(f"{ours:8.2f} /{theirs:8.2f}" for ours, theirs in both))


if __name__ == "__main__":
    main()
