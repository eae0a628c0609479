"""Row formulas: passes, what is kept between them, and the text of kernels."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from flambeau._compiler.across_text import across_text
from flambeau._compiler.expr import exp, sqrt
from flambeau._compiler.fuse import (
    Plan,
    amax,
    at,
    average,
    down,
    first,
    formula,
    length,
    plan,
    position,
    total,
)
from flambeau._compiler.row_text import along_text, functions_of
from flambeau._ops.activations.softmax import log_softmax
from flambeau._ops.rows import formulas as row_formulas


def planned(found: Any, *absent: str) -> Plan:
    """The plan of a formula without some of its parameters."""
    kinds = tuple((name, None if name in absent else kind) for name, kind in found.kinds.items())
    return plan(found, kinds)


FORMULAS = [value for value in vars(row_formulas).values() if hasattr(value, "kinds")]


@formula(x="full")
def softmax(x: Any) -> Any:
    weight = exp(x - amax(x))
    return weight / total(weight)


@formula(x="full", weight="along", eps="number")
def normal(x: Any, weight: Any, eps: Any) -> Any:
    centered = x - average(x)
    scaled = centered / sqrt(average(centered * centered) + eps)
    return scaled if weight is None else scaled * weight


def test_a_reduction_ends_a_pass() -> None:
    found = planned(softmax)
    assert found.passes == [0, 1, 2]
    assert [r.op for r in found.reductions(0)] == ["amax"]
    assert [r.op for r in found.reductions(1)] == ["total"]
    assert found.reductions(2) == []
    assert [k for k, _ in found.written(2)] == [0]


def test_reductions_that_need_no_other_share_a_pass() -> None:
    @formula(x="full", y="full")
    def several(x: Any, y: Any) -> Any:
        return total(x), amax(y), total(x * y)

    found = planned(several)
    assert found.passes == [0]
    assert len(found.reductions(0)) == 3
    assert [k for k, _ in found.of_rows(1)] == [0, 1, 2]


def test_expensive_values_are_kept_for_later_passes() -> None:
    found = planned(softmax)
    assert [node.op for node in found.kept] == ["exp"]
    assert list(found.kept.values()) == [(1, 0)]
    last = along_text(found).split("# ")[-1].rpartition("for s in")[2]
    assert "math_exp" not in last and "keep0_s" in last


def test_what_is_used_once_is_not_kept() -> None:
    assert planned(log_softmax.formula).kept == {}


def test_equal_parts_are_computed_once() -> None:
    found = planned(normal)
    subtractions = [node for node in found.nodes.values() if node.op == "subtract"]
    assert len(subtractions) == 1
    assert found.passes == [0, 1, 2]


def test_absent_parameters_leave_the_text() -> None:
    assert "weight" in along_text(planned(normal))
    assert "weight" not in along_text(planned(normal, "weight"))


def test_the_sum_of_what_does_not_vary_is_a_product() -> None:
    @formula(x="full", scale="row")
    def flat(x: Any, scale: Any) -> Any:
        return x + total(scale)

    found = planned(flat)
    assert not [node for node in found.nodes.values() if node.op == "total"]
    assert found.passes == [0]


def test_sums_over_rows_belong_to_no_row() -> None:
    @formula(x="full")
    def columns(x: Any) -> Any:
        return x * 2, down(x)

    found = planned(columns)
    assert [k for k, _ in found.added_down(0)] == [1]
    assert [k for k, _ in found.written(0)] == [0]
    assert found.of_rows(0) == []


def test_places() -> None:
    @formula(x="full", place="index")
    def chosen(x: Any, place: Any) -> Any:
        return at(x, place), first(x == amax(x)), position() * length()

    found = planned(chosen)
    assert found.passes == [0, 1]
    assert [r.op for r in found.reductions(1)] == ["first"]


def test_kinds_are_checked() -> None:
    with pytest.raises(ValueError, match="kinds"):

        @formula(x="whole")
        def wrong(x: Any) -> Any:
            return x


@pytest.mark.parametrize("found", FORMULAS, ids=lambda f: f.name)
def test_the_text_is_python(found: Any) -> None:
    forms = [along_text]
    if "segment" not in found.kinds.values() and "down" not in str(
        found.function.__code__.co_names
    ):
        forms.append(across_text)
    for text_of in forms:
        text = text_of(planned(found))
        (tree,) = ast.parse(text).body
        assert isinstance(tree, ast.FunctionDef)
        called = {n.func.id for n in ast.walk(tree)
                  if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}  # fmt: skip
        math = {name for name in called if name.startswith("math_")}
        assert math == {f"math_{name}" for name in functions_of(planned(found))}


def test_no_formula_needs_more_than_four_passes() -> None:
    for found in FORMULAS:
        assert len(planned(found).passes) <= 3, found.name
