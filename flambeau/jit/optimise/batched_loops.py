"""Loops that collect become one batched computation.

    out = []                                     rows = flambeau::Call[a BatchedLoop](tensor, idx)
    for i in range(tensor.size(0)):        →
        out.append(tensor[i][idx[i]])
    result = torch.stack(out)

A loop whose rounds need those before them keeps its recurrence, but the products in it that do
not depend on earlier rounds (`x[i] @ w`) are computed for all rounds before it.

The loop itself is kept beside the batched form, and runs where that does not fit: without rounds,
where the first round is not like its batch (`batching/likeness.py`), and where anything raises, so
that errors are those of the loop. Nothing in it writes, so that computing a part of it in vain
shows nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flambeau._core import modes
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.graph import Block, Graph, Node, Value, captured
from flambeau.jit.optimise import facts, faults, loops, settings, sharing
from flambeau.jit.optimise.batching import (
    Batched,
    Counted,
    NotBatchable,
    Program,
    repeated,
)
from flambeau.jit.optimise.batching.program import STRUCTURE, rule_for
from flambeau.jit.optimise.batching.saved import (
    JoinedRounds,
    RoundsBackward,
    StackedRounds,
    recorded,
)
from flambeau.jit.optimise.batching.values import depends_on_round
from flambeau.jit.optimise.subgraphs import extracted, replace_by_call, runner

FEWEST = 2
"""Rounds of a batch."""


def rewrite(block: Block) -> None:
    """Rewrite the loops of a block, inner ones first."""
    for node in list(block):
        for inner in node.blocks:
            rewrite(inner)
        if node.kind == "prim::Loop" and node.block is block:
            _rewrite_loop(node)


def _rewrite_loop(loop: Node) -> None:
    found = loops.recognised(loop)
    if found is None:
        return
    if not found.states and found.lists and settings.current.loop_batching:
        if have_rules(found):
            _batch(found)
    elif found.states and settings.current.hoisting:
        from flambeau.jit.optimise import recurrences

        recurrences.rewrite(found)


def have_rules(found: loops.CollectingLoop) -> bool:
    """Whether all nodes of a loop without states that depend on the round have rules."""
    changing: set[Value] = {found.index}
    for node in found.work():
        if not has_rule(node):
            return False
        if any(value in changing for value in facts.used_values(node)):
            changing.update(node.outputs)
            if node.kind not in STRUCTURE and not _is_batchable(node):
                return False
    return True


def has_rule(node: Node) -> bool:
    """Whether a node can take part in a batch; nodes that do not depend on the round need no
    rule, but if they had blocks, their values would."""
    return (node.kind in STRUCTURE or node.schema is not None) and not node.blocks


def _is_batchable(node: Node) -> bool:
    return node.schema is not None and rule_for(node.schema) is not None


def whole(found: loops.CollectingLoop) -> list[Node]:
    """The lists, the loop and the joins, in order."""
    lists = [c.made for c in found.lists]
    joins = [join for c in found.lists for join in c.joins]
    return [*lists, found.loop, *joins]


# ---- loops without recurrence


def _batch(found: loops.CollectingLoop) -> None:
    nodes = whole(found)
    outputs = [join.output for c in found.lists for join in c.joins]
    if _is_used_elsewhere(found) or not outputs:
        return
    inputs = call_inputs(found, nodes)
    elements = [c.element for c in found.lists for _ in c.joins]
    joins = [Join(join.kind, join.inputs[1].constant) for c in found.lists for join in c.joins]
    program = Program(found.work(), [found.index, *inputs], elements)
    function = BatchedLoop(extracted(nodes, inputs, outputs), program, joins)
    replace_by_call(nodes, found.loop, inputs, outputs, function)


def _is_used_elsewhere(found: loops.CollectingLoop) -> bool:
    """Whether a result of the loop is used by others than the joins."""
    joins = {join for c in found.lists for join in c.joins}
    return any(user not in joins for v in found.loop.outputs for user, _ in v.users)


def call_inputs(found: loops.CollectingLoop, nodes: Sequence[Node]) -> list[Value]:
    """What the call gets: first the number of rounds, even if it is a constant."""
    trips = found.loop.inputs[0]
    return [trips, *[value for value in captured(nodes) if value is not trips]]


class BatchedLoop:
    """A loop in both forms."""

    def __init__(self, graph: Graph, program: Program, joins: Sequence[Join]) -> None:
        self.graph = graph
        self.program = program
        self.joins = joins
        program.look = self.look
        self.loop: Callable[..., Any] | None = None
        self.error: Exception | None = None
        """Why the batched form did not hold, the last time that it did not."""

    @property
    def fits(self) -> bool:
        """Whether the batched form has held so far."""
        return self.error is None

    def __call__(self, rounds: int, *inputs: Any) -> Any:
        """The joined results."""
        if rounds < FEWEST:
            return self.plain(rounds, *inputs)
        try:
            results = self.batched(rounds, inputs)
        except NotBatchable as error:
            results, fault = None, None
            self.error = error
        except Exception as error:  # the program's own, unless the loop runs through
            results, fault = None, error
            self.error = error
        if results is None:
            if fault is None:
                return self.plain(rounds, *inputs)
            return faults.plainly("batched loop", fault, self.plain, rounds, *inputs)
        return results[0] if len(results) == 1 else tuple(results)

    def plain(self, *inputs: Any) -> Any:
        """The loop as it stands."""
        if self.loop is None:
            self.loop = runner(self.graph)
        return self.loop(*inputs)

    def look(self, elements: list[Any]) -> None:
        """See whether the joins of elements like those of the first round are row-major."""
        for join, element in zip(self.joins, elements, strict=True):
            if not isinstance(element, Tensor):
                raise NotBatchable("a list of other things than tensors")
            if not sharing.is_new(join.plain([element, element])):
                raise NotBatchable("tensors of a memory format of their own")

    def batched(self, rounds: int, inputs: Sequence[Any]) -> list[Tensor]:
        """The joins of all rounds at once."""
        values, first = self.program.evaluate(rounds, (Counted(rounds), rounds, *inputs))
        elements = [values[place] for place in self.program.outputs]
        joined = [join.batched(element, rounds)
                  for join, element in zip(self.joins, elements, strict=True)]  # fmt: skip
        if modes.grad.enabled and any(map(_learns, values)):
            pairs = zip(self.joins, joined, strict=True)
            return [recorded(result, join.node(), first.kept, values) for join, result in pairs]
        found: list[Tensor] = []
        plain = [value for value in values if isinstance(value, (Tensor, list, tuple))
                 and not depends_on_round(value)]  # fmt: skip
        for result in joined:
            found.append(sharing.own_memory(result, *plain, *found))
        return found

    def __repr__(self) -> str:
        return "<batched loop>"


def _learns(value: Any) -> bool:
    """Whether an operator may have saved what a value holds."""
    if isinstance(value, Batched):
        return value.tensor.requires_grad
    if isinstance(value, (list, tuple)):
        return any(map(_learns, value))
    return isinstance(value, Tensor) and value.requires_grad


@dataclass(frozen=True, slots=True)
class Join:
    """`stack` or `cat` of a list along a dim."""

    kind: str
    dim: int

    @property
    def stacks(self) -> bool:
        """Whether the rounds are a dim of their own."""
        return self.kind == "aten::stack"

    def node(self) -> RoundsBackward:
        """A new node behind a result."""
        return StackedRounds() if self.stacks else JoinedRounds()

    def plain(self, tensors: list[Tensor]) -> Tensor:
        """The join of tensors."""
        return (ops.stack if self.stacks else ops.cat)(tensors, self.dim)  # type: ignore[no-any-return]

    def batched(self, value: Any, rounds: int) -> Tensor:
        """The join of what the rounds have computed, perhaps a view."""
        whole = value if isinstance(value, Batched) else repeated(value, rounds)
        tensor, rank = whole.tensor, whole.rank
        place = self.dim + (rank + self.stacks if self.dim < 0 else 0)
        if place:
            tensor = ops.movedim(tensor, 0, place)
        return tensor if self.stacks else ops.flatten(tensor, place, place + 1)
