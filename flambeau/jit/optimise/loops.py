"""Loops that only collect: which lists a loop fills, and what of its body does not depend on
earlier rounds.

    out = []
    for i in range(n):
        out.append(f(x[i], y[i]))
    return torch.stack(out)

`+=`, comprehensions, and loops over `x`, `x.unbind()` or `range(a, b, c)` come to the same graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flambeau.jit.ir.graph import Block, Node, Value
from flambeau.jit.optimise import facts

JOINS = ("aten::stack", "aten::cat")


@dataclass(slots=True)
class Collected:
    """A list that starts empty, gets one tensor in each round, and is joined behind the loop."""

    made: Node
    """The `prim::ListConstruct` of the empty list."""
    added: Node
    """`aten::append` or `aten::add_` in the body."""
    element: Value
    joins: list[Node]
    carried: int | None = None
    """Its place among the loop's carried values; None where the loop writes to it from outside."""


@dataclass(slots=True)
class CollectingLoop:
    """A counted loop, the lists that it fills, and the other values that it carries along."""

    loop: Node
    lists: list[Collected] = field(default_factory=list)

    @property
    def body(self) -> Block:
        """The loop's block."""
        return self.loop.blocks[0]

    @property
    def index(self) -> Value:
        """The number of the round."""
        return self.body.inputs[0]

    @property
    def states(self) -> list[int]:
        """Places of the carried values that are not collected lists."""
        lists = {collected.carried for collected in self.lists}
        return [k for k in range(len(self.loop.outputs)) if k not in lists]

    def work(self) -> list[Node]:
        """The nodes of the body that compute: not those that put elements into the lists."""
        skipped = {c.added for c in self.lists}
        skipped |= {c.added.inputs[1].node for c in self.lists if _adds_list(c.added)}  # type: ignore[misc]
        return [n for n in self.body if n not in skipped and n.kind != "prim::Constant"]


def recognised(loop: Node) -> CollectingLoop | None:
    """A loop `for i in range(n)` without exits, in which nothing is written but lists that are
    joined behind it; None for others.
    """
    body = loop.blocks[0]
    if not _is_true(loop.inputs[1]) or not _is_true(body.outputs[0]):
        return None
    found = CollectingLoop(loop)
    for node in body:
        if node.kind in ("aten::append", "aten::add_") and facts.writes(node):
            collected = _collected(found, node)
            if collected is None:
                return None
            found.lists.append(collected)
    if len({c.made for c in found.lists}) != len(found.lists):
        return None
    return found if all(facts.is_pure(node) for node in found.work()) else None


def _is_true(value: Value) -> bool:
    return value.is_constant and value.constant is True


def _adds_list(node: Node) -> bool:
    return node.kind == "aten::add_"


def _collected(found: CollectingLoop, added: Node) -> Collected | None:
    """The list that a node of the body adds to, if nothing else is done with it."""
    loop, body = found.loop, found.body
    if len(added.inputs) != 2:  # addition to a tensor
        return None
    target, element = added.inputs
    if added.block is not body:
        return None
    if _adds_list(added):
        made = element.node
        single = made is not None and made.kind == "prim::ListConstruct" and len(made.inputs) == 1
        if not single or len(element.users) != 1:
            return None
        element = made.inputs[0]  # type: ignore[union-attr]
    if target.block is body:
        return _carried(found, added, target, element)
    return _captured(loop, added, target, element)


def _carried(found: CollectingLoop, added: Node, target: Value, element: Value) -> Collected | None:
    """`output += [x]`: the list is handed from round to round."""
    loop, body = found.loop, found.body
    place = body.inputs.index(target) - 1
    result = body.outputs[place + 1]
    if result not in (target, *added.outputs) or len(target.users) > 2:
        return None
    extra = [user for user, _ in target.users if user is not added and user is not body]
    if extra or any(user is not body for user, _ in added.output.users):
        return None
    made = loop.inputs[place + 2].node
    if made is None or not _is_empty_list(made, loop) or len(made.output.users) != 1:
        return None
    joins = _joins_of(loop.outputs[place], loop)
    return None if joins is None else Collected(made, added, element, joins, place)


def _captured(loop: Node, added: Node, target: Value, element: Value) -> Collected | None:
    """`out.append(x)`: the list is made outside and written to in the loop."""
    made = target.node
    if made is None or not _is_empty_list(made, loop) or added.output.users:
        return None
    joins = _joins_of(target, loop, added)
    return None if joins is None else Collected(made, added, element, joins)


def _is_empty_list(made: Node, loop: Node) -> bool:
    return made.kind == "prim::ListConstruct" and not made.inputs and made.block is loop.block


def _joins_of(value: Value, loop: Node, added: Node | None = None) -> list[Node] | None:
    """The joins of a list, if nothing else uses it and no write lies between."""
    joins = []
    for user, _ in value.users:
        if user is added:
            continue
        if not isinstance(user, Node) or not _joins(user, loop):
            return None
        joins.append(user)
    return joins or None


def _joins(node: Node, loop: Node) -> bool:
    """Whether a node joins a list with a constant dim, behind a loop, with no write between."""
    if node.kind not in JOINS or node.block is not loop.block or not node.inputs[1].is_constant:
        return False
    between = loop.after
    while between is not node:
        assert between is not None
        if between is loop.block.end or not facts.is_pure(between):  # type: ignore[union-attr]
            return False
        between = between.after
    return True


def independent(found: CollectingLoop) -> list[Node]:
    """The nodes of the body that do not depend on a value of an earlier round, in order."""
    states = {found.body.inputs[k + 1] for k in found.states}
    tainted: set[Value] = set(states)
    clean = []
    for node in found.work():
        if any(value in tainted for value in facts.used_values(node)):
            tainted.update(node.outputs)
        else:
            clean.append(node)
    return clean
