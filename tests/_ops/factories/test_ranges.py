"""Ranges of integers given by numbers that are not whole, and positions in other shapes."""

from __future__ import annotations

from fractions import Fraction

import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32], ids=str)
def test_short_integers_count_as_floats_and_step_as_integers(dtype: torch.dtype) -> None:
    assert torch.arange(3.1, dtype=dtype).tolist() == [0, 1, 2, 3]
    assert torch.arange(0.5, 4.9, 1.5, dtype=dtype).tolist() == [0, 1, 2]
    assert torch.arange(1, 3.1, 0.5, dtype=dtype).tolist() == [1] * 5
    assert torch.arange(9, 0, -4, dtype=dtype).tolist() == [9, 5, 1]


def test_long_integers_take_whole_bounds() -> None:
    assert torch.arange(3.1, dtype=torch.int64).tolist() == [0, 1, 2]
    assert torch.arange(-2.5, 2.5, dtype=torch.int64).tolist() == [-2, -1, 0, 1]
    with pytest.raises(ValueError, match="step must be nonzero"):
        torch.arange(1, 3, 0.5, dtype=torch.int64)


def test_powers_as_integers_have_whole_bounds() -> None:
    assert torch.logspace(4.3, 10, 7, 2, dtype=torch.int32).tolist() == [
        1 << n for n in range(4, 11)
    ]
    assert torch.logspace(0, 1.2, 2, dtype=torch.int64).tolist() == [1, 10]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64], ids=str)
def test_unravelled_positions_are_long_integers(dtype: torch.dtype) -> None:
    rows, columns = torch.unravel_index(torch.tensor([200, 41], dtype=dtype), (30, 20))
    assert rows.dtype is columns.dtype is torch.int64
    assert (rows.tolist(), columns.tolist()) == ([10, 2], [0, 1])
    (first, *_) = torch.unravel_index(torch.tensor([7], dtype=dtype), (300, 400, 5))
    assert first.tolist() == [0]


@pytest.mark.parametrize("make", [torch.linspace, torch.logspace], ids=["linspace", "logspace"])
def test_ends_have_to_fit_unless_there_is_only_one_number(make) -> None:
    for dtype, end in ((torch.float16, 65519), (torch.float32, 1e39), (torch.int16, 1 << 20)):
        assert make(0, end, 0, dtype=dtype).tolist() == []
        assert make(0, end, 1, dtype=dtype).tolist() == [0 if make is torch.linspace else 1]
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without over"):
            make(0, end, 3, dtype=dtype)
    with pytest.raises(RuntimeError, match="type int64_t without overflow"):
        make(1e30, 0, 1, dtype=torch.int64)


def test_both_ends_are_exact_and_zero_keeps_its_sign() -> None:
    for steps in (2, 3, 100, 5001):
        found = torch.linspace(-0.1, -0.0, steps, dtype=torch.float64)
        assert found[0] == -0.1 and found[-1] == 0 and torch.signbit(found[-1])


def test_products_and_sums_are_rounded_once() -> None:
    """By exact arithmetic, as a fused multiply-add rounds; truncated for integers."""
    found = torch.linspace(0.1, 0.7, 50, dtype=torch.float64).tolist()
    step = (0.7 - 0.1) / 49
    wanted = [float(Fraction(step) * k + Fraction(0.1)) for k in range(25)]
    assert found[:25] == wanted and found[-1] == 0.7
    short = torch.linspace(1, -5, 10, dtype=torch.int16)
    assert short.tolist() == [1, 0, 0, 0, -1, -2, -3, -3, -4, -5]


def test_half_types_are_rounded_after_every_step() -> None:
    found = torch.linspace(0.0, 1.0, 7, dtype=torch.bfloat16).tolist()
    step = torch.tensor(1 / 6, dtype=torch.float32).bfloat16()
    assert found[2] == (step * torch.tensor(2.0).bfloat16()).item()
    assert found[5] == (torch.tensor(1.0).bfloat16() - step).item()


def test_powers_are_rounded_once_from_double_exponents() -> None:
    found = torch.logspace(0.3, 2.7, 40, 3.0)
    first, last = torch.tensor(0.3), torch.tensor(2.7)
    step = (last - first).item() / 39
    exponents = [first.item() + step * k for k in range(20)]
    assert found[:20].tolist() == torch.tensor([3.0**x for x in exponents]).tolist()


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_a_type_are_infinite_without_a_warning() -> None:
    for make in (torch.linspace, torch.logspace):
        assert not make(-60000, 60000, 5, dtype=torch.float16).isfinite().all()
