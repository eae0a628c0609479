"""What of a loop's body leaves the loop as it is: as a last state, or in one's memory.

A program can write into what it is given, and ask what is what. So a value that may leave has to be
what the loop itself would make in each round: a new tensor, or a view of the same memory.
"""

from __future__ import annotations

from flambeau.jit.ir.graph import Block, Node, Value
from flambeau.jit.optimise import facts
from flambeau.jit.optimise.loops import CollectingLoop
from flambeau.jit.passes.alias import AliasInfo


class Leaving:
    """Which values of a loop may leave it, by the graph as it is now."""

    def __init__(self, found: CollectingLoop) -> None:
        self.found = found
        self.info = AliasInfo(found.loop.graph)

    def leaves(self, value: Value) -> bool:
        """Whether a value, or a view of it, may be a state behind the round that it is made in."""
        body, waiting, seen = self.found.body, [value], {value}
        while waiting:
            at = waiting.pop()
            for user, place in at.users:
                if user is body and place > 0 and place - 1 in self.found.states:
                    return True
                if isinstance(user, Block):
                    user = user.owner
                    if user is None:
                        return True
                for result in user.outputs:
                    if result not in seen and self.info.may_contain_alias(at, result):
                        seen.add(result)
                        waiting.append(result)
        return False

    def is_new(self, value: Value) -> bool:
        """Whether a value is memory of its own, which no one outside of the round knows."""
        node = value.node
        if node is None or self.info.is_known_outside(value):
            return False
        return not any(self.info.may_alias(value, given) for given in node.inputs)

    def ahead(self, products: frozenset[str]) -> list[Node]:
        """The nodes that may be computed ahead of the loop, in order: they depend on no state, nor
        on what leaves the loop, which is to be one tensor for all that use it. Of that, only
        products of a round may be, whose operators save no results: what uses them gets a copy.
        """
        found = self.found
        kept = {found.body.inputs[k + 1] for k in found.states}
        changing = {found.index}
        clean = []
        for node in found.work():
            used = facts.used_values(node)
            leaves = any(self.leaves(value) for value in node.outputs)
            if any(value in changing for value in used):
                changing.update(node.outputs)
            product = node.kind in products and node.output in changing
            stays = any(value in kept for value in used) or (leaves and not product)
            if stays or leaves:
                kept.update(node.outputs)
            if not stays:
                clean.append(node)
        return clean
