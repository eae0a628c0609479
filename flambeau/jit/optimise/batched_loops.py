"""Loops that collect become one batched computation.

    out = []                                     rows = flambeau::Call[a BatchedLoop](tensor, idx)
    for i in range(tensor.size(0)):        →
        out.append(tensor[i][idx[i]])
    result = torch.stack(out)

A loop whose rounds need those before them keeps its recurrence, but the products in it that do
not depend on earlier rounds (`x[i] @ w`) are computed for all rounds before it.

The loop itself is kept beside the batched form, and runs where that does not fit: without rounds,
and where anything raises, so that errors are those of the loop. Nothing in it writes, so that
computing a part of it in vain shows nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.optimise import loops, settings
from flambeau.jit.optimise.batching import RULES, Batched, Counted, NotBatchable, Program, repeated
from flambeau.jit.optimise.batching.program import STRUCTURE
from flambeau.jit.optimise.subgraphs import captured, extracted, replace_by_call, runner


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
        if all(has_rule(node) for node in found.work()):
            _batch(found)
    elif found.states and settings.current.hoisting:
        from flambeau.jit.optimise import recurrences

        recurrences.rewrite(found)


def has_rule(node: Node) -> bool:
    """Whether a node can take part in a batch; nodes that do not depend on the round need no
    rule, but if they had blocks, their values would."""
    known = node.kind in RULES or node.kind in STRUCTURE or node.schema is not None
    return known and not node.blocks


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
    joins = [(join.kind, join.inputs[1].constant) for c in found.lists for join in c.joins]
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

    def __init__(self, graph: Graph, program: Program, joins: Sequence[tuple[str, int]]) -> None:
        self.graph = graph
        self.program = program
        self.joins = joins
        self.loop: Callable[..., Any] | None = None
        self.fits = True
        self.error: Exception | None = None
        """Why the batched form did not hold, the last time that it did not."""

    def __call__(self, rounds: int, *inputs: Any) -> Any:
        """The joined results."""
        if self.fits and rounds > 1:
            try:
                results = self.program.run(rounds, (Counted(rounds), rounds, *inputs))
                pairs = zip(self.joins, results, strict=True)
                joined = [joined_rounds(*join, value, rounds, inputs) for join, value in pairs]
                return joined[0] if len(joined) == 1 else tuple(joined)
            except NotBatchable as error:
                self.fits, self.error = False, error
            except Exception as error:  # whatever it is: the loop will raise what belongs there
                self.error = error
        return self.plain(rounds, *inputs)

    def plain(self, *inputs: Any) -> Any:
        """The loop as it stands."""
        if self.loop is None:
            self.loop = runner(self.graph)
        return self.loop(*inputs)

    def __repr__(self) -> str:
        return "<batched loop>"


def joined_rounds(kind: str, dim: int, value: Any, rounds: int, inputs: Sequence[Any]) -> Tensor:
    """`stack` or `cat` of what the rounds computed, in new memory."""
    if isinstance(value, Tensor):
        value = repeated(value, rounds)
    if not isinstance(value, Batched):
        raise NotBatchable("a list of other things than tensors")
    tensor, rank = value.tensor, value.rank
    stacks = kind == "aten::stack"
    if not -rank - stacks <= dim < rank + stacks:
        raise IndexError("the loop says which dim is out of range")
    place = dim + (rank + stacks if dim < 0 else 0)
    if place:
        tensor = ops.movedim(tensor, 0, place)
    if not stacks:
        tensor = ops.flatten(tensor, place, place + 1)
    if not tensor._data.flags.c_contiguous:
        return tensor.contiguous()  # type: ignore[attr-defined,no-any-return]
    shared = any(isinstance(v, Tensor) and np.may_share_memory(v._data, tensor._data)
                 for v in inputs)  # fmt: skip
    return ops.clone(tensor) if shared else tensor
