"""The compiled convolutions against direct sums in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._core import settings
from flambeau._ops.conv import (
    choice as convolve,
)
from flambeau._ops.conv import (
    launch as compiled_conv,
)
from flambeau._ops.conv import (
    launch_depthwise as compiled_depthwise,
)
from flambeau._ops.launching.epilogue import Epilogue
from flambeau._runtime import choice
from tests._ops.conv.conv_cases import DTYPES, Case, compare


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("kernels", [compiled_conv, compiled_depthwise],
                         ids=["dense", "depthwise"])  # fmt: skip
def test_sums_and_gradients(kernels: Any, spatial: int, dtype: Any) -> None:
    for seed in range(12):
        case = Case(seed, spatial, kernels is compiled_depthwise, dtype)
        found = case.found(kernels)
        for name, expected in case.expected().items():
            compare(found[name], expected, dtype)


@pytest.mark.parametrize("channels", [3, 70, 300])
def test_many_channels_are_summed_block_by_block(channels: int) -> None:
    case = Case(7, 2, False, np.float32, channels)
    found = case.found(compiled_conv)
    for name, expected in case.expected().items():
        compare(found[name], expected, np.float32)


def test_phases_of_few_channels_are_computed_together() -> None:
    rng = np.random.default_rng(0)
    case = Case(1, 2)
    case.input = rng.normal(size=(2, 3, 24, 16))
    case.weight = rng.normal(size=(8, 3, 7, 5))
    case.stride, case.padding, case.dilation, case.groups = (2, 2), (3, 2), (1, 1), 1
    case.output = (12, 8)
    case.grad = rng.normal(size=(2, 8, 12, 8))
    case.bias = np.zeros(8)
    case.numbers = ((2, 2), (3, 2), (1, 1), 1)
    compare(case.found(compiled_conv)["input"], case.expected()["input"], np.float64)
    case.grad[0, 3, 5, 5] = np.inf  # a zero in the joined product must not make it nan elsewhere
    found = case.found(compiled_conv)["input"]
    reached = np.zeros(found.shape[2:], bool)
    reached[2 * 5 - 3 : 2 * 5 + 4, 2 * 5 - 2 : 2 * 5 + 3] = True
    assert np.isfinite(found[1]).all()
    assert np.array_equal(np.isfinite(found[0, 0]), ~reached)


@pytest.mark.parametrize("kernels", [compiled_conv, compiled_depthwise],
                         ids=["dense", "depthwise"])  # fmt: skip
def test_operands_need_not_be_contiguous(kernels: Any) -> None:
    case = Case(5, 2, kernels is compiled_depthwise)
    expected = case.expected()
    case.input = np.asfortranarray(case.input)
    case.weight = np.asfortranarray(case.weight)
    case.grad = np.repeat(case.grad, 2, axis=-1)[..., ::2]
    found = case.found(kernels)
    for name, values in expected.items():
        compare(found[name], values, np.float64)


@pytest.mark.parametrize("kernels", [compiled_conv, compiled_depthwise],
                         ids=["dense", "depthwise"])  # fmt: skip
def test_a_floor_is_a_relu_that_keeps_nan(kernels: Any) -> None:
    case = Case(3, 2, kernels is compiled_depthwise)
    case.input[0, 0] = np.nan
    plain = kernels.forward(case.input, case.weight, case.bias, case.output, *case.numbers)
    found = kernels.forward(case.input, case.weight, case.bias, case.output, *case.numbers,
                            Epilogue(floor=0.0))  # fmt: skip
    assert np.isnan(plain).any()
    assert np.array_equal(found, np.where(plain < 0, 0, plain), equal_nan=True)


def test_what_lies_behind_a_row_does_not_leak_into_the_sums() -> None:
    """Vectors reach over the end of a row; the next row's nan must stay there."""
    input = np.zeros((1, 2, 3, 5))
    input[:, :, 1] = np.nan
    weight = np.ones((2, 1, 1, 3))
    numbers = ((2, 1), (0, 0), (1, 1), 2)
    found = compiled_depthwise.forward(input, weight, None, (2, 3), *numbers)
    assert np.array_equal(found, np.zeros((1, 2, 2, 3)))
    grad = np.ones((1, 2, 2, 3))
    of_weight = compiled_depthwise.backward_weight(grad, input, weight.shape, *numbers)
    assert np.array_equal(of_weight, np.zeros(weight.shape))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_channel_sums(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for shape in [(2, 3, 5), (1, 4, 33, 7), (3, 2, 1), (2, 5, 3, 4, 5)]:
        grad = rng.normal(size=shape).astype(dtype)
        expected = grad.astype(np.float64).sum((0, *range(2, grad.ndim)))
        compare(compiled_depthwise.channel_sums(grad), expected, dtype)


def test_transposed_convolutions_are_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LIMITS", dict.fromkeys(choice.LIMITS, 0))
    for seed in range(8):
        case = Case(seed, 2, seed % 2 == 1)
        expected = case.expected()
        sizes = zip(case.input.shape[2:], case.output, case.stride, case.padding,
                    case.weight.shape[2:], case.dilation, strict=True)  # fmt: skip
        extra = [n - ((o - 1) * s - 2 * p + d * (k - 1) + 1) for n, o, s, p, k, d in sizes]
        stride, padding, dilation, groups = case.numbers
        bias = np.arange(case.input.shape[1], dtype=np.float64)
        found = convolve.conv_transpose(
            case.grad, case.weight, bias, stride, padding, extra, dilation, groups
        )
        compare(found, expected["input"] + bias.reshape(-1, 1, 1), np.float64)
        of_weight = convolve.conv_transpose_backward_weight(
            case.input, case.grad, case.weight.shape, *case.numbers
        )
        compare(of_weight, expected["weight"], np.float64)


def test_sums_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(2, 2, False, np.float32, 40)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(settings.Threads, "inside", threads)
        results.append(case.found(compiled_conv))
    for other in results[1:]:
        assert all(np.array_equal(other[name], results[0][name]) for name in other)
