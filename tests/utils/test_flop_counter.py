"""Counts of floating-point operations, by hand."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.utils.flop_counter import FlopCounterMode, register_flop_formula
from flambeau.utils.flop_counter.table import get_suffix_str, text_of


def test_products() -> None:
    """2 M N K for a product, the same for each of its gradients."""
    layer = torch.nn.Linear(3, 5)
    with FlopCounterMode(display=False) as counter:
        layer(torch.ones(2, 3, requires_grad=True)).sum().backward()
    assert counter.get_total_flops() == 3 * (2 * 2 * 3 * 5)
    assert counter.get_flop_counts().keys() == {"Global", "Linear"}


def test_table() -> None:
    """A line for each module and operator."""
    with FlopCounterMode(display=False) as counter:
        torch.ones(10, 10) @ torch.ones(10, 10)
    assert counter.get_table().splitlines() == [
        "Module       FLOP    % Total",
        "---------  ------  ---------",
        "Global       2000    100.00%",
        "- aten.mm    2000    100.00%",
    ]
    assert [get_suffix_str(n) for n in (0, 9999, 10**4, 10**9)] == ["", "", "K", "M"]
    assert text_of([("a", "1", "2")]).splitlines()[-1] == "a              1          2"


def test_second_formula() -> None:
    """An operator has one formula."""
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_flop_formula(torch.ops.aten.mm)(len)
