"""Conversions of large float8 tensors, for which there is no kernel."""

import pytest

import flambeau as torch

COUNT = 200_000


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_there_and_back(dtype):
    values = torch.arange(COUNT) % 8
    narrow = values.to(dtype)
    for wide in (torch.float32, torch.float64, torch.bfloat16):
        assert torch.equal(narrow.to(wide), values.to(wide))
