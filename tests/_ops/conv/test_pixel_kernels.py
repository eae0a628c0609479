"""The convolutions over pixels against direct sums in float64."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
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
from flambeau._ops.conv import (
    launch_pixels as conv_pixels,
)
from flambeau._ops.launching.epilogue import Epilogue
from flambeau._runtime import choice
from tests._ops.conv.conv_cases import DTYPES, Case, compare


def forward(case: Case, after: Epilogue = conv_pixels.NOTHING) -> np.ndarray:
    plan = conv_pixels.forward_plan(case.input.shape, case.weight.shape, case.output,
                                    *case.numbers, case.input.dtype, settings.get_num_threads(),
                                    True)  # fmt: skip
    assert plan is not None
    packed = conv_pixels.pack(case.weight, case.groups)
    out = np.empty(case.grad.shape, case.input.dtype)
    return conv_pixels.multiply(plan, case.input, packed, case.bias, out, after)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the kernels whatever the sizes."""
    for name in ("OUTPUTS", "RUN", "WINDOWS", "PACKED_WINDOWS"):
        monkeypatch.setattr(conv_pixels, f"LEAST_{name}", 0)
    forget()
    yield
    forget()


def forget() -> None:
    """Make all plans anew."""
    conv_pixels.forward_plan.cache_clear()
    conv_pixels.gradient_plan.cache_clear()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_sums_and_the_gradient_of_the_input(spatial: int, dtype: Any) -> None:
    gradients = strided = 0
    for seed in range(16):
        case = Case(seed, spatial, False, dtype, 11 if seed % 3 else 0)
        expected = case.expected()
        compare(forward(case), expected["forward"], dtype)
        shapes = (case.grad.shape, case.weight.shape, case.input.shape)
        plan = conv_pixels.gradient_plan(*shapes, *case.numbers, case.grad.dtype, 2)
        if plan is None:
            continue
        gradients += 1
        strided += max(case.stride) > 1
        found = plan.run(case.grad, case.weight, None, case.input.shape, case.groups)
        compare(found, expected["input"], dtype)
    assert gradients > strided > 0


@pytest.mark.parametrize("threads", [1, 2])
def test_images_that_are_computed_together(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, also where the last ones are fewer."""
    generator = np.random.default_rng(0)
    input = generator.normal(size=(7, 24, 5, 6)).astype(np.float32)
    weight = generator.normal(size=(40, 24, 3, 3)).astype(np.float32)
    numbers = ((3, 3), (2, 2), (1, 1), (1, 1), 1)
    found = []
    for windows in (1, 18, 36, 1 << 20):
        monkeypatch.setattr(conv_pixels, "JOINED_WINDOWS", windows)
        forget()
        plan = conv_pixels.forward_plan(input.shape, weight.shape, *numbers, input.dtype, threads,
                                        False)  # fmt: skip
        assert plan is not None
        out = np.empty((7, 40, 3, 3), np.float32)
        found.append(conv_pixels.multiply(plan, input, conv_pixels.pack(weight, 1), None, out))
    assert all((other == found[0]).all() for other in found)


@pytest.mark.parametrize("channels", [8, 70, 300])
def test_many_channels_and_small_bands(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels of weights part by part, and bands of one row."""
    case = Case(7, 2, False, np.float32, channels)
    compare(forward(case), case.expected()["forward"], np.float32)
    monkeypatch.setattr(conv_pixels, "BAND_BYTES", 1)
    monkeypatch.setattr(conv_pixels, "PANEL_BYTES", 1)
    forget()
    compare(forward(case), case.expected()["forward"], np.float32)


def after_of(case: Case, floor: float, ceiling: float) -> tuple[Epilogue, np.ndarray]:
    """A residual and bounds, and what they make of the sums."""
    generator = np.random.default_rng(1)
    residual = generator.normal(size=case.grad.shape).astype(case.input.dtype)
    total = case.expected()["forward"] + residual
    return Epilogue(residual, floor, ceiling), np.clip(total, floor, ceiling)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("bounds", [(-inf, inf), (0.0, inf), (-0.5, 0.75)])
def test_residuals_and_bounds(bounds: tuple[float, float], dtype: Any) -> None:
    for seed in (2, 3, 4):
        case = Case(seed, 2, False, dtype, 9)
        after, expected = after_of(case, *bounds)
        compare(forward(case, after), expected, dtype)
        numbers = (case.weight, case.bias, case.output, *case.numbers, after)
        compare(compiled_conv.forward(case.input, *numbers), expected, dtype)
        case = Case(seed, 2, True, dtype)
        after, expected = after_of(case, *bounds)
        numbers = (case.weight, case.bias, case.output, *case.numbers, after)
        compare(compiled_depthwise.forward(case.input, *numbers), expected, dtype)


@pytest.mark.parametrize("limit", [0, choice.NEVER])
def test_the_way_that_is_chosen_does_not_change_the_sums(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "LIMITS", dict.fromkeys(choice.LIMITS, limit))
    for seed in range(8):
        case = Case(seed, 2, seed % 4 == 3, np.float64, 0 if seed % 4 == 3 else 7)
        after, expected = after_of(case, 0.0, 2.0)
        weight = convolve.PackedWeight(case.weight, case.groups)
        for given in (case.weight, weight, weight):
            found = convolve.conv(case.input, given, case.bias, *case.numbers, after)
            compare(found, expected, np.float64)


def test_nan_stays_nan() -> None:
    case = Case(3, 2, False, np.float32, 9)
    case.input[0, 0] = np.nan
    plain = forward(case)
    found = forward(case, Epilogue(None, 0.0, 1.0))
    assert np.isnan(plain).any()
    assert not np.isnan(plain).all()
    assert np.array_equal(found, np.clip(plain, 0, 1), equal_nan=True)


def test_what_lies_behind_a_row_does_not_leak_into_the_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows are read in vectors, which reach into the next row."""
    monkeypatch.setattr(choice, "LIMITS", dict.fromkeys(choice.LIMITS, 0))
    input = np.zeros((1, 8, 3, 5), np.float32)
    input[:, :, 1] = np.nan
    found = convolve.conv(input, np.ones((16, 8, 1, 3), np.float32), None, (2, 1), (0, 1), (1, 1))
    assert np.array_equal(found, np.zeros((1, 16, 2, 5)))


def test_sums_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(2, 2, False, np.float32, 40)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(settings.Threads, "inside", threads)
        results.append(forward(case))
    assert all(np.array_equal(other, results[0]) for other in results[1:])
