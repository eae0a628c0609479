"""Convolutions of bfloat16 as products, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._ops.conv import by_products, numpy_form
from flambeau._ops.launching.windows import window_counts
from flambeau._ops.products import gemm
from flambeau._ops.products.tiles import BFLOAT16
from tests.random_seeds import generator

CASES = [
    # images, channels, outputs, size, kernel, stride, padding, dilation
    (2, 5, 7, (9, 20), (3, 3), (1, 1), (1, 1), (1, 1)),
    (3, 16, 20, (12, 11), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 4, 6, (17, 19), (2, 5), (2, 3), (3, 2), (1, 1)),
    (1, 3, 4, (8, 40), (3, 3), (1, 2), (2, 0), (2, 3)),
    (2, 3, 2, (2, 2), (3, 3), (1, 1), (2, 2), (1, 1)),
    (1, 2, 3, (5, 5), (1, 1), (2, 2), (1, 1), (1, 1)),
]
pytestmark = pytest.mark.skipif(not gemm.usable(), reason="BLAS multiplies where there is no FMA")


def close(result: np.ndarray, wanted: np.ndarray) -> None:
    """Within one rounding to bfloat16, and some of the sums."""
    assert result.shape == wanted.shape
    assert result.dtype == BFLOAT16
    np.testing.assert_allclose(
        result.astype(np.float64), wanted, rtol=2.0**-8, atol=1e-4 * abs(wanted).max() + 1e-30
    )


@pytest.mark.parametrize("limit", [1 << 24, 1])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_numpy(case: Any, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All images' columns at once, and one image's at a time."""
    monkeypatch.setattr(by_products, "BYTES", limit)
    images, channels, outputs, size, kernel_, stride, padding, dilation = case
    rng = np.random.default_rng(generator("conv", case).getrandbits(32))
    output = tuple(window_counts(size, kernel_, stride, padding, dilation))
    shapes = (images, channels, *size), (outputs, channels, *kernel_), (outputs,)
    data, weight, bias = (rng.standard_normal(shape).astype(BFLOAT16) for shape in shapes)
    grad = rng.standard_normal((images, outputs, *output)).astype(BFLOAT16)
    wide, wide_weight, wide_grad = (x.astype(np.float64) for x in (data, weight, grad))
    numbers = (stride, padding, dilation)
    close(
        by_products.forward(data, weight, bias, output, *numbers),
        numpy_form.conv(wide, wide_weight, bias.astype(np.float64), *numbers, 1),
    )
    close(
        by_products.backward_weight(grad, data, weight.shape, *numbers),
        numpy_form.conv_backward_weight(wide_grad, wide, weight.shape, *numbers, 1),
    )
    if {*stride, *dilation} == {1}:
        found = by_products.backward_input(grad, weight, data.shape, padding)
        wanted = numpy_form.conv_backward_input(wide_grad, wide_weight, data.shape, *numbers, 1)
        if found is not None:
            close(found, wanted)
