"""Element types: names, widths, categories, limits, and the default."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

import flambeau as torch
from flambeau._core.dtype import from_numpy_dtype

#                name, bytes, float, complex, signed
FACTS = [
    ("bool", 1, False, False, False), ("uint8", 1, False, False, False),
    ("int8", 1, False, False, True), ("int16", 2, False, False, True),
    ("int32", 4, False, False, True), ("int64", 8, False, False, True),
    ("float16", 2, True, False, True), ("bfloat16", 2, True, False, True),
    ("float32", 4, True, False, True), ("float64", 8, True, False, True),
    ("complex64", 8, False, True, True), ("complex128", 16, False, True, True),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _default_restored() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("name", "size", "is_float", "is_complex", "is_signed"), FACTS)
def test_facts(name: str, size: int, is_float: bool, is_complex: bool, is_signed: bool) -> None:
    dtype = getattr(torch, name)
    assert repr(dtype) == f"torch.{name}"
    assert dtype.itemsize == dtype.numpy_dtype.itemsize == size
    assert (dtype.is_floating_point, dtype.is_complex, dtype.is_signed) == (
        is_float, is_complex, is_signed,
    )  # fmt: skip
    assert from_numpy_dtype(dtype.numpy_dtype) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_aliases() -> None:
    assert torch.float is torch.float32
    assert torch.double is torch.float64
    assert torch.half is torch.float16
    assert torch.long is torch.int64
    assert torch.int is torch.int32
    assert torch.cfloat is torch.complex64


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_limits_of_floats_are_those_of_numpy(name: str) -> None:
    ours, theirs = torch.finfo(getattr(torch, name)), np.finfo(name)
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    assert (ours.eps, ours.tiny) == (theirs.eps, theirs.smallest_normal)


def test_limits_of_bfloat16() -> None:
    limits = torch.finfo(torch.bfloat16)
    assert limits.eps == 2.0**-7
    assert limits.max == (2 - 2.0**-7) * 2.0**127
    assert limits.tiny == 2.0**-126


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_limits_of_integers_are_those_of_numpy(name: str) -> None:
    ours, theirs = torch.iinfo(getattr(torch, name)), np.iinfo(name)
    assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)


def test_the_default_type_is_what_numbers_become() -> None:
    torch.set_default_dtype(torch.float64)
    assert torch.get_default_dtype() is torch.float64
    assert torch.tensor(1.5).dtype is torch.float64
    assert torch.tensor(1j).dtype is torch.complex128
    assert (torch.tensor([1, 2]) / 2).dtype is torch.float64
    with pytest.raises(TypeError):
        torch.set_default_dtype(torch.int64)
