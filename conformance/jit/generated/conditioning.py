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
from .comparing import EPSILON, SEEN, USUAL_ULPS, Difference, Rules, at_place, difference
from .observing import Outcome
from .running import Program, outcomes

RUNS = 4
REACH = 200.0
"""A difference of so many times what the noise does is still rounding."""


def determined(case: Case, wanted: list[Outcome], index: int, found: Difference,
               tidy: bool = False) -> bool:  # fmt: skip
    """Whether a difference in a call is more than rounding could make. tidy: `wanted` is of the
    program without what nothing uses.
    """
    for run in range(RUNS):
        noise = Noise(run)
        noisy = _noisy(case, noise, tidy)[index]
        if "gradient" in found.kind and _within(found, wanted[index], noise):
            return False
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
SUMMANDS = 1e4
LIMITS = {
    "float64": 1e308, "complex128": 1e308, "float32": 3e38, "complex64": 3e38, "bfloat16": 3e38,
    "float16": 65504.0,
}  # fmt: skip
"""The largest numbers of types."""
CENTRED = frozenset(
    f"aten::{name}" for name in (
        "layer_norm", "native_layer_norm", "group_norm", "instance_norm", "batch_norm", "cov",
        "corrcoef")
)  # fmt: skip
"""Operators that subtract a mean: what is left of it is rounded as the mean is."""


def _within(found: Difference, wanted: Outcome, noise: Noise) -> bool:
    """Whether a gradient is what is left of much larger ones that nearly make up for each other."""
    told = getattr(wanted, SEEN[found.kind])[found.place] if found.kind in SEEN else None
    if told is None or not np.isfinite(told.values).any():
        return False
    scale = np.abs(told.values[np.isfinite(told.values)]).max()
    if not np.isfinite(told.values).all() and _is_huge(wanted):
        return True  # another order of its sum may be infinite, or may not
    return bool(found.size * scale <= USUAL_ULPS * EPSILON[told.dtype] * noise.largest)


def _is_huge(outcome: Outcome) -> bool:
    """Whether sums of a call's numbers may be infinite though these are not."""
    for seen in (*outcome.arguments, *outcome.results):
        sizes = np.abs(seen.values[np.isfinite(seen.values)]) if seen.dtype in LIMITS else ()
        if len(sizes) and float(np.max(sizes)) > LIMITS[seen.dtype] / SUMMANDS:
            return True
    return False


def _noisy(case: Case, noise: Noise, tidy: bool) -> list[Outcome]:
    def with_noise(function: Function) -> Graph:
        graph = function.graph.copy()
        if tidy:
            optimise.clean_up(graph)
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
        if node.schema is not None:
            change = noise.of_differences if node.kind in CENTRED else noise
            change = change if _makes_numbers(node) else noise.on_gradients
            with graph.inserting(node.after):  # type: ignore[arg-type]
                for output in node.outputs:
                    if output.type == T.TENSOR:
                        graph.insert("flambeau::Call", (output,), (T.NONE,), function=change)


def _makes_numbers(node: Node) -> bool:
    """Whether a node's results are new, hence may be changed in place without anybody's seeing
    more than other numbers."""
    return not any(p.alias for p in node.schema.returns)  # type: ignore[union-attr]


class Noise:
    """Changes numbers by about one rounding."""

    __name__ = "noise"

    def __init__(self, seed: int) -> None:
        self.drawn = np.random.default_rng(seed)
        self.largest = 0.0  # of all numbers in gradients on the way

    def __call__(self, tensor: Any) -> None:
        data = tensor._data
        name = str(tensor.dtype).rpartition(".")[2]
        if name not in EPSILON or not data.flags.writeable:
            return
        with np.errstate(all="ignore"):
            np.copyto(data, (data * self._factors(name, data.shape)).astype(data.dtype))
        self.on_gradients(tensor)

    def of_differences(self, tensor: Any) -> None:
        """As roundings of the largest number of all."""
        data = tensor._data
        name = str(tensor.dtype).rpartition(".")[2]
        if name not in EPSILON or not data.flags.writeable or not data.size:
            return
        with np.errstate(all="ignore"):
            sizes = np.abs(np.asarray(data, np.complex128 if "complex" in name else np.float64))
            most = float(sizes[np.isfinite(sizes)].max(initial=0))
            error = most * (self._factors(name, data.shape) - 1)
            np.copyto(data, (data + error).astype(data.dtype))
        self.on_gradients(tensor)

    def on_gradients(self, tensor: Any) -> None:
        """Only the gradient, where the numbers may be someone else's, too."""
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.register_hook(self._on_gradient)

    def _factors(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        return 1 + EPSILON[name] * self.drawn.uniform(-1, 1, shape)

    def _on_gradient(self, grad: Any) -> Any:
        name = str(grad.dtype).rpartition(".")[2]
        sizes = np.abs(grad.detach()._data)
        self.largest = max(self.largest, float(sizes[np.isfinite(sizes)].max(initial=0)))
        factors = self._factors(name, tuple(grad.shape))
        return grad * flambeau.from_numpy(np.asarray(factors)).to(grad.dtype)
