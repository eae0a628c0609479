"""What is remembered of pointwise calls by types, shapes and strides."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau._ops.table import pointwise
from flambeau._ops.table.op import REGISTRY


@pytest.fixture
def planned(monkeypatch):
    """How many plans were made."""
    made = []
    monkeypatch.setattr(pointwise.CallPlan, "__init__", _counting(made))
    return made


def _counting(made):
    before = pointwise.CallPlan.__init__

    def init(self, op, operands):
        made.append(op.full_name)
        before(self, op, operands)

    return init


def columns(rows=3, dtype=torch.float32):
    x = torch.arange(4 * rows, dtype=dtype).view(rows, 4)
    return x[:, :2], x[:, 2:]


def test_equal_layouts_are_planned_once(planned):
    left, right = columns(17)
    for _ in range(3):
        assert torch.equal(left * right, torch.tensor(left.numpy() * right.numpy()))
    assert planned.count("mul.Tensor") <= 1


def test_numbers_types_and_strides_are_told_apart():
    left, _ = columns()
    wide = left.double()
    half = columns(dtype=torch.float16)[0]
    whole = columns(dtype=torch.int64)[0]
    for _ in range(2):
        assert (left * 2).dtype == torch.float32
        assert (whole * 2).dtype == torch.int64
        assert (whole * 2.0).dtype == torch.float32
        assert (whole * True).dtype == torch.int64
        assert (left * 2j).dtype == torch.complex64
        assert (left * wide).dtype == torch.float64
        assert (half * whole).dtype == torch.float16
        assert (left * torch.tensor(2.0, dtype=torch.float64)).dtype == torch.float32
        assert (left * torch.ones(3, 2, dtype=torch.float64)).dtype == torch.float64
        assert (left.t() * left.t()).stride() == (1, 2)
        assert (left * left).stride() == (2, 1)


def test_the_default_type_may_change():
    whole = torch.arange(12).view(3, 4)[:, :2]
    assert torch.true_divide(whole, whole + 1).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.true_divide(whole, whole + 1).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.true_divide(whole, whole + 1).dtype == torch.float32


def test_results_are_new_memory_of_the_wanted_layout():
    turned = torch.arange(6.0).view(2, 3).t()
    flat = torch.ones(3, 2)
    first = turned + flat
    for _ in range(3):
        result = turned + flat
        assert result.stride() == first.stride() == (1, 3)
        assert result.data_ptr() != first.data_ptr()
        assert np.array_equal(result.numpy(), turned.numpy() + flat.numpy())


def test_shapes_that_do_not_fit_are_refused_each_time():
    left, right = torch.ones(3, 4)[:, :2], torch.ones(4, 3)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            left + right


def test_plans_are_bounded(monkeypatch):
    monkeypatch.setattr(pointwise, "MOST_PLANS", 8)
    for rows in range(2, 40):
        left, right = columns(rows)
        assert (left - right).shape == (rows, 2)
    tables = [t for t in pointwise.Kernels.tables if t.op is REGISTRY["sub.Tensor"]]
    assert tables
    assert all(len(table.plans) <= 8 for table in tables)
