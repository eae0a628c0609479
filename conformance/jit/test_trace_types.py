"""What the graphs of traces tell of tensors is what PyTorch's tell: types, shapes, strides."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from conformance.jit.traced_functions import FUNCTIONS
from flambeau.jit.ir.graph_parser import parse_graph

pytestmark = pytest.mark.filterwarnings("ignore")
rng = np.random.default_rng(5)


def declared(graph: Any) -> list[str]:
    """For each node its kind and the types of its results; inputs' types. Constants other than
    tensors are left out: their number differs.
    """
    found = []
    text = re.sub(r"#.*|___torch_mangle_\d+\.", "", str(graph))
    for line in text.splitlines():
        node = re.match(r"\s*(%.*?) = ([\w:]+)", line)
        if node is None:
            found += re.findall(r"%[\w.]+ : (.*?)(?:,|\):)$", line.strip())
        elif node[2] != "prim::Constant":
            found.append(f"{node[2]} {re.sub(r'%[^ ]+ : ', '', node[1])}")
    return sorted(found)


def traced(library: Any, name: str, example: Any) -> Any:
    x = library.from_numpy(example.copy()).requires_grad_(name < "m")
    return library.jit.trace(lambda x: FUNCTIONS[name](x, library), (x,), check_trace=False)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    example = rng.standard_normal((2, 3)).astype(np.float32)
    theirs, mine = (traced(library, name, example) for library in (torch, flambeau))
    assert declared(mine.graph) == declared(theirs.graph)
    assert declared(mine.inlined_graph) == declared(theirs.inlined_graph)


@pytest.mark.parametrize("name", [*FUNCTIONS][::7])
def test_texts_are_read_again(name: str) -> None:
    mine = traced(flambeau, name, rng.standard_normal((2, 3)).astype(np.float32))
    text = str(mine.graph)
    if "<Tensor>" not in text:
        assert declared(parse_graph(text)) == declared(text)


def net(library: Any) -> Any:
    class Two(library.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a = library.nn.Linear(3, 2)

        def forward(self, x: Any, pair: Any) -> Any:
            return self.a(x) + pair[0], {"sum": x.sum() + pair[1]}

    x = library.ones(1, 3)
    pair = (library.ones(2).double(), library.ones(2, dtype=library.int32))
    return library.jit.trace(Two(), (x, pair), strict=False)


def test_modules() -> None:
    """Calls of methods, and what was frozen, tell nothing."""
    theirs, mine = net(torch), net(flambeau)
    for one, other in ((theirs, mine), (theirs.a, mine.a)):
        assert declared(other.graph) == declared(one.graph)
        assert declared(other.inlined_graph) == declared(one.inlined_graph)
    frozen = [library.jit.freeze(made.eval()).graph
              for library, made in ((torch, theirs), (flambeau, mine))]  # fmt: skip
    mine, theirs = (  # torch forgets to forget what it knows of tuples
        [line for line in declared(graph) if line.startswith("aten::")] for graph in frozen[::-1]
    )
    assert mine == theirs
