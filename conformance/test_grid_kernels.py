"""The grid_sample, affine_grid, unfold and fold kernels against torch."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from flambeau._ops.images import fold, grid_launch
from flambeau._ops.images import numpy_grid as grid
from tests.random_seeds import generator

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


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


def check(actual: np.ndarray, expected: torch.Tensor, factor: float = 60) -> None:
    expected = expected.detach()
    eps = torch.finfo(expected.dtype).eps
    largest = float(expected.abs().max()) if expected.numel() else 0
    rtol = eps * factor
    torch.testing.assert_close(to_tensor(actual), expected, rtol=rtol, atol=rtol * max(1, largest))


CASES = [
    (mode, padding, align, spatial)
    for mode in grid.MODES
    for padding in grid.PADDING_MODES
    for align in (False, True)
    for spatial in (2, 3)
    if not (mode == "bicubic" and spatial == 3)
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_grid_sample(case: tuple, dtype: torch.dtype) -> None:
    mode, padding, align, spatial = case
    for seed in range(3):
        rng = np.random.default_rng([CASES.index(case), seed])
        torch.manual_seed(seed)
        sizes = tuple(int(n) for n in rng.integers(1, 7, spatial))
        output = tuple(int(n) for n in rng.integers(1, 6, spatial))
        input = torch.randn(2, 3, *sizes, dtype=dtype).requires_grad_()
        # Coordinates far outside too.
        places = (torch.randn(2, *output, spatial, dtype=dtype) * 1.3).requires_grad_()
        expected = F.grid_sample(input, places, mode, padding, align)
        shape = grid.grid_sample_output_shape(input.shape, places.shape, mode)
        assert shape == tuple(expected.shape)
        result = grid.grid_sample(to_array(input), to_array(places), mode, padding, align)
        check(result, expected)
        grad = torch.randn_like(expected)
        expected.backward(grad)
        arrays = to_array(grad), to_array(input), to_array(places)
        to_input, to_grid = grid.grid_sample_backward(*arrays, mode, padding, align)
        check(to_input, input.grad)
        check(to_grid, places.grad, 200)


WRONG_GRID = [
    ((2, 1, 2, 2), (1, 1, 1, 2), "bilinear"),
    ((1, 1, 2, 2), (1, 1, 1, 3), "bilinear"),
    ((1, 1, 2), (1, 1, 2), "bilinear"),
    ((1, 1, 2, 2), (1, 1, 1, 1, 2), "bilinear"),
    ((1, 1, 2), (1, 1, 1), "bilinear"),
    ((1, 1, 2, 2, 2), (1, 1, 1, 3), "bilinear"),
    ((1, 1, 0, 2), (1, 1, 1, 2), "bilinear"),
    ((1, 1, 2, 2, 2), (1, 1, 1, 1, 3), "bicubic"),
]


@pytest.mark.parametrize("case", WRONG_GRID, ids=str)
def test_grid_words(case: tuple) -> None:
    input_shape, grid_shape, mode = case
    with pytest.raises(RuntimeError) as expected:
        F.grid_sample(torch.ones(input_shape), torch.ones(grid_shape), mode, align_corners=False)
    with pytest.raises(RuntimeError) as actual:
        grid.grid_sample_output_shape(input_shape, grid_shape, mode)
    assert str(actual.value) == str(expected.value).split("\n")[0]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 1, 5), (2, 1, 3, 4, 2)], ids=str)
def test_affine_grid(size: tuple, dtype: torch.dtype, align: bool) -> None:
    if dtype.itemsize == 2 and 1 in size[2:]:
        pytest.skip("torch has no half linspace of one step here")
    torch.manual_seed(0)
    rank = len(size) - 2
    theta = torch.randn(2, rank, rank + 1).to(dtype).requires_grad_()
    expected = torch.ops.aten.affine_grid_generator(theta, size, align)
    factor = 30 if dtype.itemsize > 2 else 4
    check(grid.affine_grid(to_array(theta), size, align), expected, factor)
    grad = torch.randn(expected.shape).to(dtype)
    expected.backward(grad)
    check(grid.affine_grid_backward(to_array(grad), size, align), theta.grad, factor)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("rank", [2, 3])
def test_grids_that_meet_pixels(rank: int, dtype: torch.dtype, align: bool) -> None:
    """The identity, from which spatial transformers start: a position lies at a pixel, so that
    rounding decides between which two it is read, and whose difference is the gradient."""
    rng = np.random.default_rng(generator(rank, dtype, align).getrandbits(64))
    for _ in range(6):
        spatial = [int(n) for n in rng.integers(2, 90 if rank == 2 else 20, rank)]  # noqa: PLR2004
        size = [1, 2, *spatial]
        theta = torch.eye(rank + 1, dtype=dtype)[None, :rank]
        places = torch.ops.aten.affine_grid_generator(theta, size, align)
        ours = grid.affine_grid(to_array(theta), size, align)
        np.testing.assert_array_equal(ours, to_array(places))
        input = torch.from_numpy(rng.standard_normal(size)).to(dtype)
        places.requires_grad_()
        expected = F.grid_sample(input, places, align_corners=align)
        grad = torch.from_numpy(rng.standard_normal(size)).to(dtype)
        expected.backward(grad)
        arrays = to_array(grad), to_array(input), ours
        for engine in (grid, grid_launch):
            to_grid = engine.grid_sample_backward(*arrays, "bilinear", "zeros", align)[1]
            check(to_grid, places.grad, 300)


WRONG_AFFINE = [
    ((1, 2, 2), (1, 1, 2, 2)),
    ((1, 3, 3), (1, 1, 2, 2)),
    ((1, 3, 3), (1, 1, 2)),
    ((2, 2, 3), (1, 1, 2, 2)),
    ((1, 3, 3), (1, 1, 2, 2, 2)),
]


@pytest.mark.parametrize("case", WRONG_AFFINE, ids=str)
def test_affine_words(case: tuple) -> None:
    theta_shape, size = case
    with pytest.raises(RuntimeError) as expected:
        torch.ops.aten.affine_grid_generator(torch.ones(theta_shape), size, False)
    with pytest.raises(RuntimeError) as actual:
        grid.affine_grid(np.ones(theta_shape, np.float32), size)
    assert str(actual.value) == str(expected.value).split("\n")[0]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64], ids=str)
def test_fold(dtype: torch.dtype, seed: int) -> None:
    rng = np.random.default_rng([seed, 9])
    torch.manual_seed(seed)
    kernel, dilation, padding, stride = (
        tuple(int(n) for n in rng.integers(low, high, 2))
        for low, high in ((1, 4), (1, 3), (0, 3), (1, 4))
    )
    spans = [gap * (size - 1) + 1 for size, gap in zip(kernel, dilation, strict=True)]
    spatial = tuple(span + int(rng.integers(0, 6)) for span in spans)
    input = torch.randn(2, 3, *spatial, dtype=dtype).requires_grad_()
    numbers = kernel, dilation, padding, stride
    columns = F.unfold(input, *numbers)
    shape = fold.unfold_output_shape(input.shape, *numbers)
    assert shape == tuple(columns.shape)
    check(fold.unfold(to_array(input), *numbers), columns, 1)
    factor = 8 if dtype.itemsize > 2 else 3
    columns = torch.randn(columns.shape, dtype=dtype)
    expected = F.fold(columns, spatial, *numbers)
    shape = fold.fold_output_shape(columns.shape, spatial, *numbers)
    assert shape == tuple(expected.shape)
    check(fold.fold(to_array(columns), spatial, *numbers), expected, factor)


WRONG_UNFOLD = [
    ((1, 1, 1, 4, 4), 2, 1, 0, 1),
    ((1, 0, 4, 4), 2, 1, 0, 1),
    ((1, 1, 2, 2), 3, 1, 0, 1),
    ((1, 1, 2, 2), 5, 2, 1, 2),
    ((1, 1, 4, 4), 0, 1, 0, 1),
    ((1, 1, 4, 4), 2, 0, 0, 1),
    ((1, 1, 4, 4), 2, 1, -1, 1),
    ((1, 1, 4, 4), 2, 1, 0, 0),
]


@pytest.mark.parametrize("case", WRONG_UNFOLD, ids=str)
def test_unfold_words(case: tuple) -> None:
    shape, *numbers = case
    with pytest.raises(RuntimeError) as expected:
        F.unfold(torch.ones(shape), *numbers)
    with pytest.raises(RuntimeError) as actual:
        fold.unfold_output_shape(shape, *((number,) * 2 for number in numbers))
    assert str(actual.value) == str(expected.value).split("\n")[0]


WRONG_FOLD = [
    ((4,), (4, 4), 2, 1, 0, 1),
    ((1, 1, 4, 4), (4, 4), 2, 1, 0, 1),
    ((1, 5, 9), (4, 4), 2, 1, 0, 1),
    ((1, 4, 8), (4, 4), 2, 1, 0, 1),
    ((1, 4, 8), (1, 1), 2, 1, 0, 1),
    ((1, 4, 8), (1, 1), 2, 1, 1, 1),
    ((1, 0, 9), (4, 4), 2, 1, 0, 1),
    ((1, 4, 9), (4, 4), 0, 1, 0, 1),
    ((1, 4, 9), (4, 4), 2, 0, 0, 1),
    ((1, 4, 9), (4, 4), 2, 1, -1, 1),
    ((1, 4, 9), (4, 4), 2, 1, 0, 0),
    ((1, 4, 9), (0, 4), 2, 1, 0, 1),
]


@pytest.mark.parametrize("case", WRONG_FOLD, ids=str)
def test_fold_words(case: tuple) -> None:
    shape, output, *numbers = case
    with pytest.raises(RuntimeError) as expected:
        F.fold(torch.ones(shape), output, *numbers)
    with pytest.raises(RuntimeError) as actual:
        fold.fold_output_shape(shape, output, *((number,) * 2 for number in numbers))
    assert str(actual.value) == str(expected.value).split("\n")[0]
