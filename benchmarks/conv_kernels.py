"""Time the convolution kernels against torch on one thread: `python benchmarks/conv_kernels.py`.

Set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1. Prints milliseconds, ours / torch's.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from flambeau._ops.conv import numpy_form as conv

# name, input, weight, stride, padding, groups
CASES = [
    ("3x3, 64 channels, 56", (8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
    ("3x3, 512 channels, 7", (8, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1),
    ("3x3, stride 2", (8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1),
    ("7x7, stride 2, 224", (8, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    ("1x1, 256 to 64", (8, 256, 56, 56), (64, 256, 1, 1), 1, 0, 1),
    ("1x1, 2 to 256, 512", (1, 2, 512, 512), (256, 2, 1, 1), 1, 0, 1),
    ("1x1, 256 to 256, 128", (1, 256, 128, 128), (256, 256, 1, 1), 1, 0, 1),
    ("depthwise 3x3", (8, 144, 56, 56), (144, 1, 3, 3), 1, 1, 144),
    ("depthwise, stride 2", (8, 144, 56, 56), (144, 1, 3, 3), 2, 1, 144),
    ("5x5, 1 channel, 28", (64, 1, 28, 28), (32, 1, 5, 5), 1, 2, 1),
    ("32 groups", (8, 128, 28, 28), (128, 4, 3, 3), 1, 1, 32),
    ("tiny", (1, 1, 8, 8), (2, 1, 3, 3), 1, 1, 1),
]


def milliseconds(call: Callable[[], object], rounds: int = 5) -> float:
    """The best of some rounds, after one to warm up."""
    call()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def torch_backward(arguments: tuple, wanted: tuple[bool, bool, bool]) -> Callable[[], object]:
    """torch's gradient with respect to what `wanted` marks."""
    return lambda: torch.ops.aten.convolution_backward(*arguments, wanted)


def main() -> None:
    """Print one line per case: forward, gradient of the input, gradient of the weight."""
    torch.set_num_threads(1)
    for name, input_shape, weight_shape, step, pad, groups in CASES:
        input, weight = torch.randn(input_shape), torch.randn(weight_shape)
        stride, padding, dilation = (step,) * 2, (pad,) * 2, (1, 1)
        output = torch.conv2d(input, weight, None, stride, padding, dilation, groups)
        grad = torch.randn_like(output)
        arrays = grad.numpy(), input.numpy(), weight.numpy()
        numbers = stride, padding, dilation, groups
        args = (grad, input, weight, None, stride, padding, dilation, False, (0, 0), groups)
        pairs = (
            (
                lambda a=arrays, n=numbers: conv.conv(a[1], a[2], None, *n),
                lambda i=input, w=weight, n=numbers: torch.conv2d(i, w, None, *n),
            ),
            (
                lambda a=arrays, n=numbers: conv.conv_backward_input(a[0], a[2], a[1].shape, *n),
                torch_backward(args, (True, False, False)),
            ),
            (
                lambda a=arrays, n=numbers: conv.conv_backward_weight(a[0], a[1], a[2].shape, *n),
                torch_backward(args, (False, True, False)),
            ),
        )
        times = [f"{milliseconds(a):8.2f} /{milliseconds(b):8.2f}" for a, b in pairs]
        print(f"{name:22s}", *times)


if __name__ == "__main__":
    main()
