"""Graphs and code, printed by flambeau from torch's graphs, against what torch prints."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from flambeau.jit.ir.graph_parser import parse_graph
from flambeau.jit.printing.code_text import code_of

from .reading import compiled_functions, numbered, read_function, read_graph

COMPILED = compiled_functions()


@pytest.fixture(params=COMPILED)
def compiled(request: Any) -> Any:
    """One of torch's functions and methods after the other."""
    return COMPILED[request.param]


def test_code(compiled: Any) -> None:
    """The code is torch's; temporaries have the same order, not always the same numbers."""
    ours, theirs = code_of(read_function(compiled)), compiled.code
    assert numbered(ours.strip(), r"\b_\d+\b") == numbered(theirs.strip(), r"\b_\d+\b")


def test_graph(compiled: Any) -> None:
    """The graph is torch's, but for the numbers of values and facts about tensors."""
    theirs = re.sub(r"\[value=[^\]]*\[ CPU\w+\{\d\} \]\]", "[value=<Tensor>]", str(compiled.graph))
    ours = str(read_graph(compiled.graph))
    for one, other in zip(ours.split("\nwith "), theirs.split("\nwith "), strict=True):
        assert numbered(one, r"%\d+\b") == numbered(other, r"%\d+\b")


TEXT = """graph(%x.1 : Tensor,
      %n : int?):
  %2 : int = prim::Constant[value=1]()
  %3 : str = prim::Constant[value="a\\"\\n"]()
  %4 : bool = prim::Constant[value=0]()
  %5 : float[] = prim::Constant[value=[1., 2.5]]()
  %6 : Tensor = aten::add(%x.1, %x.1, %2)
  %7 : Tensor = prim::If(%4)
    block0():
      %8 : Tensor = aten::relu(%6)
      -> (%8)
    block1():
      -> (%6)
  %9 : Tensor, %10 : Tensor = aten::topk(%7, %2, %2, %4, %4)
  %11 : (Tensor, str) = prim::TupleConstruct(%9, %3)
  return (%11)
"""


def test_numbers_of_values() -> None:
    """A graph that both have read has the same names and numbers in both."""
    assert str(parse_graph(TEXT)) == str(torch._C.parse_ir(TEXT)) == TEXT
