"""The pool kernels against torch: values, indices, gradients, dtypes, shapes, error words."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import flambeau
from flambeau._ops.images import planes
from flambeau._ops.pooling import (
    fractional as fractional_pool,
)
from flambeau._ops.pooling import (
    numpy_adaptive as adaptive_pool,
)
from flambeau._ops.pooling import (
    numpy_form as pool,
)
from flambeau._ops.pooling import (
    shapes as pool_check,
)
from flambeau._runtime import choice

LIMITS = {"numpy": choice.NEVER, "llvm": 0}
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}


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


def check(actual: np.ndarray, expected: torch.Tensor, factor: float = 1) -> None:
    expected = expected.detach()
    if factor == 1:
        torch.testing.assert_close(to_tensor(actual), expected, equal_nan=True)
        return
    eps = torch.finfo(expected.dtype).eps
    largest = float(expected.abs().max()) if expected.numel() else 0
    torch.testing.assert_close(
        to_tensor(actual), expected, rtol=eps * factor, atol=eps * factor * max(1, largest)
    )


def random_numbers(rng: np.random.Generator, spatial: int, dilated: bool) -> list[tuple]:
    pick = lambda low, high: tuple(int(n) for n in rng.integers(low, high, spatial))  # noqa: E731
    kernel, stride = pick(1, 5), pick(1, 4)
    dilation = pick(1, 3) if dilated else (1,) * spatial
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    spans = [gap * (size - 1) + 1 for size, gap in zip(kernel, dilation, strict=True)]
    spatial_shape = tuple(span + int(rng.integers(0, 7)) for span in spans)
    lead = (2, 3) if rng.integers(0, 2) else (3,)
    return [lead + spatial_shape, kernel, stride, padding, dilation]


def sample(shape: tuple, dtype: torch.dtype, kind: int) -> torch.Tensor:
    """Plain numbers, numbers with ties, or with infinities and NaN."""
    values = torch.randn(shape)
    if kind == 1:
        values = values.mul(1.5).round()
    if kind == 2:
        values[torch.rand(shape) < 0.4] = -torch.inf
        values[torch.rand(shape) < 0.2] = torch.nan
    return values.to(dtype).requires_grad_()


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_max_pool(spatial: int, dtype: torch.dtype, seed: int) -> None:
    rng = np.random.default_rng([spatial, seed])
    torch.manual_seed(seed)
    shape, kernel, stride, padding, dilation = random_numbers(rng, spatial, dilated=True)
    ceil_mode = bool(rng.integers(0, 2))
    input = sample(shape, dtype, seed % 3)
    numbers = kernel, stride, padding, dilation
    expected, indices = MAX[spatial](input, *numbers, ceil_mode, return_indices=True)
    if spatial == 1:
        args = (n[0] for n in numbers)
        assert expected.shape[-1] == pool_check.max_pool1d_output_size(shape, *args, ceil_mode)
    else:
        found = pool_check.max_pool_output_shape(shape, *numbers, ceil_mode)
        assert found == tuple(expected.shape)
    output = expected.shape[-spatial:]
    values, places = pool.max_pool_with_indices(to_array(input), *numbers, output)
    check(values, expected)
    check(places, indices)
    check(pool.max_pool(to_array(input), *numbers, output), expected)
    grad = torch.randn(expected.shape, dtype=dtype)
    expected.backward(grad)
    result = pool.max_pool_backward(
        to_array(grad), places, shape[-spatial:], kernel, stride, dilation
    )
    check(result, input.grad, 3)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64], ids=str)
def test_max_pool_integers(dtype: torch.dtype) -> None:
    input = torch.randint(0, 9, (2, 3, 7, 7), dtype=dtype)
    expected, indices = F.max_pool2d(input, 3, 2, 1, return_indices=True)
    numbers = (3, 3), (2, 2), (1, 1), (1, 1), (4, 4)
    values, places = pool.max_pool_with_indices(input.numpy(), *numbers)
    check(values, expected)
    check(places, indices)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_avg_pool(spatial: int, dtype: torch.dtype, seed: int) -> None:
    if spatial == 3 and dtype.itemsize == 2:
        pytest.skip("torch has no half avg_pool3d on the CPU")
    rng = np.random.default_rng([spatial, seed, 1])
    torch.manual_seed(seed)
    shape, kernel, stride, padding, _ = random_numbers(rng, spatial, dilated=False)
    ceil_mode, include = (bool(n) for n in rng.integers(0, 2, 2))
    override = [None, 3][seed % 2] if spatial > 1 else None
    input = torch.randn(shape, dtype=dtype).requires_grad_()
    extra = (override,) if spatial > 1 else ()
    expected = AVG[spatial](input, kernel, stride, padding, ceil_mode, include, *extra)
    if spatial > 1:
        found = pool_check.avg_pool_output_shape(shape, kernel, stride, padding, ceil_mode)
        assert found == tuple(expected.shape)
    output = expected.shape[-spatial:]
    numbers = kernel, stride, padding
    check(pool.avg_pool(to_array(input), *numbers, output, include, override), expected, 4)
    grad = torch.randn(expected.shape, dtype=dtype)
    expected.backward(grad)
    result = pool.avg_pool_backward(to_array(grad), shape[-spatial:], *numbers, include, override)
    check(result, input.grad, 4 if dtype.itemsize > 2 else 8)


def test_avg_pool_integers() -> None:
    input = torch.randint(-9, 9, (2, 3, 7, 7))
    expected = F.avg_pool2d(input, 3, 2, 1)
    check(pool.avg_pool(input.numpy(), (3, 3), (2, 2), (1, 1), (4, 4)), expected)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_adaptive(spatial: int, dtype: torch.dtype, seed: int) -> None:
    rng = np.random.default_rng([spatial, seed, 2])
    torch.manual_seed(seed)
    sizes = tuple(int(n) for n in rng.integers(1, 13, spatial))
    output = tuple(int(n) for n in rng.integers(1, 9, spatial))
    input = torch.randn(2, 3, *sizes).to(dtype).requires_grad_()
    expected = ADAPTIVE_AVG[spatial](input, output)
    name = f"adaptive_avg_pool{spatial}d"
    found = adaptive_pool.adaptive_output_shape(name, input.shape, output)
    assert found == tuple(expected.shape)
    check(adaptive_pool.adaptive_avg_pool(to_array(input), output), expected, 4)
    grad = torch.randn(expected.shape, dtype=dtype)
    expected.backward(grad)
    result = adaptive_pool.adaptive_avg_pool_backward(to_array(grad), sizes)
    check(result, input.grad, 4 if dtype.itemsize > 2 else 8)
    input = sample(tuple(input.shape), dtype, seed % 3)
    expected, indices = ADAPTIVE_MAX[spatial](input, output, return_indices=True)
    values, places = adaptive_pool.adaptive_max_pool(to_array(input), output)
    check(values, expected)
    check(places, indices)
    expected.backward(grad)
    result = planes.scatter_planes(to_array(grad), places, sizes)
    check(result, input.grad, 4 if dtype.itemsize > 2 else 8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spatial", [2, 3])
def test_fractional(spatial: int, dtype: torch.dtype, seed: int) -> None:
    rng = np.random.default_rng([spatial, seed, 3])
    torch.manual_seed(seed)
    kernel = tuple(int(n) for n in rng.integers(1, 4, spatial))
    output = tuple(int(n) for n in rng.integers(1, 5, spatial))
    sizes = tuple(k + o + int(rng.integers(0, 5)) for k, o in zip(kernel, output, strict=True))
    input = sample((2, 3, *sizes), dtype, seed % 3)
    samples = torch.rand(2, 3, spatial, dtype=dtype)
    function = {2: F.fractional_max_pool2d, 3: F.fractional_max_pool3d}[spatial]
    expected, indices = function(
        input, kernel, output, return_indices=True, _random_samples=samples
    )
    found = fractional_pool.fractional_output_shape(input.shape, kernel, output)
    assert found == tuple(expected.shape)
    values, places = fractional_pool.fractional_max_pool(
        to_array(input), kernel, output, to_array(samples)
    )
    check(values, expected)
    check(places, indices)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_max_unpool(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    values, indices = F.max_pool2d(torch.randn(2, 3, 6, 6, dtype=dtype), 2, return_indices=True)
    values.requires_grad_()
    expected = F.max_unpool2d(values, indices, 2)
    check(planes.max_unpool(to_array(values), indices.numpy(), (6, 6)), expected)
    grad = torch.randn(expected.shape, dtype=dtype)
    expected.backward(grad)
    check(planes.gather_planes(to_array(grad), indices.numpy(), 2), values.grad)


def test_max_unpool_words() -> None:
    values, indices = torch.ones(1, 1, 2, 2), torch.full((1, 1, 2, 2), 99)
    with pytest.raises(RuntimeError) as expected:
        torch.ops.aten.max_unpool2d(values, indices, [4, 4])
    with pytest.raises(RuntimeError) as actual:
        planes.max_unpool(values.numpy(), indices.numpy(), (4, 4))
    assert str(actual.value) == str(expected.value).split("\n")[0]


# input, kernel, stride, padding, dilation
WRONG_MAX = [
    ((1, 1, 4, 4), 0, 0, 0, 1),
    ((1, 1, 4, 4), 2, 0, 0, 1),
    ((1, 1, 4, 4), 2, 2, 0, 0),
    ((1, 1, 4, 4), 2, -1, 0, 1),
    ((1, 1, 4, 4), -1, 1, 0, 1),
    ((4, 4), 2, 2, 0, 1),
    ((1, 1, 4, 4), 2, 2, -1, 1),
    ((1, 1, 4, 4), 2, 2, 2, 1),
    ((1, 1, 9, 9), 3, 1, 3, 2),
    ((2, 0, 4, 4), 2, 2, 0, 1),
    ((1, 0, 10), 1, 1, 0, 1),
    ((1, 1, 1, 4), 3, 3, 0, 1),
    ((1, 1, 4), 2, 2, 0, 1),
    ((4, 4, 4), 2, 2, 0, 1, 3),
    ((0, 1, 2, 10), 1, 1, 0, 1, 3),
    ((2, 1, 0, 1, 2), 1, 1, 0, 1, 3),
    ((2, 1, 1, 0, 2), 1, 1, 0, 1, 3),
    ((1, 1, 1, 4, 4), 2, 2, 0, 1, 3),
    ((1, 1, 4, 4, 4), 2, 2, 0, 0, 3),
    ((1, 1, 4, 4, 4), 2, -2, 0, 1, 3),
    ((1, 1, 4, 4, 4), -2, 2, 0, 1, 3),
]


@pytest.mark.parametrize("case", WRONG_MAX, ids=str)
def test_max_pool_words(case: tuple) -> None:
    shape, *numbers = case[:5]
    spatial = case[5] if len(case) > 5 else 2
    numbers = [(number,) * spatial for number in numbers]
    with pytest.raises(RuntimeError) as expected:
        MAX[spatial](torch.ones(shape), *numbers)
    with pytest.raises(RuntimeError) as actual:
        pool_check.max_pool_output_shape(shape, *numbers, False)
    assert str(actual.value) == str(expected.value).split("\n")[0]


WRONG_MAX1D = [
    ((), 1, 1, 0, 1),
    ((1, 10, 0), 1, 1, 0, 1),
    ((3, 3, 3), 1, 0, 0, 1),
    ((3, 3, 3), 1, 1, 0, 0),
    ((2, 2, 2), 5, 1, 0, 1),
    ((1, 1, 9), 0, 1, 0, 1),
    ((1, 1, 4), 2, 2, -1, 1),
    ((1, 1, 4), 2, 2, 2, 1),
]


@pytest.mark.parametrize("case", WRONG_MAX1D, ids=str)
def test_max_pool1d_words(case: tuple) -> None:
    shape, *numbers = case
    with pytest.raises(RuntimeError) as expected:
        F.max_pool1d(torch.ones(shape), *numbers)
    with pytest.raises(RuntimeError) as actual:
        pool_check.max_pool1d_output_size(shape, *numbers, False)
    assert str(actual.value) == str(expected.value).split("\n")[0]


WRONG_AVG = [
    ((1, 1, 4, 4), 0, 0, 0, 2),
    ((1, 1, 4, 4), 2, 0, 0, 2),
    ((1, 1, 2, 2), 5, 1, 0, 2),
    ((1, 0, 2, 2), 2, 2, 0, 2),
    ((1, 1, 0, 2), 2, 2, 0, 2),
    ((0, 1, 49), 2, 50, -1, 2),
    ((0, 1, 49), 2, 50, 4, 2),
    ((4, 4, 4), 2, 2, 0, 3),
    ((1, 1, 2, 2, 2), 5, 1, 0, 3),
    ((1, 1, 0, 2, 2), 2, 2, 0, 3),
    ((0, 1, 49, 50), 2, 50, -1, 3),
    ((0, 1, 49, 50), 2, 50, 4, 3),
]


@pytest.mark.parametrize("case", WRONG_AVG, ids=str)
def test_avg_pool_words(case: tuple) -> None:
    shape, *numbers, spatial = case
    numbers = [(number,) * spatial for number in numbers]
    with pytest.raises(RuntimeError) as expected:
        AVG[spatial](torch.ones(shape), *numbers)
    with pytest.raises(RuntimeError) as actual:
        pool_check.avg_pool_output_shape(shape, *numbers, False)
    assert str(actual.value) == str(expected.value).split("\n")[0]


@pytest.mark.parametrize("name", ["kernel_size", "stride", "padding", "dilation"])
@pytest.mark.parametrize("function", ["max_pool2d", "max_pool3d", "avg_pool2d", "avg_pool3d"])
def test_number_words(function: str, name: str) -> None:
    if name == "dilation" and function.startswith("avg"):
        pytest.skip("average pools have no dilation")
    spatial = int(function[-2])
    wrong = (1,) * (5 - spatial)
    arguments = {"kernel_size": 2} | {name: wrong}
    with pytest.raises(RuntimeError) as expected:
        getattr(F, function)(torch.ones((1, 1) + (4,) * spatial), **arguments)
    with pytest.raises(RuntimeError) as actual:
        pool_check.pool_numbers(function, name, wrong, spatial)
    assert str(actual.value) == str(expected.value).split("\n")[0]


ADAPTIVE_WRONG = ["rank", "many", "spatial", "channels", "negative", "length"]


@pytest.mark.parametrize("what", ADAPTIVE_WRONG)
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_words(kind: str, spatial: int, what: str) -> None:
    function = f"adaptive_{kind}_pool{spatial}d"
    shape, output = (1, 1) + (4,) * spatial, (2,) * spatial
    shape = {
        "rank": (4,) * spatial,
        "many": (4,) * (spatial + 3),
        "spatial": (*shape[:-1], 0),
        "channels": (1, 0, *shape[2:]),
    }.get(what, shape)
    output = {"negative": (-1,) * spatial, "length": (2,) * (spatial + 1)}.get(what, output)
    call = getattr(torch._C._nn, function, None) or getattr(torch, function)
    try:
        call(torch.ones(shape), output)
    except RuntimeError as error:
        words = str(error).split("\n")[0]
    else:
        words = None
    if spatial == 1 and what == "length":
        pytest.skip("the argument parser refuses it")
    if words is None:
        adaptive_pool.adaptive_output_shape(function, shape, output)
        return
    with pytest.raises(RuntimeError) as actual:
        adaptive_pool.adaptive_output_shape(function, shape, output)
    assert str(actual.value) == words


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("engine", ["numpy", "llvm"])
def test_windows_without_an_element(
    spatial: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows whose taps all lie around the input have the place where the first would lie."""
    if engine == "llvm":
        pytest.importorskip("llvmlite")
    for work in ("pool", "pool places"):
        monkeypatch.setitem(choice.LIMITS, work, LIMITS[engine])
    outside = 0
    cases = itertools.product((1, 2, 3, 4), (2, 3), (1, 2), (1,), (2, 3, 4), (False, True))
    for size, *numbers in cases:
        x = np.arange(2.0 * size**spatial, dtype=np.float32).reshape(1, 2, *(size,) * spatial)
        name = f"max_pool{spatial}d_with_indices"
        try:
            expected = getattr(F, name)(torch.from_numpy(x), *numbers)
        except RuntimeError:  # no window fits
            continue
        values, places = getattr(flambeau.nn.functional, name)(flambeau.tensor(x), *numbers)
        np.testing.assert_array_equal(values.numpy(), expected[0].numpy())
        np.testing.assert_array_equal(places.numpy(), expected[1].numpy())
        outside += int((expected[1] >= size**spatial).any())
    assert outside > 10


@pytest.mark.parametrize("engine", ["numpy", "llvm"])
def test_gradients_of_windows_without_an_element(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that PyTorch writes within the plane, where it has both derivatives."""
    for work in ("pool", "pool places"):
        monkeypatch.setitem(choice.LIMITS, work, LIMITS[engine])
    found = []
    for library in (flambeau, torch):
        x = library.arange(1.0, 17.0).reshape(2, 4, 2).requires_grad_()
        y = library.nn.functional.max_pool2d(x, 2, 2, (0, 1), (1, 4), True)
        grad = library.full_like(y, 3).requires_grad_()
        (first,) = library.autograd.grad(y, x, grad, create_graph=True)
        (second,) = library.autograd.grad(first, grad, x)
        found.append((y.tolist(), first.tolist(), second.tolist()))
    assert found[0] == found[1]
