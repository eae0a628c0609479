"""Attention as a graph of cuDNN's: the operations one by one, for which it has an engine that keeps
the scores on the chip; its gradients as another."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_float
from dataclasses import dataclass
from functools import lru_cache

from flambeau._runtime.cuda.libraries import cudnn_numbers as numbers
from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
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


# ---- gradients


@dataclass(frozen=True, slots=True)
class Slopes:
    """The gradient of attention's result, and where those of queries, keys and values go."""

    attention: Attention
    grad: Array
    of_query: Array
    of_key: Array
    of_value: Array


EARLIEST, RAGGED = 90600, 91501
"""The version that clears the sums of the queries' gradients itself; the one that has engines for
any number of keys."""
TILE = 128


class Backward:
    """A plan of attention's gradients. Weights are computed again from the logarithms of the rows'
    sums; the gradients of queries are summed in single precision, in any order."""

    def __init__(self, plan: Plan, causal: bool) -> None:
        self.plan, self.causal = plan, causal

    def run(self, query: int, key: int, value: int, out: int, log_sums: int, grad: int, along: int,
            sums: int, results: Sequence[int], scale: float) -> None:  # fmt: skip
        """Run on addresses of the current device.

        Args:
            along: float32 for each query, to work in.
            sums: float32 for each element of the queries, to work in.
            results: the gradients of queries, keys and values.
        """
        factor = addressof(number(scale))
        lowest = (addressof(number(LOWEST)),) if self.causal else ()
        of_query, of_key, of_value = results
        self.plan.run(query, key, value, grad, out, addressof(number(1.0)), along, factor, log_sums,
                      *lowest, of_value, of_key, sums, of_query)  # fmt: skip


class SlopesGraph:
    """The graph of attention's gradients in the making."""

    def __init__(self, asked: Slopes) -> None:
        self.asked, self.causal = asked, asked.attention.causal
        self.dtype = asked.attention.dtype
        self.graph = graph = Graph(self.dtype, asked.attention.alignment)
        batch, heads, queries, _ = asked.attention.query.shape
        keys = asked.attention.key.shape[2]
        self.whole = contiguous((batch, heads, queries, keys))
        self.row = contiguous((batch, heads, queries, 1))
        self.query = graph.tensor(asked.attention.query)
        self.key, self.value = (
            graph.tensor(array.mT) for array in (asked.attention.key, asked.attention.value)
        )
        self.grad = graph.tensor(asked.grad)

    def made(self) -> Graph:
        """All its operations."""
        along = self.along()
        self.scale = self.graph.tensor(contiguous((1, 1, 1, 1)), "float32", by_value=True)
        weights = self.weights()
        self.value_slopes(weights)
        slopes = self.score_slopes(weights, along)
        self.key_slopes(slopes)
        self.query_slopes(slopes)
        return self.graph

    def along(self) -> int:
        """The sum of each row of the result times its gradient, which is in memory: a kernel of
        its own computes it."""
        graph, shape = self.graph, self.asked.attention.out.shape
        products, sums = graph.virtual(contiguous(shape)), graph.virtual(self.row)
        graph.pointwise("mul", products, x=self.grad, b=graph.tensor(self.asked.attention.out))
        graph.reduce(numbers.SUM, products, sums)
        one = graph.tensor(contiguous((1, 1, 1, 1)), "float32", by_value=True)
        along = graph.tensor(self.row, "float32")
        graph.pointwise("mul", along, x=sums, b=one)
        return along

    def weights(self) -> int:
        """The weights of the keys."""
        graph, whole = self.graph, self.whole
        scores, scaled, below = (graph.virtual(whole) for _ in range(3))
        graph.multiply(self.query, self.key, scores)
        graph.pointwise("mul", scaled, x=scores, b=self.scale)
        graph.pointwise("sub", below, x=scaled, b=graph.tensor(self.row, "float32"))
        if self.causal:
            below = _later_keys_blocked(graph, below, whole)
        weights = graph.virtual(whole)
        graph.pointwise("exp", weights, x=below)
        return weights

    def value_slopes(self, weights: int) -> None:
        """The gradient of values: the weights of all queries times theirs."""
        graph = self.graph
        graph.multiply(self.turned(weights), self.grad, graph.tensor(self.asked.of_value))

    def turned(self, square: int) -> int:
        """Numbers of queries and keys as those of keys and queries, in the type of the factors."""
        result = self.graph.virtual(self.whole.mT, self.dtype)
        self.graph.turn(square, result)
        return result

    def score_slopes(self, weights: int, along: int) -> int:
        """The gradient of the scores."""
        graph, whole = self.graph, self.whole
        products, less, slopes, scaled = (graph.virtual(whole) for _ in range(4))
        graph.multiply(self.grad, self.value, products)
        graph.pointwise("sub", less, x=products, b=along)
        graph.pointwise("mul", slopes, x=less, b=weights)
        graph.pointwise("mul", scaled, x=slopes, b=self.scale)
        return scaled

    def key_slopes(self, slopes: int) -> None:
        """The gradient of keys."""
        graph = self.graph
        graph.multiply(self.turned(slopes), self.query, graph.tensor(self.asked.of_key))

    def query_slopes(self, slopes: int) -> None:
        """The gradient of queries, by way of sums in single precision."""
        graph = self.graph
        keys = graph.virtual(self.asked.attention.key, self.dtype)
        graph.turn(self.key, keys)
        sums = graph.tensor(contiguous(self.asked.attention.query.shape), "float32")
        graph.multiply(slopes, keys, sums)
        graph.pointwise("identity", graph.tensor(self.asked.of_query), x=sums)


def backward(asked: Slopes, wishes: Wishes) -> Backward:
    """The plan of attention's gradients.

    Raises:
        Unsupported: there is no engine for it.
    """
    made = SlopesGraph(asked)
    version = made.graph.dnn.version
    keys = asked.attention.key.shape[2]
    ragged = keys == 1 or (version < RAGGED and keys % TILE)
    if version < EARLIEST or ragged:
        raise Unsupported(f"cuDNN {version} has no gradient of attention for these sizes")
    return Backward(made.made().plan(wishes), asked.attention.causal)
