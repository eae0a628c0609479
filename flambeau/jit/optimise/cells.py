"""LSTM cells in loops: one kernel for all steps, where a loop computes what `nn.LSTM` does.

    for t in range(rows.size(0)):
        gates = rows[t] + h @ w_hh.t() + b            # in any order of the terms
        i, f, g, o = gates.chunk(4, 1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        out.append(h)

The loop has been through `recurrences` already: its products with the input are rows of one
product. The match goes by what is computed, not by names; what differs in anything stays a loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.optimise import loops


@dataclass(slots=True)
class Cell:
    """What an LSTM loop is made of; values are inputs of its graph."""

    rows: Value
    """[T, N, 4 H]: the products with the inputs."""
    added: list[Value]
    """What is added to all rows: biases."""
    weight: Value
    turned: bool
    """Whether the product is `h @ weight`; else it is `h @ weight.t()`."""
    hidden: int
    cell: int
    """Places of the two states among the loop's carried values."""
    results: list[tuple[str, int]]
    """For each result of the graph: ("stack", dim), ("cat", dim), ("hidden", 0) or ("cell", 0)."""


def matched(graph: Graph) -> Cell | None:
    """The cell of a graph that consists of one collecting loop; None for other loops."""
    (loop,) = [node for node in graph if node.kind == "prim::Loop"]
    found = loops.recognised(loop)
    if found is None or len(found.states) != 2:
        return None
    for hidden, cell in (found.states, found.states[::-1]):
        made = _Matcher(graph, found, hidden, cell).match()
        if made is not None:
            return made
    return None


class _Matcher:
    """Compares a loop with the cell, for one choice of the two states."""

    def __init__(self, graph: Graph, found: loops.CollectingLoop, hidden: int, cell: int) -> None:
        self.graph, self.found = graph, found
        self.hidden, self.cell = hidden, cell
        body = found.body
        self.h, self.c = body.inputs[hidden + 1], body.inputs[cell + 1]
        self.h_next, self.c_next = body.outputs[hidden + 1], body.outputs[cell + 1]
        self.gates: Value | None = None

    def match(self) -> Cell | None:
        """The cell, if everything fits."""
        if not self._is_output() or not self._is_state() or self.gates is None:
            return None
        terms = self._terms(self.gates)
        if terms is None:
            return None
        rows = [value for value in terms if self._row_of(value) is not None]
        products = [value for value in terms if self._product(value) is not None]
        rest = [value for value in terms if value not in rows and value not in products]
        if len(rows) != 1 or len(products) != 1 or not all(map(self._outside, rest)):
            return None
        weight, turned, bias = self._product(products[0])  # type: ignore[misc]
        added = rest if bias is None else [*rest, bias]
        results = self._results()
        row = self._row_of(rows[0])
        if results is None or row is None:
            return None
        return Cell(row, added, weight, turned, self.hidden, self.cell, results)

    # ---- the pointwise part

    def _is_output(self) -> bool:
        """h = sigmoid(o) * tanh(c)."""
        factors = _operands(self.h_next, "aten::mul")
        if factors is None:
            return False
        for gate, bent in (factors, factors[::-1]):
            if _operands(bent, "aten::tanh") == [self.c_next] and self._gate(gate, "sigmoid", 3):
                return True
        return False

    def _is_state(self) -> bool:
        """c = sigmoid(f) * c + sigmoid(i) * tanh(g)."""
        terms = _sum(self.c_next)
        if terms is None:
            return False
        return any(self._keeps(a) and self._enters(b) for a, b in (terms, terms[::-1]))

    def _keeps(self, value: Value) -> bool:
        factors = _operands(value, "aten::mul")
        if factors is None or self.c not in factors:
            return False
        other = factors[1] if factors[0] is self.c else factors[0]
        return self._gate(other, "sigmoid", 1)

    def _enters(self, value: Value) -> bool:
        factors = _operands(value, "aten::mul")
        if factors is None:
            return False
        return any(self._gate(a, "sigmoid", 0) and self._gate(b, "tanh", 2)
                   for a, b in (factors, factors[::-1]))  # fmt: skip

    def _gate(self, value: Value, function: str, number: int) -> bool:
        """Whether a value is a function of a quarter of the gates."""
        inner = _operands(value, f"aten::{function}")
        if inner is None or inner[0].node is None or inner[0].node.kind != "prim::ListUnpack":
            return False
        unpack = inner[0].node
        parts = unpack.inputs[0].node
        if unpack.outputs.index(inner[0]) != number or len(unpack.outputs) != 4:
            return False
        if parts is None or parts.kind != "aten::chunk" or parts.inputs[1].constant != 4:
            return False
        if parts.inputs[2].constant not in (1, -1):
            return False
        if self.gates is None:
            self.gates = parts.inputs[0]
        return self.gates is parts.inputs[0]

    # ---- the products

    def _terms(self, value: Value) -> list[Value] | None:
        """What a value is the sum of."""
        pair = _sum(value)
        if pair is None:
            return [value]
        parts = [self._terms(part) for part in pair]
        return None if None in parts else [*parts[0], *parts[1]]  # type: ignore[misc]

    def _row_of(self, value: Value) -> Value | None:
        node = value.node
        if node is None or node.kind != "aten::__getitem__" or node.block is not self.found.body:
            return None
        parts, index = node.inputs
        rows = _operands(parts, "aten::unbind")
        fits = rows is not None and rows[1].constant == 0 and index is self.found.index
        return rows[0] if fits and self._outside(rows[0]) else None  # type: ignore[index]

    def _product(self, value: Value) -> tuple[Value, bool, Value | None] | None:
        """The weight of the product with h, whether it stands as it is, and the bias."""
        node = value.node
        if node is None or node.block is not self.found.body or self.h not in node.inputs:
            return None
        if node.kind in ("aten::matmul", "aten::mm") and node.inputs[0] is self.h:
            weight = node.inputs[1]
            if self._outside(weight):
                return weight, True, None
            source = _operands(weight, "aten::t")
            if source is not None and self._outside(source[0]):
                return source[0], False, None
        if node.kind == "aten::linear" and node.inputs[0] is self.h:
            _, weight, bias = node.inputs
            none = bias.is_constant and bias.constant is None
            if self._outside(weight) and (none or self._outside(bias)):
                return weight, False, None if none else bias
        return None

    def _outside(self, value: Value) -> bool:
        """Whether a value is an input of the graph: the same in all rounds."""
        return value in self.graph.inputs

    # ---- what comes out

    def _results(self) -> list[tuple[str, int]] | None:
        found = self.found
        if any(c.element is not self.h_next for c in found.lists):
            return None
        joins: dict[Value, tuple[str, int]] = {}
        for collected in found.lists:
            for join in collected.joins:
                joins[join.output] = (join.kind.partition("::")[2], join.inputs[1].constant)
        outputs = found.loop.outputs
        joins[outputs[self.hidden]] = ("hidden", 0)
        joins[outputs[self.cell]] = ("cell", 0)
        results = [joins.get(value) for value in self.graph.outputs]
        return None if None in results else results  # type: ignore[return-value]


def _operands(value: Value, kind: str) -> list[Value] | None:
    node: Node | None = value.node
    return node.inputs if node is not None and node.kind == kind else None


def _sum(value: Value) -> list[Value] | None:
    """The two operands of an addition without a factor."""
    operands = _operands(value, "aten::add")
    if operands is None or len(operands) != 3 or operands[2].constant != 1:
        return None
    return operands[:2]


class CellLoop:
    """Runs the cell for all steps. Arguments: those of the loop's graph, by place."""

    def __init__(self, graph: Graph, cell: Cell) -> None:
        self.cell = cell
        place = graph.inputs.index
        (loop,) = [node for node in graph if node.kind == "prim::Loop"]
        self.rows, self.weight = place(cell.rows), place(cell.weight)
        self.added = [place(value) for value in cell.added]
        self.hidden = place(loop.inputs[cell.hidden + 2])
        self.state = place(loop.inputs[cell.cell + 2])

    def __call__(self, rounds: int, *rest: Any) -> Any:
        """The results; None where the tensors are of other kinds than the kernel's."""
        values = (rounds, *rest)
        rows, weight = values[self.rows], values[self.weight]
        states = values[self.hidden], values[self.state]
        added = [values[place] for place in self.added]
        weight = ops.t(weight) if self.cell.turned and weight._data.ndim == 2 else weight
        if not self._fits(rows, weight, states, added):
            return None
        for term in added:
            rows = rows + term
        outputs, last = ops._lstm_layer(rows, weight, *states, False)[:2]
        results = [self._result(kind, dim, outputs, last) for kind, dim in self.cell.results]
        return results[0] if len(results) == 1 else tuple(results)

    def _fits(self, rows: Tensor, weight: Tensor, states: Any, added: list[Tensor]) -> bool:
        from flambeau._ops.recurrent import _compiles

        data = rows._data
        if data.ndim != 3 or not _compiles(rows, weight, states):
            return False
        _, batch, width = data.shape
        units = width // 4
        same = all(term._data.dtype == data.dtype and term._data.shape == (width,)
                   for term in added)  # fmt: skip
        return (same and width == 4 * units and weight._data.shape == (width, units)
                and all(state._data.shape == (batch, units) for state in states))  # fmt: skip

    def _result(self, kind: str, dim: int, outputs: Tensor, last: Tensor) -> Tensor:
        if kind == "hidden":
            return outputs[-1].clone()  # type: ignore[index,attr-defined]
        if kind == "cell":
            return last
        if kind == "cat":
            return ops.cat(outputs.unbind(0), dim)  # type: ignore[attr-defined]
        if dim in (0, -3):
            return outputs
        return ops.stack(outputs.unbind(0), dim)  # type: ignore[attr-defined]
