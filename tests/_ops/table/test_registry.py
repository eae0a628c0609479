"""Every row: that it is well formed, and that its gradient is what finite differences say."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from flambeau._ops.table import loading
from flambeau._ops.table.dispatch import make
from flambeau._ops.table.elementwise_path import make_inplace
from flambeau._ops.table.inplace import make_kernel_inplace
from flambeau._ops.table.op import REGISTRY, Op
from flambeau._ops.table.recording import Plan
from flambeau.autograd import gradcheck, gradgradcheck
from tests._ops.sample_values import Sample, differentiable_call
from tests._ops.samples import (
    ALSO_COMPLEX,
    DRAWN,
    IMPLICIT,
    REAL_ONLY,
    REFUSED,
    TABLE,
    TWICE,
    need_kernels,
    samples_of,
)

pytestmark = pytest.mark.filterwarnings("ignore:index_reduce", "ignore:The reduce argument")

loading.load_all()
ROWS = sorted(REGISTRY)
DIFFERENTIABLE = [name for name in ROWS if REGISTRY[name].backward]


@cache
def function_of(name: str) -> Callable[..., Any]:
    """The call path of one row, past the choice between overloads."""
    return make(REGISTRY[name])


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_well_formed(name: str) -> None:
    op = REGISTRY[name]
    assert re.search(r"\w", op.doc), "a row needs a docstring"
    assert op.schema.name == op.name
    op.check()
    if op.backward:
        check_formulas(op)
    assert callable(function_of(name))
    if op.inplace:
        assert callable(make_inplace(op) if op.kind == "pointwise" else make_kernel_inplace(op))


def check_formulas(op: Op) -> None:
    """What formulas ask for exists: parameters, results, shapes, strides and types of tensors."""
    plan = Plan(op)
    known = {*plan.arguments, *plan.results, "grad", "grads", "given", "wanted"}
    for name in [*plan.arguments, *plan.results]:
        known |= {f"{name}_{suffix}" for suffix in ("shape", "strides", "dtype")}
    for formula in plan.formulas:
        assert set(formula.names) <= known


def test_every_differentiable_row_has_samples() -> None:
    there = {*TABLE, *REFUSED, *DRAWN, *IMPLICIT}
    missing = [name for name in DIFFERENTIABLE if name not in there]
    assert not missing, "rows without a line in samples.py: " + ", ".join(missing)


def test_every_sample_belongs_to_a_row() -> None:
    assert {*TABLE, *TWICE, *ALSO_COMPLEX, *REAL_ONLY, *REFUSED, *DRAWN, *IMPLICIT} <= set(
        DIFFERENTIABLE
    )


CASES = [
    pytest.param(name, position, sample, id=f"{name}-{position}")
    for name in DIFFERENTIABLE
    for position, sample in enumerate(samples_of(name, REGISTRY[name]))
]


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize(("name", "position", "sample"), CASES)
def test_gradient(name: str, position: int, sample: Sample) -> None:
    need_kernels(name)
    run, inputs = differentiable_call(REGISTRY[name], function_of(name), sample, position)
    assert gradcheck(run, inputs)


@pytest.mark.parametrize(
    ("name", "position", "sample"), [case for case in CASES if case.values[0] in TWICE]
)
def test_second_derivative(name: str, position: int, sample: Sample) -> None:
    run, inputs = differentiable_call(REGISTRY[name], function_of(name), sample, position)
    assert gradgradcheck(run, inputs)


@pytest.mark.parametrize("name", REFUSED)
def test_a_missing_derivative_is_an_error(name: str) -> None:
    run, inputs = differentiable_call(REGISTRY[name], function_of(name), REFUSED[name], 0)
    result = run(*inputs)
    first = result[0] if isinstance(result, tuple) else result
    with pytest.raises(RuntimeError, match="is not implemented|not differentiable"):
        first.sum().backward()


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_have_no_gradient(name: str) -> None:
    run, inputs = differentiable_call(REGISTRY[name], function_of(name), DRAWN[name], 0)
    run(*inputs).sum().backward()
    assert all((x.grad == 0).all() for x in inputs)
