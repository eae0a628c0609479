"""From a traced body to NumPy source."""

from __future__ import annotations

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.expr import trace
from flambeau._compiler.numpy_source import as_ufunc, compile_kernel, render


def test_one_ufunc_is_used_as_it_is() -> None:
    expression = trace(lambda x, y: x * y, ["x", "y"])
    assert as_ufunc(expression, ["x", "y"]) is np.multiply
    assert compile_kernel("mul", expression, ["x", "y"]) is np.multiply
    assert as_ufunc(trace(lambda x, y: y * x, ["x", "y"]), ["x", "y"]) is None


def test_a_formula_becomes_one_call_a_line() -> None:
    expression = trace(lambda x: 1 / (1 + E.exp(-x)), ["x"])
    text = render(expression, ["x"])
    assert text.count("\n    ") >= 4
    kernel = compile_kernel("sigmoid", expression, ["x"])
    x = np.linspace(-3, 3, 7)
    assert np.array_equal(kernel(x), 1 / (1 + np.exp(-x)))


def test_common_parts_are_computed_once() -> None:
    def body(x: E.Expr) -> E.Expr:
        shared = E.exp(x)
        return shared * shared + shared

    text = render(trace(body, ["x"]), ["x"])
    assert text.count("exp") == 1


def test_out_and_constants() -> None:
    kernel = compile_kernel("pick", trace(lambda x: E.where(x > 0, x, float("inf")), ["x"]), ["x"])
    out = np.empty(3, np.float32)
    assert kernel(np.array([-1.0, 0.0, 2.0]), out=out) is out
    assert out.tolist() == [np.inf, np.inf, 2.0]


def test_bodies_may_not_branch_on_values() -> None:
    try:
        trace(lambda x: x if x > 0 else -x, ["x"])
    except TypeError:
        return
    raise AssertionError("an expression has no truth value")
