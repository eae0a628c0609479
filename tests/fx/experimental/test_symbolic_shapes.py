"""Sizes that are symbols: expressions, guards, and results of calls."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import flambeau as torch
from flambeau._core import modes
from flambeau._subclasses import fake_tensor as fakes

sympy = pytest.importorskip("sympy")

from flambeau.fx.experimental import symbolic_shapes as shapes  # noqa: E402
from flambeau.fx.experimental.proxy_tensor import make_fx  # noqa: E402


@pytest.fixture(autouse=True)
def collected() -> Any:
    """Graphs hold their tensors in circles."""
    yield
    if modes.watch.active:
        gc.collect()


@pytest.fixture
def mode() -> Any:
    return fakes.FakeTensorMode(shape_env=shapes.ShapeEnv())


def guards(mode: Any) -> list[str]:
    return [str(guard.expr) for guard in mode.shape_env.guards]


def test_arithmetic(mode: Any) -> None:
    s = mode.from_tensor(torch.ones(4, 3)).shape[0]
    made = [s + 1, 2 * s, s - s, s // 2, s % 3, -s, s**2, (4 * s + 2) // 2, (s * 6) // (s * 2)]
    assert list(map(str, made)) == "s0 + 1|2*s0|0|(s0//2)|Mod(s0, 3)|-s0|s0**2|2*s0 + 1|3".split(
        "|"
    )
    assert [shapes.hint_int(value) for value in made] == [5, 8, 0, 2, 1, -4, 16, 9, 3]
    assert guards(mode) == []


def test_kinds(mode: Any) -> None:
    s = mode.from_tensor(torch.ones(4)).shape[0]
    assert [type(v) for v in (s, s / 2, s > 2)] == [torch.SymInt, torch.SymFloat, torch.SymBool]
    assert isinstance(s, int) and s.__class__ is not int
    assert (float(s / 2), bool(s > 2), int(s)) == (2.0, True, 4)
    assert guards(mode) == ["Eq(s0, 4)"] or guards(mode)[-1] == "Eq(s0, 4)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(s)


def test_functions_of_numbers(mode: Any) -> None:
    s, r = mode.from_tensor(torch.ones(4, 3)).shape
    made = [torch.sym_max(s, r), torch.sym_min(s, 3), torch.sym_sum([s, r, 1]),
            torch.sym_ite(s > r, s, r), torch.sym_int(torch.sym_float(s))]  # fmt: skip
    assert [shapes.hint_int(value) for value in made] == [4, 3, 8, 4, 4]
    assert float(torch.sym_sqrt(s)) == 2.0 and bool(torch.sym_not(s < 3))


def test_equal_sizes_are_one_symbol_and_small_ones_numbers(mode: Any) -> None:
    x, y = mode.from_tensor(torch.ones(4, 1, 3)), mode.from_tensor(torch.ones(3, 4, 0))
    assert f"{x.shape} {y.shape}" == "torch.Size([s0, 1, s1]) torch.Size([s1, s0, 0])"
    assert str(mode.from_tensor(torch.ones(3, 4).t()).stride()) == "(1, s0)"


def test_guards_decide_later_conditions(mode: Any) -> None:
    s, r = mode.from_tensor(torch.ones(4, 6)).shape
    assert s > 3 and s >= 4 and s != 2 and not s < 4
    assert guards(mode) == ["s0 > 3"]
    assert r % 2 == 0 and r % 2 != 1
    assert s + 2 == r
    assert str(r) == "s0 + 2" and guards(mode)[1:] == ["Eq(Mod(s1, 2), 0)", "Eq(s0 + 2, s1)"]


def test_guards_of_other_inputs(mode: Any) -> None:
    x = mode.from_tensor(torch.ones(4, 6))
    with mode:
        x.view(-1, 3)
    env = mode.shape_env
    held = [sizes for sizes in ((4, 6), (2, 3), (5, 4), (1, 3), (9, 2))
            if env.evaluate_guards_for_args([x], [torch.ones(sizes)])]  # fmt: skip
    assert held == [(4, 6), (2, 3), (9, 2)]
    assert env.evaluate_guards_for_args([x], [torch.ones(3, 4).t()]) is False


def test_operands_of_equal_sizes(mode: Any) -> None:
    env = shapes.ShapeEnv(duck_shape=False)
    mode = fakes.FakeTensorMode(shape_env=env)
    x, y = mode.from_tensor(torch.ones(4, 6)), mode.from_tensor(torch.ones(6, 4))
    with mode:
        assert str((x @ y).shape) == "torch.Size([s0, s3])"
        assert guards(mode) == ["Eq(s1, s2)"]
        assert str((x + x.t().clone().t()).shape) == "torch.Size([s0, s1])"


def test_numbers_of_elements(mode: Any) -> None:
    x = mode.from_tensor(torch.ones(4, 6))
    with mode:
        count = x.sum().long().item()
        assert str(torch.zeros(count, 2).shape) == "torch.Size([u0, 2])"
        with pytest.raises(shapes.GuardOnDataDependentSymNode, match="u0 > 3"):
            bool(count > 3)
        assert shapes.guard_or_false(count > 3) is False and shapes.guard_or_true(count > 3)
        torch._check(count > 3)
        assert count > 3 and count > 2 and shapes.statically_known_true(count >= 4)
        assert str(x.nonzero().shape) == "torch.Size([u1, 2])"
        assert str(x[x > 0].shape) == "torch.Size([u2])"
    assert guards(mode) == []
    env = mode.shape_env
    assert [str(one.expr) for one in env.deferred_runtime_asserts[count.node.expr]] == ["u0 > 3"]


def test_environments_that_allow_for_no_numbers_of_elements() -> None:
    env = shapes.ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
    with fakes.FakeTensorMode(shape_env=env):
        with pytest.raises(fakes.DataDependentOutputException):
            torch.ones(3).sum().item()
        with pytest.raises(fakes.DynamicOutputShapeException):
            torch.ones(3).nonzero()


def test_graphs_run_for_other_sizes() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        half = x.shape[0] // 2
        return torch.cat([x[half:], x[:half]]) * x.shape[1]

    graph = make_fx(halves, tracing_mode="symbolic")(torch.ones(4, 3))
    for rows, columns in ((4, 3), (7, 2), (10, 5)):
        x = torch.arange(float(rows * columns)).reshape(rows, columns)
        assert torch.equal(graph(x), halves(x))
    (x,) = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    assert graph.shape_env.evaluate_guards_for_args([x], [torch.ones(9, 9)])
