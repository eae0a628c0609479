"""How well numbers are determined: the plain program with a little noise after each operator,
and on the gradient of each.

Two forms of a program round in different places. Where the plain program's own results change as
much when all its operators round a little differently, a difference says nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.jit import optimise
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Block, Graph, Node

from .cases import Case
from .comparing import EPSILON, SEEN, Difference, Rules, at_place, difference
from .observing import Outcome
from .running import Program, outcomes

RUNS = 4
REACH = 200.0
"""A difference of so many times what the noise does is still rounding."""


def determined(case: Case, wanted: list[Outcome], index: int, found: Difference) -> bool:
    """Whether a difference in a call is more than rounding could make."""
    for run in range(RUNS):
        noisy = _noisy(case, run)[index]
        changed = difference(noisy, wanted[index], EXACT)
        if changed is None:
            continue
        if not changed.of_values:
            return False  # another error, another shape
        if found.kind in SEEN:
            size = at_place(noisy, wanted[index], found)
            if not np.isfinite(size) or size * REACH >= found.size:
                return False
        elif found.of_values and changed.kind == found.kind:
            return False
    return True


EXACT = Rules(ulps=0.0)


def _noisy(case: Case, run: int) -> list[Outcome]:
    noise = Noise(run)

    def with_noise(function: Function) -> Graph:
        graph = function.graph.copy()
        _rewrite(graph.block, graph, noise)
        return graph

    # Functions ask for the graph to run when they are first called.
    asked, optimise.optimised = optimise.optimised, with_noise
    try:
        return outcomes(Program(case, flambeau).subject(), case, flambeau)
    finally:
        optimise.optimised = asked


def _rewrite(block: Block, graph: Graph, noise: Noise) -> None:
    for node in list(block):
        for inner in node.blocks:
            _rewrite(inner, graph, noise)
        if _makes_numbers(node):
            with graph.inserting(node.after):  # type: ignore[arg-type]
                for output in node.outputs:
                    if output.type == T.TENSOR:
                        graph.insert("flambeau::Call", (output,), (T.NONE,), function=noise)


def _makes_numbers(node: Node) -> bool:
    """Whether a node's results are new, hence may be changed in place without anybody's seeing
    more than other numbers."""
    schema = node.schema
    return schema is not None and not any(p.alias for p in schema.returns)


class Noise:
    """Changes numbers by about one rounding."""

    __name__ = "noise"

    def __init__(self, seed: int) -> None:
        self.drawn = np.random.default_rng(seed)

    def __call__(self, tensor: Any) -> None:
        data = tensor._data
        name = str(tensor.dtype).rpartition(".")[2]
        if name not in EPSILON or not data.flags.writeable:
            return
        with np.errstate(all="ignore"):
            np.copyto(data, (data * self._factors(name, data.shape)).astype(data.dtype))
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.register_hook(self._on_gradient)

    def _factors(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        return 1 + EPSILON[name] * self.drawn.uniform(-1, 1, shape)

    def _on_gradient(self, grad: Any) -> Any:
        name = str(grad.dtype).rpartition(".")[2]
        factors = self._factors(name, tuple(grad.shape))
        return grad * flambeau.from_numpy(np.asarray(factors)).to(grad.dtype)
