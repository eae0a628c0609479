"""Resizing, adaptive pools and pads of as many elements as kernels are for, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import torch

import flambeau

DTYPES = ["float32", "float64", "float16", "bfloat16"]
FINE = DTYPES[:2]
EPS = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}
SEEDS = range(4)

Function = Callable[[Any, Any], Any]


def drawn(seed: int, spatial: int) -> tuple[np.random.Generator, np.ndarray, tuple[int, ...]]:
    """An image of some thousand elements, in odd rounds with infinities and nan, and other sizes
    for it."""
    rng = np.random.default_rng([seed, spatial])
    most = {1: 200, 2: 45, 3: 14}[spatial]
    sizes = tuple(int(n) for n in rng.integers(most // 3, most, spatial))
    output = tuple(int(n) for n in rng.integers(2, most, spatial))
    image = rng.standard_normal((2, 5, *sizes))
    if seed % 2:
        image[rng.random(image.shape) < 0.01] = np.inf
        image[rng.random(image.shape) < 0.01] = np.nan
    return rng, image, output


def same(function: Function, image: np.ndarray, dtype: str, last: bool = False,
         rng: np.random.Generator | None = None) -> None:  # fmt: skip
    """The value, its strides and, given `rng`, the gradient are those of torch."""
    sides = []
    for library in (torch, flambeau):
        x = library.tensor(image).to(getattr(library, dtype))
        if last:
            formats = {4: library.channels_last, 5: library.channels_last_3d}
            x = x.contiguous(memory_format=formats[x.dim()])
        if rng is not None:
            x.requires_grad_()
        sides.append((x, function(library.nn.functional, x)))
    (x, expected), (own, found) = sides
    assert found.stride() == expected.stride()
    close(found, expected, EPS.get(dtype, 0))
    if rng is None:
        return
    grad = rng.standard_normal(expected.shape)
    expected.backward(torch.tensor(grad).to(expected.dtype))
    found.backward(flambeau.tensor(grad).to(found.dtype))
    assert own.grad.stride() == x.grad.stride()
    close(own.grad, x.grad, EPS[dtype] * 4)


def close(found: Any, expected: Any, error: float) -> None:
    wide = expected.detach().double().numpy()
    largest = np.abs(wide[np.isfinite(wide)]).max(initial=1)
    np.testing.assert_allclose(found.detach().double().numpy(), wide, error, error * largest)


MODES = [
    ("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 1), ("nearest-exact", 2),
    ("nearest-exact", 3), ("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2),
    ("area", 1), ("area", 2), ("area", 3),
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_resizing(mode: tuple[str, int], dtype: str, seed: int) -> None:
    name, spatial = mode
    rng, image, output = drawn(seed, spatial)
    words: dict[str, Any] = {"size": output}
    if seed > 1:
        words = {"scale_factor": tuple(float(s) for s in rng.uniform(0.4, 2.6, spatial))}
    if "linear" in name or name == "bicubic":
        words["align_corners"] = bool(seed % 3)
    for last in (False, True)[: 2 if spatial > 1 else 1]:
        same(lambda F, x: F.interpolate(x, mode=name, **words), image, dtype, last, rng)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing(mode: str, dtype: str, seed: int) -> None:
    rng, image, output = drawn(seed, 2)
    if mode == "bicubic":  # a weight at the end of its span is 0, or next to it: torch's rounding
        image[np.isinf(image)] = np.nan
    for last in (False, True):
        same(lambda F, x: F.interpolate(x, output, mode=mode, antialias=True), image, dtype, last,
             rng)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_bytes(mode: str, seed: int) -> None:
    rng, image, output = drawn(seed, 2)
    image = rng.integers(0, 256, image.shape).astype(np.uint8)
    for last in (False, True):
        same(lambda F, x: F.interpolate(x, output, mode=mode), image, "uint8", last)
        if mode in ("bilinear", "bicubic"):
            same(lambda F, x: F.interpolate(x, output, mode=mode, antialias=True), image, "uint8",
                 last)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_adaptive_pools(spatial: int, dtype: str, seed: int) -> None:
    rng, image, output = drawn(seed, spatial)
    for last in (False, True)[: 2 if spatial > 1 else 1]:
        for kind in ("avg", "max"):
            name = f"adaptive_{kind}_pool{spatial}d"
            same(lambda F, x, name=name: getattr(F, name)(x, output), image, dtype, last, rng)
            for one in (output, (2,) * spatial):
                places = lambda F, x, one=one: getattr(  # noqa: E731
                    F, f"adaptive_max_pool{spatial}d")(x, one, return_indices=True)[1]  # fmt: skip
                same(places, image, dtype, last)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spatial", [2, 3])
def test_fractional_pools(spatial: int, dtype: str, seed: int) -> None:
    rng, image, _ = drawn(seed, spatial)
    samples = rng.random((2, 5, spatial))
    output = tuple(int(rng.integers(1, max(n - 3, 2))) for n in image.shape[2:])
    size = tuple(int(n) for n in rng.integers(1, 4, spatial))
    library_of = {torch.nn.functional: torch, flambeau.nn.functional: flambeau}

    def pooled(F: Any, x: Any, which: int) -> Any:
        given = library_of[F].tensor(samples).to(x.dtype)
        return getattr(F, f"fractional_max_pool{spatial}d")(
            x, size, output_size=output, return_indices=True, _random_samples=given
        )[which]

    same(lambda F, x: pooled(F, x, 0), image, dtype, rng=rng)
    same(lambda F, x: pooled(F, x, 1), image, dtype)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_pads(spatial: int, mode: str, dtype: str, seed: int) -> None:
    rng, image, _ = drawn(seed, spatial)
    pad = [int(n) for n in rng.integers(-2, 4, 2 * spatial)]
    if dtype.startswith("complex"):
        image = image + 1j
        padded = lambda F, x: F.pad(x, pad, mode=mode)  # noqa: E731
        same(lambda F, x: padded(F, x).real.contiguous(), image, dtype)
        same(lambda F, x: padded(F, x).imag.contiguous(), image, dtype)
        return
    for last in (False, True)[: 2 if spatial > 1 else 1]:
        same(lambda F, x: F.pad(x, pad, mode=mode), image, dtype, last, rng)
