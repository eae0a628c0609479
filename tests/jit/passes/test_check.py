"""Graphs that are not sound are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flambeau.jit.ir import types as T
from flambeau.jit.ir.check import UnsoundGraph, check
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.graph_parser import parse_graph

TEXT = """graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = prim::If(%c)
    block0():
      %d : Tensor = aten::neg(%a)
      -> (%d)
    block1():
      -> (%a)
  return (%b)"""


def swap(graph: Graph) -> None:
    """A use before the definition."""
    first, second = graph.block
    second.move_before(first)


def escape(graph: Graph) -> None:
    """A value used outside of its block."""
    first, second = graph.block
    (inner,) = second.blocks[0]
    graph.block.set_output(0, inner.output)


def forget(graph: Graph) -> None:
    """A value that does not know its user."""
    first, _ = graph.block
    first.output.users.popitem()


def widen(graph: Graph) -> None:
    """A result that the blocks do not give."""
    _, second = graph.block
    second.add_output(T.TENSOR)


def test_sound() -> None:
    """Nothing is found in a graph as it should be."""
    check(parse_graph(TEXT))


@pytest.mark.parametrize("spoil", [swap, escape, forget, widen])
def test_unsound(spoil: Callable[[Graph], None]) -> None:
    """Each kind of damage is found."""
    graph = parse_graph(TEXT)
    spoil(graph)
    with pytest.raises(UnsoundGraph):
        check(graph)
