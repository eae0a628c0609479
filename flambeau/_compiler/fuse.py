"""Row formulas: expressions with reductions over a row, put into as few passes as they allow.

    @formula(x="full", weight="along", eps="number")
    def rms_norm(x, weight, eps):
        return x / sqrt(average(x * x) + eps) * weight

is traced once. A `plan` sorts what it computes into passes over the row: a reduction ends a pass,
and what needs its result runs in a later one. `row_text` writes the plan as a kernel.

Parameters are of one of these kinds:

* "full": an element for every place of every row;
* "along": an element for every place, the same for all rows (the weight of layer norm);
* "row": an element for every row; "index": the same as an integer;
* "segment": an element for every segment of a row (the channels of a group);
* "number": one number.

Results that vary along the row are full, others are one element for each row; `down(x)` adds up
over rows instead, and gives an element for every place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from flambeau._compiler.expr import Expr, parameter

KINDS = ("full", "along", "row", "index", "segment", "number")
REDUCTIONS = ("total", "amax", "amin", "product", "first")
EXPENSIVE = frozenset({"exp", "log", "log1p", "expm1", "tanh", "power"})
"""What is stored rather than computed again in a later pass."""
MARKED = frozenset({"kept"})
"""`Expr("kept", x)` is x, stored likewise: for what is expensive as a whole."""


# ---- what formulas are written with, besides the primitives of `expr`


def total(x: Any) -> Expr:
    """The sum over the row."""
    return Expr("total", x)


def amax(x: Any) -> Expr:
    """The largest element of the row; nan if there is one."""
    return Expr("amax", x)


def amin(x: Any) -> Expr:
    """The smallest element of the row; nan if there is one."""
    return Expr("amin", x)


def product(x: Any) -> Expr:
    """The product over the row."""
    return Expr("product", x)


def first(condition: Any) -> Expr:
    """The first place in the row at which a condition holds."""
    return Expr("first", condition)


def length() -> Expr:
    """How many elements a row has."""
    return Expr("length")


def position() -> Expr:
    """The place in the row, an integer."""
    return Expr("position")


def average(x: Any) -> Expr:
    """The mean over the row."""
    return total(x) / length()


def at(x: Any, place: Any) -> Expr:
    """The element at a place of the row; 0 if the row has no such place."""
    return total(Expr("where", position() == place, x, 0))


def down(x: Any) -> Expr:
    """The sum over all rows, for every place."""
    return Expr("down", x)


# ---- formulas


class Formula:
    """A function of expressions, and the kinds of its parameters."""

    def __init__(self, function: Callable[..., Any], kinds: dict[str, str]) -> None:
        names = list(inspect.signature(function).parameters)
        wrong = [kind for kind in kinds.values() if kind not in KINDS]
        if names != list(kinds) or wrong:
            raise ValueError(f"{function.__name__}: parameters {names}, kinds {kinds}")
        self.name = function.__name__
        self.function = function
        self.kinds = kinds
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<formula {self.name}>"

    def traced(self, kinds: dict[str, str | None]) -> tuple[Any, ...]:
        """The results as expressions; parameters of kind None are absent."""
        given = [None if kinds[name] is None else parameter(name) for name in self.kinds]
        results = self.function(*given)
        return results if isinstance(results, tuple) else (results,)


def formula(**kinds: str) -> Callable[[Callable[..., Any]], Formula]:
    """Make a function a row formula."""
    return lambda function: Formula(function, kinds)


# ---- plans


class Node:
    """One computation of a plan: its operands are nodes or Python numbers.

    `stage` is the number of the pass in which it can be computed: a reduction of pass p has a
    result in stage p + 1.
    """

    __slots__ = ("args", "name", "number", "op", "stage", "varies")

    def __init__(self, number: int, op: str, args: tuple[Any, ...], name: str, stage: int,
                 varies: bool) -> None:  # fmt: skip
        self.number = number
        self.op = op
        self.args = args
        self.name = name
        self.stage = stage
        self.varies = varies

    def __repr__(self) -> str:
        return f"{self.op}{self.number}"


class Plan:
    """The nodes of a formula, each once, and the passes that they fall into."""

    def __init__(self, formula: Formula, kinds: tuple[tuple[str, str | None], ...]) -> None:
        self.name = formula.name
        self.kinds = {name: kind for name, kind in kinds if kind is not None}
        self.nodes: dict[Any, Node] = {}
        self.of_expressions: dict[int, tuple[Expr, Node]] = {}  # by ids, which are theirs meanwhile
        self.results = [self._node(result) for result in formula.traced(dict(kinds))]
        self.passes = self._find_passes()
        self.kept = self._find_kept()

    # ---- nodes

    def _node(self, expression: Any) -> Any:
        if not isinstance(expression, Expr):
            return expression
        known = self.of_expressions.get(id(expression))  # shared parts are walked through once
        if known is None:
            known = expression, self._node_of(expression)
            self.of_expressions[id(expression)] = known
        return known[1]

    def _node_of(self, expression: Expr) -> Node:
        if expression.op == "parameter":
            return self._leaf("parameter", expression.args[0])
        if expression.op in ("length", "position"):
            return self._leaf(expression.op, expression.op)
        args = tuple(self._node(argument) for argument in expression.args)
        if expression.op == "total" and not _varies(args[0]):
            return self._made("multiply", (args[0], self._leaf("length", "length")))
        return self._made(expression.op, args)

    def _leaf(self, op: str, name: str) -> Node:
        kind = self.kinds[name] if op == "parameter" else op
        varies = kind in ("full", "along", "segment", "position")
        return self._known((op, name), op, (), name, 0, varies)

    def _made(self, op: str, args: tuple[Any, ...]) -> Node:
        key = (op, *[a.number if isinstance(a, Node) else (type(a), repr(a)) for a in args])
        stage = max([a.stage for a in args if isinstance(a, Node)], default=0)
        varies = any(_varies(a) for a in args)
        if op in REDUCTIONS:
            stage, varies = stage + 1, False
        return self._known(key, op, args, "", stage, varies)

    def _known(self, key: Any, op: str, args: tuple[Any, ...], name: str, stage: int,
               varies: bool) -> Node:  # fmt: skip
        if key not in self.nodes:
            self.nodes[key] = Node(len(self.nodes), op, args, name, stage, varies)
        return self.nodes[key]

    # ---- passes

    def reductions(self, stage: int) -> list[Node]:
        """The reductions that pass `stage` computes."""
        return [n for n in self.nodes.values() if n.op in REDUCTIONS and n.stage == stage + 1]

    def written(self, stage: int) -> list[tuple[int, Node]]:
        """(number of the result, node) of the full results that pass `stage` writes."""
        return [(k, n) for k, n in enumerate(self.results)
                if n.varies and n.op != "down" and n.stage == stage]  # fmt: skip

    def added_down(self, stage: int) -> list[tuple[int, Node]]:
        """(number of the result, what is added up) of the sums over rows in pass `stage`."""
        return [(k, n.args[0]) for k, n in enumerate(self.results)
                if n.op == "down" and n.stage == stage]  # fmt: skip

    def of_rows(self, stage: int) -> list[tuple[int, Node]]:
        """(number of the result, node) of the results per row that are known in `stage`."""
        return [(k, n) for k, n in enumerate(self.results)
                if not n.varies and n.op != "down" and n.stage == stage]  # fmt: skip

    def roots(self, stage: int) -> list[Node]:
        """What pass `stage` computes for every place."""
        found = [n.args[0] for n in self.reductions(stage)]
        found += [n for _, n in self.written(stage)] + [n for _, n in self.added_down(stage)]
        return found

    def _find_passes(self) -> list[int]:
        last = max((n.stage for n in self.nodes.values()), default=0)
        return [stage for stage in range(last + 1) if self.roots(stage)]

    def needed(self, stage: int) -> list[Node]:
        """The nodes that vary along the row and that pass `stage` needs; kept ones are loaded."""
        found: dict[Node, None] = {}
        waiting = list(self.roots(stage))
        while waiting:
            node = waiting.pop()
            if not _varies(node) or node in found:
                continue
            found[node] = None
            if not self.is_loaded(node, stage):
                waiting += [a for a in node.args if isinstance(a, Node)]
        return list(found)

    def is_loaded(self, node: Node, stage: int) -> bool:
        """Whether an earlier pass has stored a node."""
        return node in self.kept and self.kept[node][0] < stage

    kept: dict[Node, tuple[int, int]] = {}
    """Node -> (the pass that stores it, the number of its place)."""

    def _find_kept(self) -> dict[Node, tuple[int, int]]:
        """Nodes that are marked by `kept`, then expensive ones, that several passes need."""
        found: dict[Node, tuple[int, int]] = {}
        for ops in (MARKED, EXPENSIVE):
            self.kept = found
            seen: dict[Node, list[int]] = {}
            for stage in self.passes:
                for node in self.needed(stage):
                    if node.op in ops and node not in found:
                        seen.setdefault(node, []).append(stage)
            several = [(stages[0], node) for node, stages in seen.items() if len(stages) > 1]
            start = len(found)
            more = {node: (stage, start + k) for k, (stage, node) in enumerate(several)}
            found = {**found, **more}
        return found

    def constants(self, stage: int) -> list[Node]:
        """The nodes that are the same for the whole row, known in `stage`, in order of need."""
        wanted: dict[Node, None] = {}
        for later in self.passes:
            for node in self.needed(later):
                if node.op in REDUCTIONS or self.is_loaded(node, later):
                    continue
                for argument in node.args:
                    if isinstance(argument, Node) and not argument.varies:
                        wanted[argument] = None
        for node in self.results:
            if not node.varies and node.op != "down":
                wanted[node] = None
        return [n for n in wanted if n.stage == stage and not self._is_number(n)]

    def _is_number(self, node: Node) -> bool:
        """Whether a node is known before all rows."""
        return node.op == "length" or self.kinds.get(node.name) == "number"


def _varies(node: Any) -> bool:
    return isinstance(node, Node) and node.varies


@cache
def plan(formula: Formula, kinds: tuple[tuple[str, str | None], ...]) -> Plan:
    """The plan of a formula for parameters of these kinds (None: absent)."""
    return Plan(formula, kinds)
