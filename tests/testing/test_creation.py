"""`make_tensor`: ranges, layouts, errors."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.testing import make_tensor

DTYPES = ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float64", "complex64"]


@pytest.mark.parametrize("name", DTYPES)
def test_default_ranges(name):
    dtype = getattr(torch, name)
    made = make_tensor(40, 30, dtype=dtype, device="cpu")
    assert made.shape == (40, 30)
    assert made.dtype is dtype
    parts = torch.view_as_real(made) if dtype.is_complex else made
    low = 0 if name in ("bool", "uint8") else -9
    high = 2 if name == "bool" else 10
    assert low <= int(parts.to(torch.float64).min())
    assert int(parts.to(torch.float64).max()) < high
    assert len(set(made.flatten().tolist())) > 1


def test_bounds_are_those_of_the_dtype():
    made = make_tensor((200,), dtype=torch.uint8, device="cpu", low=250, high=1000)
    assert int(made.min()) >= 250
    assert int(made.max()) <= 255
    wide = make_tensor((50,), dtype=torch.float64, device="cpu", low=-1e400, high=1e400)
    assert bool(wide.isfinite().all())
    assert wide.abs().max().item() > 1e306


def test_layouts():
    made = make_tensor((2, 3), dtype=torch.float32, device="cpu", noncontiguous=True)
    assert made.shape == (2, 3)
    assert made.stride() == (6, 2)
    assert made.storage_offset() == 1
    last = torch.channels_last
    pictures = make_tensor((2, 3, 4, 5), dtype=torch.float32, device="cpu", memory_format=last)
    assert pictures.is_contiguous(memory_format=last)


def test_no_zeros():
    ints = make_tensor((300,), dtype=torch.int8, device="cpu", low=0, high=2, exclude_zero=True)
    assert set(ints.tolist()) == {1}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"low": 2, "high": 1}, "`low` must be less than `high`, but got 2 >= 1"),
        ({"low": float("nan")}, "cannot be NaN"),
        ({"low": 300, "high": 400, "dtype": torch.uint8}, "only supports [0, 256)"),
        ({"requires_grad": True, "dtype": torch.int32}, "not supported for boolean and integral"),
        ({"noncontiguous": True, "memory_format": torch.channels_last}, "mutually exclusive"),
    ],
)
def test_errors(options, text):
    with pytest.raises(ValueError) as caught:
        make_tensor((3,), **({"dtype": torch.float32, "device": "cpu"} | options))
    assert text in str(caught.value)
