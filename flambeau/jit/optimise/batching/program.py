"""Values with a batch dim, and the evaluation of nodes on them.

What the rounds of a loop compute is computed once, on tensors that have a round in each place of
dim 0. The rules say how an operator does that; where there is none, or where a number of a round
would decide what is computed, `NotBatchable` is raised and the loop runs as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.graph import Node, Value

Rule = Callable[..., Any]


class NotBatchable(Exception):
    """What a loop does has no batched form."""


class Batched:
    """The tensors of all rounds: [rounds, *]."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def rank(self) -> int:
        """Dims of the tensor of one round."""
        return self.tensor._data.ndim - 1


class Rounds:
    """An integer of each round, such as the loop's index: [rounds], int64."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = numbers

    @property
    def start(self) -> int | None:
        """The first number, if each is one more than the one before it and none is negative."""
        first = int(self.numbers[0])
        whole = first >= 0 and bool((np.diff(self.numbers) == 1).all())
        return first if whole else None


class Counted(Rounds):
    """0, 1, 2, …: the index itself, whose numbers are made when they are asked for."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def numbers(self) -> np.ndarray:  # type: ignore[override]
        return np.arange(self.count)

    @property
    def start(self) -> int | None:
        return 0


def depends_on_round(value: Any) -> bool:
    """Whether a value differs from round to round."""
    if isinstance(value, (Batched, Rounds)):
        return True
    return isinstance(value, (list, tuple)) and any(map(depends_on_round, value))


class Program:
    """Nodes in order, as calls on numbered places."""

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value],
                 outputs: Sequence[Value]) -> None:  # fmt: skip
        self.places: dict[Value, int] = {}
        self.start: list[Any] = []
        for value in inputs:
            self._place(value, None)
        self.steps = [self._step(node) for node in nodes]
        self.outputs = [self._known(value) for value in outputs]

    def _place(self, value: Value, start: Any) -> int:
        self.places[value] = len(self.start)
        self.start.append(start)
        return self.places[value]

    def _known(self, value: Value) -> int:
        if value not in self.places and value.is_constant:
            self._place(value, value.constant)
        return self.places[value]

    def _step(self, node: Node) -> Step:
        from flambeau.jit.optimise.batching import RULES

        rule = RULES.get(node.kind)
        sources = [self._known(value) for value in node.inputs]
        targets = [self._place(value, None) for value in node.outputs]
        return Step(node.kind, plain_call(node), rule, sources, targets)

    def run(self, rounds: int, inputs: Sequence[Any]) -> list[Any]:
        """The outputs: `Batched`, `Rounds`, or what is the same in all rounds."""
        values = self.start[:]
        values[: len(inputs)] = inputs
        for step in self.steps:
            step.run(rounds, values)
        return [values[place] for place in self.outputs]


class Step:
    """One node."""

    __slots__ = ("kind", "plain", "rule", "sources", "target", "targets")

    def __init__(self, kind: str, plain: Callable[..., Any], rule: Rule | None,
                 sources: list[int], targets: list[int]) -> None:  # fmt: skip
        self.kind = kind
        self.plain = plain
        self.rule = rule
        self.sources = sources
        self.targets = targets
        self.target = targets[0] if len(targets) == 1 else None

    def run(self, rounds: int, values: list[Any]) -> None:
        """Compute once what all rounds compute."""
        given = [values[place] for place in self.sources]
        if not any(map(depends_on_round, given)):
            result = self.plain(*given)
        elif self.rule is None:
            raise NotBatchable(self.kind)
        else:
            result = self.rule(self.plain, rounds, *given)
        if self.target is not None:
            values[self.target] = result
            return
        for place, value in zip(self.targets, result, strict=True):
            values[place] = value


def plain_call(node: Node) -> Callable[..., Any]:
    """What a node computes, as a function of values."""
    made = STRUCTURE.get(node.kind)
    if made is not None:
        return made(node)
    from flambeau.jit.operators.calls import implementation

    if node.schema is None:
        return _not_batchable(node)
    found: Callable[..., Any] = implementation(node.schema)
    return found


def _not_batchable(node: Node) -> Callable[..., Any]:
    def refuse(*values: Any) -> Any:
        raise NotBatchable(node.kind)

    return refuse


def _list(node: Node) -> Callable[..., Any]:
    return lambda *values: list(values)


def _tuple(node: Node) -> Callable[..., Any]:
    return lambda *values: values


def _unpack(node: Node) -> Callable[..., Any]:
    count = len(node.outputs)

    def unpack(values: Any) -> Any:
        if len(values) != count:
            raise NotBatchable("a list of another length")
        return values[0] if count == 1 else values

    return unpack


def _constant(node: Node) -> Callable[..., Any]:
    value = node.attributes.get("value")
    return lambda: value


def _attribute(node: Node) -> Callable[..., Any]:
    name = node.attributes["name"]
    return lambda owner: getattr(owner, name)


STRUCTURE: dict[str, Callable[[Node], Callable[..., Any]]] = {
    "prim::ListConstruct": _list,
    "prim::TupleConstruct": _tuple,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::Constant": _constant,
    "prim::unchecked_cast": lambda node: lambda value: value,
    "prim::GetAttr": _attribute,
}
"""Kinds without a schema, which put values together and take them apart."""
