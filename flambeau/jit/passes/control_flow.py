"""`If` and `Loop`: put in line what is known to run, order results, drop what is the same."""

from __future__ import annotations

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.operators.matching import emit_builtin


def inline_branch(node: Node, taken: bool) -> None:
    """Replace an `If` by the nodes of one of its blocks."""
    block = node.blocks[0 if taken else 1]
    for inner in block:
        inner.move_before(node)
    for result, value in zip(node.outputs, block.outputs, strict=True):
        result.replace_by(value)
    node.destroy()


def remove_loop(node: Node) -> None:
    """Replace a `Loop` that never runs: it returns what it is given."""
    for result, value in zip(node.outputs, node.inputs[2:], strict=True):
        result.replace_by(value)
    node.destroy()


def never_runs(node: Node) -> bool:
    """Whether a `Loop` has no trips, or a condition that is false at once."""
    trips, condition = node.inputs[:2]
    if trips.is_constant and trips.constant < 1:
        return True
    return condition.is_constant and condition.constant is False


def same_constant(one: Value, other: Value) -> bool:
    """Whether two values are one, or constants of one immutable value."""
    if one is other:
        return True
    if not (one.is_constant and other.is_constant and one.type == other.type):
        return False
    mine, theirs = one.node.attributes, other.node.attributes  # type: ignore[union-attr]
    value = mine.get("value")
    if isinstance(value, (list, dict)) or hasattr(value, "dtype"):
        return False
    return (type(value), value) == (type(theirs.get("value")), theirs.get("value"))


def remove_equal_results(node: Node) -> None:
    """Drop results of an `If` that are the same whichever block runs."""
    first, second = node.blocks
    for index in reversed(range(len(node.outputs))):
        one, other = first.outputs[index], second.outputs[index]
        if same_constant(one, other):
            node.outputs[index].replace_by(_outside(node, one))
            node.remove_output(index)
            first.remove_output(index)
            second.remove_output(index)


def _outside(node: Node, value: Value) -> Value:
    """The value where the `If` stands; a constant within a block is made again there."""
    if value.node is None or not value.is_constant:
        return value
    assert node.block is not None
    if value.node.block is not None and node.block.is_inside(value.node.block):
        return value
    made = Node(node.graph, "prim::Constant", (), {**value.node.attributes})
    made.add_output(value.type)
    return made.insert_before(node).output


def remove_unchanged_carried(node: Node) -> None:
    """Drop what a `Loop` carries but never changes."""
    (body,) = node.blocks
    for index in reversed(range(len(node.outputs))):
        start, inside = node.inputs[index + 2], body.inputs[index + 1]
        if body.outputs[index + 1] is inside:
            node.outputs[index].replace_by(start)
            inside.replace_by(start)
            node.remove_output(index)
            node.remove_input(index + 2)
            body.remove_output(index + 1)
            del body.inputs[index + 1]


# ---- the order of results


def order_results(graph: Graph) -> None:
    """Put results of `If` and what `Loop` carries into the order in which they are used first."""
    places = _Places(graph)
    _order(graph.block, places)


def _order(block: Block, places: _Places) -> None:
    for node in reversed(block):
        if node.kind == "prim::If":
            _permute_if(node, places.order(node.outputs))
        elif node.kind == "prim::Loop":
            _permute_loop(node, places.order(node.outputs))
        for inner in node.blocks:
            _order(inner, places)


class _Places:
    """Where nodes stand: numbers that grow along the text."""

    def __init__(self, graph: Graph) -> None:
        self._of: dict[Node | Block, int] = {}
        self._number(graph.block)

    def _number(self, block: Block) -> None:
        for node in block:
            self._of[node] = len(self._of)
            for inner in node.blocks:
                self._number(inner)
        self._of[block] = len(self._of)  # its results come last

    def order(self, values: list[Value]) -> list[int]:
        """The values' indices, sorted by first use; unused ones last."""

        def first_use(index: int) -> tuple[int, int, int]:
            uses = [(self._of[user], i) for user, i in values[index].users]
            return (0, *min(uses)) if uses else (1, index, 0)

        return sorted(range(len(values)), key=first_use)


def _permute_if(node: Node, order: list[int]) -> None:
    node.outputs = [node.outputs[i] for i in order]
    for block in node.blocks:
        _permute_results(block, order)


def _permute_loop(node: Node, order: list[int]) -> None:
    node.outputs = [node.outputs[i] for i in order]
    (body,) = node.blocks
    inputs = node.inputs[:2] + [node.inputs[i + 2] for i in order]
    node.remove_all_inputs()
    for value in inputs:
        node.add_input(value)
    body.inputs = [body.inputs[0], *(body.inputs[i + 1] for i in order)]
    _permute_results(body, [0, *(i + 1 for i in order)])


def _permute_results(block: Block, order: list[int]) -> None:
    values = [block.outputs[i] for i in order]
    block.remove_all_outputs()
    for value in values:
        block.add_output(value)


# ---- loops with two ends


def make_while_loops(graph: Graph) -> None:
    """Make loops that have both a number of trips and a condition `while` loops with a counter, as
    code can only write one of the two.
    """
    for node in list(graph.walk()):
        if node.kind == "prim::Loop" and _has_two_ends(node):
            _count_by_itself(node)


MOST_TRIPS = 2**63 - 1
"""The number of trips of a `while` loop."""


def _has_two_ends(node: Node) -> bool:
    trips, condition = node.inputs[:2]
    (body,) = node.blocks
    counted = not (trips.is_constant and trips.constant == MOST_TRIPS) or body.inputs[0].users
    return bool(counted) and not (_is_true(condition) and _is_true(body.outputs[0]))


def _is_true(value: Value) -> bool:
    return value.is_constant and value.constant is True


def _count_by_itself(node: Node) -> None:
    graph, (body,) = node.graph, node.blocks
    trips, condition = node.inputs[:2]
    with graph.inserting(node):
        zero, one = graph.constant(0), graph.constant(1)
        starts = emit_builtin(graph, None, "aten::gt", [trips, zero])
        node.set_input(0, graph.constant(MOST_TRIPS))
        if not _is_true(condition):
            starts = emit_builtin(graph, None, "aten::__and__", [starts, condition])
    node.set_input(1, starts)
    node.add_input(zero)
    node.add_output(T.INT)
    counter = body.add_input(T.INT)
    body.inputs[0].name = ""
    body.inputs[0].replace_by(counter)
    with graph.inserting(body):
        following = emit_builtin(graph, None, "aten::add", [counter, one])
        more = emit_builtin(graph, None, "aten::lt", [following, trips])
        proceeds = emit_builtin(graph, None, "aten::__and__", [more, body.outputs[0]])
    body.add_output(following)
    body.set_output(0, proceeds)
