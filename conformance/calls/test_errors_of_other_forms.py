"""Composites of more forms than their row shows say what is wrong as PyTorch does."""

from __future__ import annotations

from typing import Any

import pytest
import torch as reference

import flambeau

CALLS = {
    "gradient of one step": lambda t: t.gradient(t.ones(2, 2), spacing=(2,)),
    "gradient of three steps": lambda t: t.gradient(t.ones(2, 2), spacing=(2, 2.0, 2)),
    "gradient of a step and two dims": lambda t: t.gradient(t.ones(2, 2), spacing=[2], dim=(0, 1)),
    "gradient of an order": lambda t: t.gradient(t.ones(2, 2), spacing=None, edge_order=3),
    "var of integers": lambda t: t.var(t.ones(2, dtype=t.int64), True),
    "std of integers": lambda t: t.ones(2, dtype=t.int64).std(False),
    "var_mean of integers": lambda t: t.var_mean(t.ones(2, dtype=t.int64), True),
    "std_mean of integers": lambda t: t.std_mean(t.ones(2, dtype=t.int64), True),
    "normal below 0": lambda t: t.normal(t.ones(2), -1.0),
    "normal of negative deviations": lambda t: t.normal(1.0, -t.ones(2)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_errors_are_those_of_the_form_that_was_called(call: Any) -> None:
    said = []
    for library in (reference, flambeau):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call(library)
        said.append((caught.type, str(caught.value).splitlines()[0]))
    assert said[0] == said[1]


def test_powers_of_numbers_lie_in_rows() -> None:
    for library in (reference, flambeau):
        exponents = library.ones(3, 4).T
        assert library.pow(2.0, exponents).stride() == (3, 1)
        assert (2**exponents).stride() == (3, 1)
        assert library.pow(library.tensor(2.0), exponents).stride() == (1, 4)


def test_counts_of_differences_from_nan() -> None:
    for library in (reference, flambeau):
        rows = library.tensor([[float("nan"), 1.0], [1.0, 1.0], [1.0, 2.0]])
        assert str(library.pdist(rows, 0.0).tolist()) == "[nan, nan, 1.0]"
        assert str(library.cdist(rows[:1], rows[1:], 0.0).tolist()) == "[[nan, nan]]"
