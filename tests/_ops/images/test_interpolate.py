"""Interpolation and grid sampling: known values, constants stay, gradients are adjoints."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau._ops.images import (
    interpolate_bytes,
)
from flambeau._ops.images import (
    numpy_grid as grid,
)
from flambeau._ops.images import (
    numpy_interpolate as interpolate,
)

MODES = [("nearest", False), ("nearest-exact", False), ("bilinear", False), ("bicubic", True)]


def test_linear_by_hand() -> None:
    result = interpolate.interpolate(np.array([[[0.0, 4.0]]]), "linear", (4,))
    np.testing.assert_allclose(result, [[[0.0, 1.0, 3.0, 4.0]]])
    result = interpolate.interpolate(np.array([[[0.0, 4.0]]]), "linear", (5,), align_corners=True)
    np.testing.assert_allclose(result, [[[0.0, 1.0, 2.0, 3.0, 4.0]]])


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_constants_and_adjoints(mode: tuple[str, bool], antialias: bool) -> None:
    name, align = mode
    if antialias and name.startswith("nearest"):
        pytest.skip("antialias is for bilinear and bicubic")
    rng = np.random.default_rng(0)
    options = align, None, antialias
    constant = interpolate.interpolate(np.full((1, 1, 9, 5), 3.0), name, (4, 7), *options)
    np.testing.assert_allclose(constant, 3.0)
    input = rng.standard_normal((2, 3, 9, 5))
    result = interpolate.interpolate(input, name, (4, 7), *options)
    grad = rng.standard_normal(result.shape)
    back = interpolate.interpolate_backward(grad, name, (9, 5), *options)
    assert np.isclose((back * input).sum(), (result * grad).sum())


def test_bytes_stay_in_range() -> None:
    input = np.array([[[[0, 255, 0, 255]]]], np.uint8)
    result = interpolate_bytes.interpolate_bytes(input, "bicubic", (1, 13))
    assert result.dtype == np.uint8
    assert result.min() == 0
    assert result.max() == 255


@pytest.mark.parametrize("align", [False, True])
def test_identity_grid(align: bool) -> None:
    input = np.random.default_rng(1).standard_normal((1, 2, 4, 5))
    theta = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    places = grid.affine_grid(theta, (1, 2, 4, 5), align)
    result = grid.grid_sample(input, places, "bilinear", "border", align)
    np.testing.assert_allclose(result, input, atol=1e-12)
