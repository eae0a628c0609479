"""Graphs as Python functions: control flow, calls, errors, limits."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import (
    CompilationUnit,
    Function,
    FunctionSchema,
    Parameter,
)
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.graph_parser import parse_graph
from flambeau.jit.passes.schemas import attach_schemas
from flambeau.jit.run import LimitExceeded, Limits, graph_callable, set_limits

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of scripting itself


def graph_of(text: str) -> Graph:
    graph = parse_graph(text)
    attach_schemas(graph)
    return graph


def function_of(text: str, name: str = "f", unit: CompilationUnit | None = None) -> Function:
    """A script function of a graph's text; its parameters are called a, b, …"""
    graph = graph_of(text)
    parameters = tuple(
        Parameter(name, v.type) for name, v in zip("abcdef", graph.inputs, strict=False)
    )
    results = tuple(Parameter("", v.type) for v in graph.outputs)
    unit = unit or CompilationUnit()
    schema = FunctionSchema(name, "", parameters, results)
    return unit.add_function(Function(name, unit, graph=graph, schema=schema))


LOOP = """graph(%n : int, %x : int):
  %true : bool = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %zero : int = prim::Constant[value=0]()
  %r : int = prim::Loop(%n, %true, %x)
    block0(%i : int, %y : int):
      %even : int = aten::remainder(%i, %two)
      %is : bool = aten::eq(%even, %zero)
      %z : int = prim::If(%is)
        block0():
          %a : int = aten::add(%y, %i)
          -> (%a)
        block1():
          %b : int = aten::mul(%y, %two)
          -> (%b)
      -> (%true, %z)
  return (%r)"""


def test_for_loop() -> None:
    run = graph_callable(graph_of(LOOP))
    assert run(5, 1) == ((((1 + 0) * 2) + 2) * 2) + 4
    assert "for " in run.program.text
    assert "while" not in run.program.text


WHILE = """graph(%x : int, %limit : int):
  %most : int = prim::Constant[value=9223372036854775807]()
  %start : bool = aten::lt(%x, %limit)
  %r : int, %swap : int = prim::Loop(%most, %start, %x, %limit)
    block0(%i : int, %y : int, %l : int):
      %z : int = aten::add(%y, %y)
      %on : bool = aten::lt(%z, %l)
      -> (%on, %z, %l)
  return (%r)"""


def test_while_loop() -> None:
    run = graph_callable(graph_of(WHILE))
    assert run(3, 20) == 24
    assert run(30, 20) == 30
    assert "while" in run.program.text


SWAP = """graph(%n : int, %x : int, %y : int):
  %true : bool = prim::Constant[value=1]()
  %a : int, %b : int = prim::Loop(%n, %true, %x, %y)
    block0(%i : int, %p : int, %q : int):
      -> (%true, %q, %p)
  %r : (int, int) = prim::TupleConstruct(%a, %b)
  return (%r)"""


def test_carried_variables_change_at_once() -> None:
    run = graph_callable(graph_of(SWAP))
    assert run(3, 1, 2) == (2, 1)
    assert run(4, 1, 2) == (1, 2)


def nested(depth: int, kind: str) -> str:
    """A graph of so many loops or branches within each other that add 1 inside."""
    lines = [
        "graph(%v0 : int, %n : int):",
        " %true : bool = prim::Constant[value=1]()",
        " %one : int = prim::Constant[value=1]()",
        " %yes : bool = aten::gt(%n, %n)",
    ]
    for level in range(depth):
        pad = " " * (2 * level + 2)
        if kind == "loop":
            lines.append(f"{pad}%r{level} : int = prim::Loop(%n, %true, %v{level})")
            lines.append(f"{pad} block0(%i{level} : int, %v{level + 1} : int):")
        else:
            lines.append(f"{pad}%r{level} : int = prim::If(%yes)")
            lines += [f"{pad} block0():", f"{pad}  -> (%v0)", f"{pad} block1():"]
    inner = " " * (2 * depth + 2)
    last = f"%v{depth}" if kind == "loop" else "%v0"
    lines.append(f"{inner}%sum : int = aten::add({last}, %one)")
    result = "%sum"
    for level in reversed(range(depth)):
        pad = " " * (2 * level + 4)
        lines.append(f"{pad}-> ({'%true, ' if kind == 'loop' else ''}{result})")
        result = f"%r{level}"
    lines.append(f" return ({result})")
    return "\n".join(lines)


@pytest.mark.parametrize("kind", ["loop", "if"])
def test_deep_nesting(kind: str) -> None:
    run = graph_callable(graph_of(nested(50, kind)))
    assert run(0, 1) == 1


def test_ints_have_64_bits() -> None:
    run = graph_callable(graph_of(
        "graph(%a : int, %b : int):\n %r : int = aten::mul(%a, %b)\n return (%r)"))  # fmt: skip
    assert run(2**62, 2) == -(2**63)
    assert run(3, 4) == 12


def test_calls_and_recursion() -> None:
    unit = CompilationUnit()
    function = function_of("graph(%a : int):\n return (%a)", "f", unit)
    graph = Graph()
    a = graph.add_input(T.INT, "a")
    one = graph.constant(1)
    from flambeau.jit.operators.matching import emit_builtin

    more = emit_builtin(graph, None, "aten::add", [a, one])
    call = graph.insert("prim::Constant", (), (T.FunctionType(function),), name="f").output
    graph.add_output(graph.insert("prim::CallFunction", (call, more), (T.INT,)).output)
    function.graph = graph
    with pytest.raises(RuntimeError, match="maximum recursion depth"):
        function(1)
    set_limits(unit, Limits(depth=30))
    with pytest.raises(LimitExceeded, match="more than 30 calls"):
        function(1)


def test_fork_and_wait() -> None:
    graph = Graph()
    x = graph.add_input(T.TENSOR, "x")
    inner = graph_of("graph(%x : Tensor):\n %r : Tensor = aten::neg(%x)\n return (%r)")
    future = graph.insert("prim::fork", (x,), (T.FutureType(T.TENSOR),), Subgraph=inner).output
    from flambeau.jit.operators.matching import emit_builtin

    graph.add_output(emit_builtin(graph, None, "aten::wait", [future]))
    assert graph_callable(graph)(torch.ones(2)).tolist() == [-1, -1]


# ---- arguments


def check_refused(function: Function, text: str, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(RuntimeError) as caught:
        function(*args, **kwargs)
    assert text in str(caught.value)


def test_arguments() -> None:
    function = function_of(
        "graph(%x : Tensor, %n : int):\n %r : Tensor = aten::mul(%x, %n)\n return (%r)"
    )
    assert function(torch.ones(1), 3).tolist() == [3]
    assert function(torch.ones(1), b=torch.tensor(3)).tolist() == [3]
    assert function(torch.nn.Parameter(torch.ones(1)), 3).requires_grad
    check_refused(function, "Expected a value of type 'Tensor' for argument 'a' but instead found "
                  "type 'int'.\nPosition: 0\nValue: 3\nDeclaration: f(Tensor a, int b) -> Tensor",
                  3, 3)  # fmt: skip
    check_refused(function, "f() is missing value for argument 'b'", torch.ones(1))
    check_refused(function, "expected at most 2 argument(s) but received 3", torch.ones(1), 1, 2)
    check_refused(function, "Unknown keyword argument 'z'", torch.ones(1), 1, z=2)
    check_refused(function, "specified both as positional and keyword", torch.ones(1), 1, a=2)


def test_lists_are_copied() -> None:
    function = function_of(
        "graph(%l : int[], %x : int):\n %r : int[] = aten::append(%l, %x)\n return (%l)"
    )
    given = [1]
    assert function(given, 2) == [1, 2]
    assert given == [1]


# ---- limits


def test_steps_are_counted() -> None:
    function = function_of(LOOP)
    set_limits(function.unit, Limits(steps=100))
    assert function(5, 1) == 12
    with pytest.raises(LimitExceeded, match="more than 100 steps"):
        function(1000, 1)
    assert function(5, 1) == 12


@pytest.mark.parametrize("text", [
    "graph(%n : int, %x : Tensor):\n %l : int[] = prim::ListConstruct(%n)\n"
    " %r : Tensor = aten::repeat(%x, %l)\n return (%r)",
    "graph(%n : int, %x : Tensor):\n %l : int[] = prim::ListConstruct(%n)\n"
    " %m : int[] = aten::mul(%l, %n)\n return (%m)",
    "graph(%n : int, %x : Tensor):\n %l : int[] = prim::ListConstruct(%n)\n"
    " %none : NoneType = prim::Constant()\n"
    " %m : Tensor = aten::zeros(%l, %none, %none, %none, %none)\n return (%m)",
])  # fmt: skip
def test_memory_is_refused_before_it_is_taken(text: str) -> None:
    function = function_of(text)
    set_limits(function.unit, Limits(memory=10_000))
    function(10, torch.ones(1))
    with pytest.raises(LimitExceeded, match="more than 10000 bytes"):
        function(10**12, torch.ones(1))


@pytest.mark.parametrize("line", [
    "%l : int[] = prim::ListConstruct(%n)\n %m : int[] = aten::mul(%l, %n)",
    '%s : str = prim::Constant[value="a"]()\n %m : str = aten::zfill(%s, %n)',
])  # fmt: skip
def test_filling_what_is_long_is_work(line: str) -> None:
    function = function_of(f"graph(%n : int):\n {line}\n return (%n)")
    set_limits(function.unit, Limits(steps=1000))
    function(10)
    with pytest.raises(LimitExceeded, match="more than 1000 steps"):
        function(10**6)


# ---- errors


def test_errors_show_the_program() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        y = x + 1
        return y @ torch.ones(5)

    scripted = torch.jit.script(f)
    with pytest.raises(RuntimeError) as caught:
        scripted(torch.ones(3))
    text = str(caught.value)
    assert text.startswith("The following operation failed in the TorchScript interpreter.")
    assert "return y @ torch.ones(5)" in text
    assert "<--- HERE" in text
    assert "inconsistent tensor size" in text or "size mismatch" in text


def test_raise_is_a_jit_error() -> None:
    def f(x: int) -> int:
        if x > 3:
            raise ValueError("too large")
        return x

    scripted = torch.jit.script(f)
    assert scripted(3) == 3
    with pytest.raises(torch.jit.Error, match="builtins.ValueError: too large"):
        scripted(4)
