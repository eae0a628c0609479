"""What of a loop's body may be computed ahead of the loop.

A program can write into what it is given, and ask what is what. So what leaves a loop, as a last
state or as its memory, has to be what the loop itself would make in each round: a new tensor, or a
view of the same memory.

Rounds whose results nothing uses get no gradient from a loop, but zeros from a batch. That is the
same only where zeros stay zeros: through slopes that are finite.
"""

from __future__ import annotations

from flambeau.jit.ir.graph import Block, Node, Value
from flambeau.jit.operators.naming import with_fact
from flambeau.jit.optimise import facts
from flambeau.jit.optimise.loops import CollectingLoop
from flambeau.jit.passes.alias import AliasInfo

REGULAR = with_fact("regular")
"""Operators whose slopes are finite where what they read is."""
METHODS = ("__getitem__", "contiguous", "double", "float", "to")
"""Methods of tensors of which the same is true."""


def is_regular(node: Node) -> bool:
    """Whether a node makes no gradient that is not zero from zeros, for finite values."""
    name = facts.name_of(node)
    if not node.kind.startswith("aten::") or node.kind in REGULAR or name in METHODS:
        return True
    if not any("Tensor" in str(value.type) for value in node.outputs):
        return True
    number = node.inputs[1].constant if len(node.inputs) > 1 else None
    if not isinstance(number, (int, float)):
        return False
    return (name == "div" and number != 0) or (name == "pow" and number >= 1)


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
                node = user.owner if isinstance(user, Block) else user
                if node is None:
                    return True
                for result in node.outputs:
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
            changes = any(value in changing for value in node.outputs)
            product = node.kind in products and changes
            stays = any(value in kept for value in used) or (leaves and not product)
            stays = stays or (changes and not is_regular(node))
            if stays or leaves:
                kept.update(node.outputs)
            if not stays:
                clean.append(node)
        return clean
