"""Convolutions with random numbers, and their sums and gradients in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from flambeau._ops.launching.windows import window_count

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


class Case:
    """A convolution with random numbers, whose sums and gradients are known in float64."""

    def __init__(self, seed: int, spatial: int, depthwise: bool = False, dtype: Any = np.float64,
                 channels: int = 0) -> None:  # fmt: skip
        rng = np.random.default_rng(seed)
        pick = lambda low, high: tuple(int(n) for n in rng.integers(low, high, spatial))  # noqa: E731
        self.stride, self.dilation = pick(1, 4), pick(1, 3)
        self.padding, kernel = pick(0, 3), pick(1, 5)
        if seed % 4 == 0:
            kernel = self.stride = self.dilation = (1,) * spatial
        spans = [gap * (n - 1) + 1 for n, gap in zip(kernel, self.dilation, strict=True)]
        size = tuple(span + int(rng.integers(0, 20 if spatial < 3 else 5)) for span in spans)
        self.groups = int(rng.integers(2, 6)) if depthwise else int(rng.integers(1, 4))
        into = 1 if depthwise else channels or int(rng.integers(1, 9))
        outputs = self.groups * int(rng.integers(1, 3 if depthwise else 20))
        images = int(rng.integers(1, 4))
        self.input = rng.normal(size=(images, self.groups * into, *size)).astype(dtype)
        self.weight = rng.normal(size=(outputs, into, *kernel)).astype(dtype)
        self.bias = rng.normal(size=outputs).astype(dtype)
        numbers = (size, kernel, self.stride, self.padding, self.dilation)
        self.output = tuple(map(window_count, *numbers))
        self.grad = rng.normal(size=(images, outputs, *self.output)).astype(dtype)
        self.numbers = (self.stride, self.padding, self.dilation, self.groups)

    def taps(self) -> Any:
        """Every tap with the places of the padded input that it reads."""
        for tap in product(*map(range, self.weight.shape[2:])):
            starts = [k * gap for k, gap in zip(tap, self.dilation, strict=True)]
            ends = zip(starts, self.output, self.stride, strict=True)
            places = tuple(slice(low, low + (n - 1) * step + 1, step) for low, n, step in ends)
            yield (slice(None), slice(None), *tap), (slice(None), slice(None), *places)

    def expected(self) -> dict[str, np.ndarray]:
        """The sums, one tap after the other."""
        margins = [(0, 0), (0, 0), *((pad, pad) for pad in self.padding)]
        padded = np.pad(self.input.astype(np.float64), margins)
        weight, grad = self.weight.astype(np.float64), self.grad.astype(np.float64)
        result = np.zeros(grad.shape)
        result += self.bias.astype(np.float64).reshape(-1, *(1,) * len(self.output))
        to_input, to_weight = np.zeros(padded.shape), np.zeros(weight.shape)
        groups = range(self.groups)
        rows, into = len(weight) // self.groups, weight.shape[1]
        for tap, places in self.taps():
            for group in groups:
                out = slice(group * rows, (group + 1) * rows)
                own = slice(group * into, (group + 1) * into)
                factor, part = weight[tap][out], padded[places][:, own]
                result[:, out] += np.einsum("oc,nc...->no...", factor, part)
                to_input[places][:, own] += np.einsum("oc,no...->nc...", factor, grad[:, out])
                sums = np.einsum("nox,ncx->oc", grad[:, out].reshape(len(grad), rows, -1),
                                 part.reshape(len(grad), into, -1))  # fmt: skip
                to_weight[tap][out] += sums
        inner = [slice(pad, pad + n)
                 for pad, n in zip(self.padding, self.input.shape[2:], strict=True)]  # fmt: skip
        return {"forward": result, "input": to_input[(slice(None), slice(None), *inner)],
                "weight": to_weight}  # fmt: skip

    def found(self, kernels: Any) -> dict[str, np.ndarray]:
        """What the kernels compute."""
        return {
            "forward": kernels.forward(self.input, self.weight, self.bias, self.output,
                                       *self.numbers),
            "input": kernels.backward_input(self.grad, self.weight, self.input.shape,
                                            *self.numbers),
            "weight": kernels.backward_weight(self.grad, self.input, self.weight.shape,
                                              *self.numbers),
        }  # fmt: skip


def compare(found: np.ndarray, expected: np.ndarray, dtype: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    most = max(1.0, float(abs(expected).max(initial=0)))
    worst = float(abs(found.astype(np.float64) - expected).max(initial=0))
    assert worst <= TOLERANCE[np.dtype(dtype).name] * most
