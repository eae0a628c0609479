"""Errors where no memory is to be had."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._core.allocation import CannotAllocate, in_torch_words

HUGE = 1 << 62
OVERFLOW = "^Storage size calculation overflowed"


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.rand(HUGE, 8),
        lambda: torch.full((HUGE, 8), 1.0),
        lambda: torch.ones(2).new_ones(HUGE, 8),
        lambda: torch.linspace(0, 1, HUGE),
        lambda: torch.ones(2, 2).repeat(1 << 40, 1 << 40),
        lambda: torch.nn.AdaptiveMaxPool1d((1 << 62) - 1)(torch.empty(2, 2, 2)),
    ],
)
def test_sizes_beyond_64_bits_are_runtime_errors(call: object) -> None:
    with pytest.raises(RuntimeError, match=OVERFLOW):
        call()  # type: ignore[operator]


def test_a_product_beyond_64_bits_is_a_runtime_error() -> None:
    column = torch.ones(1, 1).expand(1 << 40, 1)
    with pytest.raises(RuntimeError, match=f"{OVERFLOW}|can't allocate memory"):  # its operand, too
        column @ column.T


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.empty, torch.rand])
def test_what_the_system_has_not_is_a_runtime_error_and_a_memory_error(make: object) -> None:
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator: can't allocate memory") as found:
        make(1 << 46)  # type: ignore[operator]
    assert isinstance(found.value, MemoryError)


def test_other_errors_stay() -> None:
    assert in_torch_words(ValueError("operands could not be broadcast")) is None
    found = in_torch_words(MemoryError("Unable to allocate 2.00 KiB for an array"))
    assert isinstance(found, CannotAllocate) and "about 2048 bytes" in str(found)
