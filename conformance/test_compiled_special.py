"""Special functions of many numbers, which are compiled, against torch and NumPy's forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import flambeau
from flambeau._ops.special import by_name

pytest.importorskip("llvmlite")

FUNCTIONS = {
    "i0": (-30.0, 30.0), "i0e": (-30.0, 30.0), "i1": (-30.0, 30.0), "i1e": (-30.0, 30.0),
    "modified_bessel_i0": (-30.0, 30.0), "modified_bessel_i1": (-30.0, 30.0),
    "bessel_j0": (-30.0, 30.0), "bessel_j1": (-30.0, 30.0), "bessel_y0": (0.0, 30.0),
    "bessel_y1": (0.0, 30.0), "erfcx": (-6.0, 40.0), "log_ndtr": (-40.0, 9.0),
}  # fmt: skip
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 5.0, 8.0, -8.0, 1e10, 1e-40, 1e-310, 90.0,
         705.0, -712.0, 720.0, -1.0, 27.0, -27.0, -26.0, 1e200]  # fmt: skip
# Absolute errors of torch itself, see test_special_kernels
TORCH_ERROR = {"bessel_j0": 3e-6, "bessel_j1": 3e-6, "bessel_y0": 3e-6, "bessel_y1": 3e-6}
WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
SEED = 16
SIZE = 5000


def numbers(name: str, dtype: type) -> np.ndarray:
    low, high = FUNCTIONS[name]
    draw = np.random.RandomState(SEED)
    small = 10.0 ** draw.uniform(-6, 2, SIZE // 2)
    whole = np.concatenate([EDGES, draw.uniform(low, high, SIZE), small])
    with np.errstate(over="ignore"):
        return whole.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, dtype: type) -> None:
    x = numbers(name, dtype)
    found = getattr(flambeau.special, name)(flambeau.from_numpy(x)).numpy()
    assert found.dtype == dtype
    plain = getattr(by_name, name)(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(plain))
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(plain[:2]))
    absolute = 2e-13 if name[:6] == "bessel" else 0.0
    np.testing.assert_allclose(found, plain, 3e-7 if dtype is np.float32 else 1e-13, absolute)
    inside = x[len(EDGES) :]
    wide = torch.from_numpy(inside.astype(np.float64))
    with np.errstate(over="ignore"):
        expected = getattr(torch.special, name)(wide).numpy().astype(dtype)
    relative = 3e-7 if dtype is np.float32 else 2e-12
    absolute = TORCH_ERROR.get(name, 1e-30)
    np.testing.assert_allclose(found[len(EDGES) :], expected, relative, absolute)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e", "log_ndtr"])
def test_gradients(name: str, times: int) -> None:
    """Also of so many numbers that the formula is one kernel."""
    x = np.tile(numbers(name, np.float64)[len(EDGES) :], times)
    ours = flambeau.from_numpy(x).requires_grad_()
    getattr(flambeau.special, name)(ours).sum().backward()
    theirs = torch.from_numpy(x).requires_grad_()
    getattr(torch.special, name)(theirs).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 2e-10, 1e-12)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_nextafter(name: str) -> None:
    """The bits of each neighbour, from every kind of number to every other one."""
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 6e4, -6e4, 3e38]
    draw = torch.Generator().manual_seed(SEED)
    dtype = getattr(torch, name)
    x = torch.cat([torch.tensor(values), torch.randn(40000, generator=draw)]).to(dtype)
    y = torch.cat([x[:20].roll(k) for k in range(20)] * 100).to(dtype)[: x.numel()]
    y = torch.cat([y, torch.randn(x.numel() - y.numel(), generator=draw).to(dtype)])
    x = torch.cat([x[:20].repeat(1200), x[24000:]])
    whole = WORDS[dtype.itemsize]
    pair = [flambeau.from_numpy(t.view(whole).numpy()) for t in (x, y)]
    ours = flambeau.nextafter(*(p.view(getattr(flambeau, name)) for p in pair))
    expected = torch.nextafter(x, y)
    same = torch.from_numpy(ours.view(getattr(flambeau, str(whole)[6:])).numpy())
    free = torch.isnan(expected) & torch.isnan(same.view(dtype))
    if name == "float16":  # NumPy gives the first of two zeros, torch the second
        free |= (x == 0) & (y == 0) & (same.view(dtype) == 0)
    assert bool(((same == expected.view(whole)) | free).all())
