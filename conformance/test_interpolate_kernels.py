"""The interpolation kernels against torch: values, gradients, uint8, error words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from flambeau._ops.images import interpolate_bytes
from flambeau._ops.images import numpy_interpolate as interpolate

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
MODES = [
    ("nearest", 1),
    ("nearest", 2),
    ("nearest", 3),
    ("nearest-exact", 1),
    ("nearest-exact", 2),
    ("nearest-exact", 3),
    ("linear", 1),
    ("bilinear", 2),
    ("trilinear", 3),
    ("bicubic", 2),
]


def to_array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def to_tensor(array: np.ndarray) -> torch.Tensor:
    array = np.ascontiguousarray(array)
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def check(actual: np.ndarray, expected: torch.Tensor, factor: float = 24) -> None:
    expected = expected.detach()
    eps = torch.finfo(expected.dtype).eps
    largest = float(expected.abs().max()) if expected.numel() else 0
    rtol = eps * (factor if expected.dtype.itemsize > 2 else 4)
    torch.testing.assert_close(to_tensor(actual), expected, rtol=rtol, atol=rtol * max(1, largest))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_modes(mode: tuple, dtype: torch.dtype, seed: int) -> None:
    name, spatial = mode
    rng = np.random.default_rng([MODES.index(mode), seed])
    torch.manual_seed(seed)
    sizes = tuple(int(n) for n in rng.integers(1, 12, spatial))
    input = torch.randn(2, 3, *sizes).to(dtype).requires_grad_()
    align = bool(rng.integers(0, 2)) if "linear" in name or "cubic" in name else None
    scales = None
    options = {"mode": name, "align_corners": align}
    if seed % 3 == 0:
        scales = tuple(float(s) for s in rng.uniform(1.0, 2.7, spatial))
        expected = F.interpolate(
            input, scale_factor=scales, recompute_scale_factor=False, **options
        )
    else:
        output = tuple(int(n) for n in rng.integers(1, 15, spatial))
        expected = F.interpolate(input, output, **options)
    output = tuple(expected.shape[2:])
    assert interpolate.upsample_output_shape(input.shape, output) == tuple(expected.shape)
    result = interpolate.interpolate(to_array(input), name, output, bool(align), scales)
    check(result, expected)
    grad = torch.randn(expected.shape).to(dtype)
    expected.backward(grad)
    result = interpolate.interpolate_backward(to_array(grad), name, sizes, bool(align), scales)
    check(result, input.grad, 60)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias(mode: str, dtype: torch.dtype, seed: int) -> None:
    rng = np.random.default_rng([seed, 4])
    torch.manual_seed(seed)
    sizes = tuple(int(n) for n in rng.integers(2, 25, 2))
    # torch 2.13 repeats one row when the output is one column wide, so widths start at two.
    output = tuple(int(n) for n in rng.integers((1, 2), 15))
    input = torch.randn(2, 3, *sizes, dtype=dtype).requires_grad_()
    align = bool(rng.integers(0, 2))
    options = {"mode": mode, "antialias": True, "align_corners": align}
    expected = F.interpolate(input, output, **options)
    result = interpolate.interpolate(to_array(input), mode, output, align, None, True)
    check(result, expected, 100)
    grad = torch.randn(expected.shape).to(dtype)
    expected.backward(grad)
    result = interpolate.interpolate_backward(to_array(grad), mode, sizes, align, None, True)
    check(result, input.grad, 100)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_bytes(mode: str, antialias: bool, seed: int) -> None:
    if antialias and mode.startswith("nearest"):
        pytest.skip("antialias is for bilinear and bicubic")
    rng = np.random.default_rng([seed, 5])
    torch.manual_seed(seed)
    sizes = tuple(int(n) for n in rng.integers(2, 25, 2))
    output = tuple(int(n) for n in rng.integers(1, 25, 2))
    input = torch.randint(0, 256, (2, int(rng.integers(1, 6)), *sizes), dtype=torch.uint8)
    if mode.startswith("nearest"):
        expected = F.interpolate(input, output, mode=mode)
        result = interpolate.interpolate(input.numpy(), mode, output)
    else:
        align = bool(rng.integers(0, 2))
        expected = F.interpolate(input, output, mode=mode, antialias=antialias, align_corners=align)
        result = interpolate_bytes.interpolate_bytes(
            input.numpy(), mode, output, align, None, antialias
        )
    assert result.dtype == np.uint8
    assert np.array_equal(result, expected.numpy())


WRONG = [
    ((1, 1, 0, 2), (4, 4)),
    ((1, 1, 2, 2), (0, 4)),
    ((1, 0, 2, 2), (3, 4)),
    ((1, 0, 2), (3, 4)),
    ((1, 2), (3,)),
    ((1, 1, 2), (0,)),
    ((1, 0, 2), (2,)),
    ((1, 2), (3, 3, 3)),
    ((1, 1, 2, 2, 2), (0, 1, 1)),
    ((1, 0, 2, 2, 2), (2, 2, 2)),
]


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_error_words(case: tuple) -> None:
    shape, output = case
    call = getattr(torch.ops.aten, f"upsample_nearest{len(output)}d")
    with pytest.raises(RuntimeError) as expected:
        call(torch.ones(shape), output)
    with pytest.raises(RuntimeError) as actual:
        interpolate.upsample_output_shape(shape, output)
    assert str(actual.value) == str(expected.value).split("\n")[0]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_infinities_stay_local(mode: str) -> None:
    """The gathering path, which an input with infinities takes."""
    torch.manual_seed(0)
    input = torch.randn(1, 2, 6, 7)
    input[0, 0, 2, 3] = torch.inf
    input.requires_grad_()
    expected = F.interpolate(input, (9, 11), mode=mode)
    result = interpolate.interpolate(to_array(input), mode, (9, 11))
    torch.testing.assert_close(to_tensor(result), expected.detach(), equal_nan=True)
    grad = torch.randn_like(expected)
    grad[0, 0, 1, 1] = torch.inf
    expected.backward(grad)
    result = interpolate.interpolate_backward(to_array(grad), mode, (6, 7))
    torch.testing.assert_close(to_tensor(result), input.grad, equal_nan=True)
