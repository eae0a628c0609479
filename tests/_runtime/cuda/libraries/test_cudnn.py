"""Convolutions through cuDNN's graph interface, computed by the stand-in, against sums of windows.

The gradients are the adjoints: `<conv(x, w), g> = <x, data(g, w)> = <w, filter(x, g)>`.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._runtime.cuda.libraries import cudnn
from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Convolution, Wishes, convolution
from flambeau._runtime.cuda.libraries.foreign import LibraryError
from tests._runtime.cuda.libraries.conftest import OnDevice, close, drawn, random, wide

TYPES = {"float32": (np.float32, 1e-4), "float64": (np.float64, 1e-10),
         "float16": (np.float16, 1e-2), "bfloat16": (ml_dtypes.bfloat16, 6e-2)}  # fmt: skip
EXACT = Wishes(tf32=False)


def windows(x: np.ndarray, w: np.ndarray, padding: Any, stride: Any, dilation: Any) -> np.ndarray:
    """The definition: one output position after the other."""
    x, w = wide(x), wide(w)
    padded = np.pad(x, [(0, 0), (0, 0), *((pad, pad) for pad in padding)])
    sizes = [(size - gap * (taps - 1) - 1) // step + 1 for size, taps, step, gap in zip(
        padded.shape[2:], w.shape[2:], stride, dilation, strict=True)]  # fmt: skip
    groups = x.shape[1] // w.shape[1]
    result = np.zeros((len(x), len(w), *sizes))
    for filter in range(len(w)):
        first = filter // (len(w) // groups) * w.shape[1]
        for place in product(*map(range, sizes)):
            window = tuple(slice(p * step, p * step + gap * (taps - 1) + 1, gap) for
                           p, step, taps, gap in zip(place, stride, w.shape[2:], dilation,
                                                     strict=True))  # fmt: skip
            part = padded[(slice(None), slice(first, first + w.shape[1]), *window)]
            result[(slice(None), filter, *place)] = (part * w[filter]).reshape(len(x), -1).sum(1)
    return result


def last(values: np.ndarray) -> np.ndarray:
    """The same elements with the channels side by side."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)


def case(rng: Any, dtype: Any, dims: int) -> Any:
    groups = int(rng.integers(1, 3))
    channels, filters = int(rng.integers(1, 4)), groups * int(rng.integers(1, 3))
    kernel = tuple(int(n) for n in rng.integers(1, 4, dims))
    padding, stride, dilation = (
        tuple(int(n) for n in rng.integers(low, 3, dims)) for low in (0, 1, 1)
    )
    sizes = [gap * (taps - 1) + int(rng.integers(1, 5)) for taps, gap in zip(
        kernel, dilation, strict=True)]  # fmt: skip
    x = drawn(rng, (int(rng.integers(1, 3)), channels * groups, *sizes), dtype)
    return x, drawn(rng, (filters, channels, *kernel), dtype), padding, stride, dilation


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("round", range(4))
def test_convolutions_and_their_adjoints(device, name, dims, round):
    """Sizes, padding, stride, dilation, groups, bias, relu, both memory formats."""
    rng = random("convolutions", name, dims, round)
    dtype, tolerance = TYPES[name]
    x, w, *numbers = case(rng, dtype, dims)
    want = windows(x, w, *numbers)
    grad = drawn(rng, want.shape, dtype)
    biased, relu = bool(round & 1), round == 3
    bias = drawn(rng, (len(w),), dtype)
    arrange = last if round & 2 and dims > 1 else np.asarray
    a, b, g = (OnDevice(arrange(one)) for one in (x, w, grad))
    out = OnDevice(arrange(np.zeros(want.shape, dtype)))
    shift = OnDevice(bias)
    forward = convolution(
        Convolution("forward", name, a.array, b.array, out.array, *numbers, biased, relu), EXACT
    )
    given = (a.address, b.address, out.address, shift.address)
    forward.run(*given[: 3 + biased])
    if biased:
        want = want + wide(bias).reshape(-1, *(1,) * dims)
    close(out.back(), np.maximum(want, 0) if relu else want, tolerance)
    _check_adjoints(name, a, b, g, numbers, tolerance)


def _check_adjoints(name: str, x: Any, w: Any, grad: Any, numbers: Any, tolerance: float) -> None:
    to_x, to_w = OnDevice(np.zeros_like(x.values)), OnDevice(np.zeros_like(w.values))
    convolution(Convolution("data", name, x.array, w.array, grad.array, *numbers), EXACT).run(
        to_x.address, w.address, grad.address)  # fmt: skip
    convolution(Convolution("filter", name, x.array, w.array, grad.array, *numbers), EXACT).run(
        x.address, to_w.address, grad.address)  # fmt: skip
    rng = np.random.default_rng(5)
    for found, of_x in ((to_x, True), (to_w, False)):
        probe = rng.standard_normal(found.values.shape)
        pair = (probe, w.values) if of_x else (x.values, probe)
        expected = (windows(*pair, *numbers) * wide(grad.values)).sum()
        got = (wide(found.back()) * probe).sum()
        size = 1 + np.abs(wide(found.back())).sum()
        assert abs(got - expected) <= tolerance * size


def simple(name: str = "float32", size: int = 16, alignment: int = 16) -> tuple[Any, ...]:
    rng = random("simple", name, size)
    dtype = TYPES[name][0]
    x, w = drawn(rng, (1, 8, size, size), dtype), drawn(rng, (8, 8, 3, 3), dtype)
    want = windows(x, w, (1, 1), (1, 1), (1, 1))
    a, b, out = OnDevice(x), OnDevice(w), OnDevice(np.zeros(want.shape, dtype))
    asked = Convolution("forward", name, a.array, b.array, out.array, (1, 1), (1, 1), (1, 1),
                        alignment=alignment)  # fmt: skip
    return asked, a, b, out, want


def test_tf32_is_left_out_where_it_is_not_wanted(device):
    asked, a, b, out, want = simple()
    errors = []
    for wishes in (Wishes(), EXACT):
        convolution(asked, wishes).run(a.address, b.address, out.address)
        errors.append(np.abs(out.back() - want).max())
    assert errors[1] < 1e-4 < 1e-3 < errors[0]


def test_candidates_are_measured_into_memory_of_their_own(device, monkeypatch):
    asked, a, b, out, want = simple("float64", 4)
    counts = []

    def second(ways: Any) -> int:
        for way in ways:
            way()
        counts.append(len(ways))
        assert (out.back() == 0).all()
        return 1

    monkeypatch.setattr(cudnn, "fastest", second)
    for deterministic in (False, True):
        plan = convolution(asked, Wishes(deterministic=deterministic, limit=10))
        chosen = plan.found[1][0]
        for _ in range(3):
            plan.run(a.address, b.address, out.address, scratch=(2, out.nbytes))
        assert plan.plan == chosen
        close(out.back(), want, 1e-10)
        running_zero(out)
    assert counts == [3, 2]


def running_zero(out: Any) -> None:
    cudnn_memory = np.zeros(out.nbytes, np.uint8)
    from flambeau._runtime.cuda.memory import running

    running().to_device(out.address, cudnn_memory.ctypes.data, out.nbytes, 0)


def test_addresses_that_come_again_are_packed_once(device):
    asked, a, b, out, _ = simple("float64", 4)
    plan = convolution(asked, EXACT)
    for _ in range(3):
        plan.run(a.address, b.address, out.address)
    assert len(plan.packs) == 1
    others = [OnDevice(np.zeros_like(out.values)) for _ in range(cudnn.PACKS + 3)]
    for other in others:
        plan.run(a.address, b.address, other.address)
    assert len(plan.packs) <= cudnn.PACKS
    assert (others[-1].back() == out.back()).all()


def test_sizes_that_do_not_fit_are_refused(device):
    asked, *_ = simple("float64", 4)
    with pytest.raises((Unsupported, LibraryError)):
        convolution(Convolution("forward", "float64", asked.x, asked.w, asked.y, (0, 0), (1, 1),
                                (1, 1)), EXACT)  # fmt: skip
