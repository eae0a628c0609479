"""Attention as a graph of cuDNN's: the operations one by one, for which it has an engine that keeps
the scores on the chip."""

from __future__ import annotations

from ctypes import addressof, c_float
from dataclasses import dataclass
from functools import lru_cache

from flambeau._runtime.cuda.libraries import cudnn_numbers as numbers
from flambeau._runtime.cuda.libraries.cudnn import Graph, Plan, Wishes
from flambeau._runtime.cuda.libraries.matrices import Array, contiguous

LOWEST = -3.4028234663852886e38
"""What scores of blocked keys are set to."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Queries, keys, values and the result, [B, H, L, E] or [B, H, S, E]. Weights are rounded to
    the type of the values before they are multiplied: there are no engines for others."""

    dtype: str
    query: Array
    key: Array
    value: Array
    out: Array
    causal: bool
    alignment: int = 16


@lru_cache(256)
def number(value: float) -> c_float:
    """A number of the host that graphs take by its address; kept, so that the address stays."""
    return c_float(value)


class Forward:
    """A plan of attention. It writes the result and the logarithms of the rows' sums."""

    def __init__(self, plan: Plan, causal: bool) -> None:
        self.plan, self.causal = plan, causal

    def run(self, query: int, key: int, value: int, out: int, log_sums: int, scale: float) -> None:
        """Run on addresses of the current device."""
        factor = addressof(number(scale))
        lowest = (addressof(number(LOWEST)),) if self.causal else ()
        self.plan.run(query, key, factor, *lowest, log_sums, value, out)


def forward(asked: Attention, wishes: Wishes) -> Forward:
    """The plan of attention.

    Raises:
        Unsupported: there is no engine for it.
    """
    graph = Graph(asked.dtype, asked.alignment)
    batch, heads, queries, _ = asked.query.shape
    keys = asked.key.shape[2]
    whole, row = contiguous((batch, heads, queries, keys)), contiguous((batch, heads, queries, 1))
    single = contiguous((1, 1, 1, 1))

    query, key = graph.tensor(asked.query), graph.tensor(asked.key.mT)
    scores = graph.virtual(whole)
    graph.multiply(query, key, scores)
    scale = graph.tensor(single, "float32", by_value=True)
    scaled = graph.virtual(whole)
    graph.pointwise("mul", scaled, x=scores, b=scale)
    if asked.causal:
        scaled = _later_keys_blocked(graph, scaled, whole)

    greatest, shifted, powers = graph.virtual(row), graph.virtual(whole), graph.virtual(whole)
    graph.reduce(numbers.MAX, scaled, greatest)
    graph.pointwise("sub", shifted, x=scaled, b=greatest)
    graph.pointwise("exp", powers, x=shifted)
    total, log_total = graph.virtual(row), graph.virtual(row)
    graph.reduce(numbers.SUM, powers, total)
    graph.pointwise("log", log_total, x=total)
    graph.pointwise("add", graph.tensor(row, "float32"), x=greatest, b=log_total)
    weights = graph.virtual(whole, asked.dtype)
    graph.pointwise("div", weights, x=powers, b=total)
    value = graph.tensor(asked.value)
    graph.multiply(weights, value, graph.tensor(asked.out))
    return Forward(graph.plan(wishes), asked.causal)


def _later_keys_blocked(graph: Graph, scores: int, whole: Array) -> int:
    """Scores of keys behind the query as low as they can be."""
    rows, columns = graph.virtual(whole, "int32"), graph.virtual(whole, "int32")
    seen, result = graph.virtual(whole, "bool"), graph.virtual(whole)
    lowest = graph.tensor(contiguous((1, 1, 1, 1)), "float32", by_value=True)
    graph.pointwise("index", rows, axis=2, compute="int32", x=scores)
    graph.pointwise("index", columns, axis=3, compute="int32", x=scores)
    graph.pointwise("greater_equal", seen, compute="bool", x=rows, b=columns)
    graph.pointwise("select", result, x=scores, b=lowest, t=seen)
    return result
