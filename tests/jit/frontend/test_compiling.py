"""From source to graphs: places, types, variables, errors."""

from __future__ import annotations

import ast
from typing import Any

import pytest

import flambeau as torch
from flambeau.jit.frontend.exits import transform_exits
from flambeau.jit.frontend.source import Places, definition_of
from flambeau.jit.frontend.type_comments import type_line
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import ScriptError, Source


def gather(tensor, indices):  # noqa: ANN001, ANN201
    output = []
    for i in range(tensor.size(0)):
        output += [tensor[i][indices[i]]]
    return torch.stack(output)


def clipped(x: int, low: int = 2) -> int:
    while x > 10:
        x -= 3
        if x == 7:
            break
    if x < low:
        return low
    return x


def wrong(x: int):  # noqa: ANN201
    y = "a" + x  # type: ignore[operator]
    return y  # noqa: RET504


def kinds(function: Any) -> list[str]:
    return [node.kind for node in torch.jit.script(function).graph.walk()]


def test_loop_is_one_node_and_variables_are_its_results() -> None:
    loops = [n for n in torch.jit.script(gather).graph.walk() if n.kind == "prim::Loop"]
    assert len(loops) == 1
    assert [value.type for value in loops[0].outputs] == [T.ListType(T.TENSOR)]
    assert "prim::Store" not in kinds(gather)


def test_early_exits_give_the_values_of_python() -> None:
    scripted = torch.jit.script(clipped)
    assert [scripted(x) for x in range(30)] == [clipped(x) for x in range(30)]
    assert "prim::ReturnStmt" not in kinds(clipped)
    assert "prim::LoopContinuation" not in kinds(clipped)


def test_schema_has_types_and_defaults() -> None:
    low = torch.jit.script(clipped).schema.arguments[1]
    assert (low.name, low.type, low.default) == ("low", T.INT, 2)


def test_error_shows_line_and_piece() -> None:
    with pytest.raises(ScriptError) as caught:
        torch.jit.script(wrong)
    lines = str(caught.value).splitlines()
    marked = next(i for i, line in enumerate(lines) if "<--- HERE" in line)
    assert lines[marked - 1].lstrip().startswith('y = "a" + x')
    assert lines[marked].strip() == "~~~~~~~ <--- HERE"


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("x.size(0)", "x.size(0"), ("a + b * c", "a + b * c"), ("x[1:, 2]", "x[1:, 2]"),
        ("-x", "-x"), ("f(a, b=c)", "f(a, b=c"), ("[a, b]", "[a, b"), ("é + x", "é + x"),
    ],
)  # fmt: skip
def test_places(text: str, piece: str) -> None:
    """A place goes from the first to the last token that says something."""
    node = ast.parse(text, mode="eval").body
    assert Places(Source(text)).of(node).text == piece


def test_positions_are_those_of_the_file() -> None:
    def inner(x: int) -> int:
        return x

    definition = definition_of(inner)
    place = Places(definition.source).of(definition.node.body[0])
    assert place.text == "return x"
    assert place.column == 8


def test_type_comments_of_parameters_are_put_together() -> None:
    text = (
        "def f(x,  # type: int\n      y,  # type: List[int]\n      ):\n    # type: (...) -> int\n"
    )
    assert type_line(text) == "# type: (int, List[int]) -> int"


def test_misspelled_type_comment_is_refused() -> None:
    with pytest.raises(RuntimeError, match="annotation prefix in line 1"):
        type_line("def f(x):\n    #type: (int) -> int\n")


def test_exits_of_a_block_that_always_returns() -> None:
    graph = Graph()
    x = graph.add_input(T.INT, "x")
    unset = graph.insert("prim::Uninitialized", (), (T.INT,)).output
    graph.insert("prim::ReturnStmt", (x,), ())
    graph.insert("prim::Print", (x,), ())
    graph.add_output(unset)
    transform_exits(graph)
    assert graph.outputs == [x]
    assert "prim::Print" not in [node.kind for node in graph]
