"""Row formulas as NumPy functions: values, several results, absent parameters, memory."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from flambeau._compiler.fuse import Formula, amax, average, down, first, formula, length, plan
from flambeau._compiler.row_numpy import formula_of_arrays, render
from flambeau._ops.activations import softmax as softmax_rows
from flambeau._ops.rows import formulas
from tests.random_seeds import generator

FORMULAS = [value for value in vars(formulas).values() if isinstance(value, Formula)]
FORMULAS += [row.formula for row in vars(softmax_rows).values() if getattr(row, "formula", None)]
SHAPES = {"full": (6, 5), "along": (5,), "row": (6, 1), "index": (6, 1), "segment": (5,)}


def drawn(found: Formula) -> list[Any]:
    """Arguments of the kinds of a formula: numbers between 0 and 1, which all of them take."""
    rng = np.random.default_rng(generator(found.name).getrandbits(32))

    def value(kind: str) -> Any:
        if kind == "number":
            return float(rng.uniform(0.1, 1))
        if kind == "index":
            return rng.integers(0, 5, SHAPES[kind])
        return rng.uniform(0.1, 0.9, SHAPES[kind])

    return [value(kind) for kind in found.kinds.values()]


@pytest.mark.parametrize("found", FORMULAS, ids=lambda found: found.name)
def test_rows_are_computed_one_by_one(found: Formula) -> None:
    """All rows at once give what each gives alone; no operand is written to."""
    function, values = formula_of_arrays(found), drawn(found)
    before = [np.copy(value) for value in values]
    whole = function(1, *values)
    for value, copy in zip(values, before, strict=True):
        np.testing.assert_array_equal(value, copy)
    kinds = list(found.kinds.values())
    for k in range(6):
        one = [v[k : k + 1] if kind in ("full", "row", "index") else v
               for v, kind in zip(values, kinds, strict=True)]  # fmt: skip
        for ours, theirs in zip(_several(function(1, *one)), _several(whole), strict=True):
            if np.ndim(theirs) == 2:  # sums over rows are not of one row
                np.testing.assert_allclose(ours, theirs[k : k + 1], rtol=1e-12)


def _several(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("found", FORMULAS, ids=lambda found: found.name)
def test_rows_lie_along_any_dim(found: Formula) -> None:
    function, values = formula_of_arrays(found), drawn(found)
    turned = [v.T if np.ndim(v) == 2 else v if np.ndim(v) == 0 else v[:, None] for v in values]
    for ours, theirs in zip(_several(function(0, *turned)), _several(function(1, *values)),
                            strict=True):  # fmt: skip
        np.testing.assert_allclose(ours.T if np.ndim(ours) == 2 else ours, theirs, rtol=1e-12)


def test_absent_parameters_are_left_out() -> None:
    @formula(x="full", weight="along")
    def scaled(x: Any, weight: Any) -> Any:
        return x - average(x) if weight is None else (x - average(x)) * weight

    x = np.array([[1.0, 2, 6]])
    np.testing.assert_array_equal(formula_of_arrays(scaled, "weight")(1, x, None), [[-2, -1, 3]])
    weight = np.array([2.0, 3, 4])
    np.testing.assert_array_equal(formula_of_arrays(scaled)(1, x, weight), [[-4, -3, 12]])


def test_what_a_formula_is_written_with() -> None:
    @formula(x="full")
    def several(x: Any) -> Any:
        return amax(x) * length(), first(x == amax(x)), down(x)

    x = np.array([[1.0, 5, 2], [7, 0, 7]])
    largest, place, summed = formula_of_arrays(several)(1, x)
    assert largest.tolist() == [[15], [21]]
    assert place.tolist() == [[1], [0]]
    assert summed.tolist() == [8, 5, 9]


def test_memory_of_what_is_not_needed_further_is_used_again() -> None:
    found = softmax_rows.softmax.formula
    text = render(plan(found, tuple(found.kinds.items())), list(found.kinds))
    assert text.count("out=") == 2, text
    x = np.arange(3.0).reshape(1, 3)
    assert not np.shares_memory(formula_of_arrays(found)(1, x), x)
    assert "kernel" not in inspect.getsource(formula_of_arrays(found))
