"""The printed text of random tensors, against real torch, without a single difference."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from flambeau._tensor import printing
from tests.random_seeds import generator

SAMPLES_PER_DTYPE = 300
NUMPY_DTYPES = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.uint16: np.uint16,
    torch.uint32: np.uint32,
    torch.uint64: np.uint64,
    torch.float16: np.float16,
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    torch.float8_e5m2: ml_dtypes.float8_e5m2,
    torch.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz,
    torch.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz,
    torch.float8_e8m0fnu: ml_dtypes.float8_e8m0fnu,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
    torch.complex32: np.complex64,
}
COMPLEX_OF = {torch.float32: torch.complex64, torch.float64: torch.complex128}
BORDERS = [1e-4, 1.0, 10.0, 999.99995, 1000.0, 1001.0, 99999999.5, 1e8, 100000001.0, 0.99995, 0.5]
ODD_VALUES = [0.0, -0.0, np.nan, np.inf, -np.inf]
NO_GRAD = {torch.float8_e8m0fnu}


class Labelled(torch.Tensor):
    """A subclass, whose name torch prints in place of `tensor`."""


@pytest.fixture(autouse=True)
def default_state() -> Iterator[None]:
    """Leave torch's and our options as they were."""
    warnings.filterwarnings("ignore", "ComplexHalf support is experimental")
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    printing.set_printoptions(profile="default")


def random_shape(rng: random.Random) -> tuple[int, ...]:
    """Zero to five dimensions; sometimes empty, sometimes long enough to be cut."""
    if rng.random() < 0.06:
        return rng.choice([(0,), (0, 3), (2, 0), (0, 0, 4), (3, 1, 0)])
    if rng.random() < 0.12:
        return rng.choice([(1001,), (1500, 2), (2, 700), (9, 8, 17), (1, 1200), (7, 1, 7, 30)])
    largest = {0: 1, 1: 60, 2: 12, 3: 6, 4: 4, 5: 3}
    ndim = rng.choice([0, 1, 1, 2, 2, 3, 4, 5])
    return tuple(rng.randint(1, largest[ndim]) for _ in range(ndim))


def random_reals(rng: random.Random, size: int) -> np.ndarray:
    """float64 values of one of many kinds of magnitudes, with zeros, nan and inf at times."""
    draw = np.random.default_rng(rng.randrange(2**32))
    scale = 10.0 ** rng.randint(-12, 12)
    spread = 10.0 ** draw.uniform(-rng.choice([0.5, 1.5, 3, 20]), rng.choice([0.5, 1.5, 8]), size)
    kinds = [
        lambda: draw.normal(size=size),
        lambda: draw.normal(size=size) * scale,
        lambda: draw.normal(size=size) * spread,
        lambda: draw.integers(-5, 6, size).astype(np.float64),
        lambda: np.round(draw.normal(size=size) * spread),
        lambda: draw.integers(1, rng.choice([10, 1002, 10**8, 10**12]), size).astype(np.float64),
        lambda: draw.choice(BORDERS, size) * draw.choice([1, 1, 1, -1, 1 + 1e-7, 1 - 1e-7], size),
        lambda: draw.choice([rng.choice(BORDERS), rng.choice(BORDERS)], size),
    ]
    values = rng.choice(kinds)()
    if rng.random() < 0.35:
        odd = draw.choice(rng.sample(ODD_VALUES, rng.randint(1, 5)), size)
        values = np.where(draw.random(size) < rng.choice([0.05, 0.5, 1.0]), odd, values)
    return values


def random_array(rng: random.Random, dtype: np.dtype) -> np.ndarray:
    """An array of the dtype: chosen values, or random bits; at times not contiguous."""
    shape = random_shape(rng)
    size = int(np.prod(shape))
    with np.errstate(all="ignore"):
        if dtype == np.bool_:
            flat = np.array([rng.random() < 0.5 for _ in range(size)], dtype=dtype)
        elif dtype.kind in "iu" or rng.random() < 0.1:
            flat = np.frombuffer(rng.randbytes(size * dtype.itemsize), dtype).copy()
            if dtype.kind in "iu":
                flat >>= rng.randrange(8 * dtype.itemsize)
        elif dtype.kind == "c":
            flat = np.empty(size, dtype)
            flat.real = random_reals(rng, size)
            flat.imag = random_reals(rng, size)
        else:
            flat = random_reals(rng, size).astype(dtype)
    array = flat.reshape(shape)
    if rng.random() < 0.2:
        return array.T
    if array.ndim > 0 and rng.random() < 0.1:
        return array[..., ::2]
    return array


def random_options(rng: random.Random) -> dict[str, Any]:
    """Arguments of `set_printoptions`; half of the time none but the default profile."""
    if rng.random() < 0.5:
        return {"profile": "default"}
    choices = {
        "profile": ["default", "short", "full", "no such profile"],
        "precision": [0, 1, 2, 6, 8, 17],
        "threshold": [0, 5, 20, 100, 1000],
        "edgeitems": [0, 1, 2, 4, 10],
        "linewidth": [0, 10, 33, 60, 81, 120],
        "sci_mode": [True, False, None],
    }
    names = [name for name in choices if rng.random() < 0.5]
    return {name: rng.choice(choices[name]) for name in names}


def torch_tensor(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """The same elements and strides as a torch tensor."""
    if dtype == torch.complex32:
        return torch.from_numpy(array).to(dtype)
    if array.dtype.kind != "V" and array.dtype.type.__module__ == "numpy":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"u{array.dtype.itemsize}")).view(dtype)


def dtype_arguments(dtype: torch.dtype) -> dict[str, Any]:
    """What `format_tensor` is told about the dtype."""
    default = torch.get_default_dtype()
    is_default = dtype in (default, COMPLEX_OF[default])
    return {"dtype_name": str(dtype), "is_default_dtype": is_default}


def random_tensor(rng: random.Random, dtype: torch.dtype) -> tuple[torch.Tensor, dict[str, Any]]:
    """A torch tensor, and the arguments that describe it to `format_tensor`."""
    array = random_array(rng, np.dtype(NUMPY_DTYPES[dtype]))
    tensor = torch_tensor(array, dtype)
    if dtype == torch.complex32:
        array = tensor.to(torch.complex64).numpy()
    arguments = {"data": array, **dtype_arguments(dtype)}
    if rng.random() < 0.1:
        tensor = tensor.as_subclass(Labelled)
        arguments["prefix"] = "Labelled("
    can_have_grad = dtype.is_floating_point or dtype.is_complex
    if can_have_grad and dtype not in NO_GRAD and rng.random() < 0.3:
        tensor.requires_grad_()
        arguments["requires_grad"] = True
        if rng.random() < 0.5:
            tensor = tensor.view_as(tensor)
            arguments["grad_fn_name"] = tensor.grad_fn.name()
    return tensor, arguments


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=str)
def test_random_tensors(dtype: torch.dtype) -> None:
    rng = generator(dtype)
    for sample in range(SAMPLES_PER_DTYPE):
        torch.set_default_dtype(rng.choice([torch.float32, torch.float32, torch.float64]))
        torch.set_printoptions(profile="default")
        printing.set_printoptions(profile="default")
        options = random_options(rng)
        torch.set_printoptions(**options)
        printing.set_printoptions(**options)
        tensor, arguments = random_tensor(rng, dtype)
        expected = repr(tensor)
        assert printing.format_tensor(**arguments) == expected, (sample, options)


def test_meta_tensors() -> None:
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64):
        for shape in ((), (0,), (2, 3), (5000, 1)):
            tensor = torch.empty(shape, dtype=dtype, device="meta")
            text = printing.format_tensor(
                np.broadcast_to(np.zeros(()), shape),
                device_suffix="device='meta'",
                contents="...",
                **dtype_arguments(dtype),
            )
            assert text == repr(tensor)


def test_options_follow_torch() -> None:
    rng = generator()
    for _ in range(500):
        options = random_options(rng)
        torch.set_printoptions(**options)
        printing.set_printoptions(**options)
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
        options = random_options(rng)
        with printing.printoptions(**options), torch._tensor_str.printoptions(**options):
            assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
