"""Reductions with `dtype` are reductions of the numbers cast to it."""

from __future__ import annotations

import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", ["sum", "prod", "nansum"])
def test_numbers_are_cast_first(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([[1e5, -1e5, 0.1], [1.0001, 70000.3, 3.0]], dtype=torch.float64)
    for dim in (None, 0, 1):
        found = getattr(x, name)(dim, dtype=dtype) if dim is not None else (
            getattr(x, name)(dtype=dtype))  # fmt: skip
        wanted = getattr(x.to(dtype), name)(*(() if dim is None else (dim,)))
        torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)


def test_means_of_halves_are_taken_in_single_precision() -> None:
    x = torch.tensor([1e5, -1e5, 3.0], dtype=torch.float64)
    assert x.mean(dtype=torch.float16).item() == 1.0
