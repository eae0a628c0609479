"""Row formulas as NumPy functions: one call for each node of the plan, temporaries reused in place.

    formula_of_arrays(softmax)(axis, x)

Arrays are of shapes that broadcast: full ones have all dims, what there is one of for each row has
a 1 where the row lies. Sums over rows (`down`) go over all other dims.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np

from flambeau._compiler.fuse import Formula, Node, Plan, plan
from flambeau._compiler.numpy_source import _literal, _log1p
from flambeau._compiler.primitives import PRIMITIVES


def _amax(values: Any, axis: int, keepdims: Literal[True]) -> Any:
    """The largest of each row; -inf of those without elements."""
    if values.shape[axis]:
        return np.maximum.reduce(values, axis=axis, keepdims=keepdims)
    return np.full_like(np.add.reduce(values, axis=axis, keepdims=keepdims), -np.inf)


def _amin(values: Any, axis: int, keepdims: Literal[True]) -> Any:
    """The smallest of each row; inf of those without elements."""
    if values.shape[axis]:
        return np.minimum.reduce(values, axis=axis, keepdims=keepdims)
    return np.full_like(np.add.reduce(values, axis=axis, keepdims=keepdims), np.inf)


REDUCED = {"total": np.add.reduce, "product": np.multiply.reduce, "amax": _amax, "amin": _amin,
           "first": np.argmax}  # fmt: skip
ASKING = frozenset(
    "equal not_equal less less_equal greater greater_equal isnan isinf isfinite logical_and "
    "logical_or logical_not".split()
)
"""What gives bools, which cannot lie where their operands were."""


@cache
def formula_of_arrays(formula: Formula, *absent: str) -> Callable[..., Any]:
    """`function(axis, *arrays)`, with None for the parameters that are absent; a tuple where the
    formula has several results."""
    kinds = tuple((n, None if n in absent else kind) for n, kind in formula.kinds.items())
    text = render(plan(formula, kinds), list(formula.kinds))
    scope: dict[str, Any] = {f"_{name}": function for name, function in PRIMITIVES.items()}
    scope |= {f"_{name}": function for name, function in REDUCED.items()}
    scope |= {"_log1p": _log1p, "_position": _position, "_down": _down}
    filename = f"<flambeau numpy {formula.name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), scope)
    return scope[formula.name]  # type: ignore[no-any-return]


def _position(full: np.ndarray, axis: int) -> np.ndarray:
    """The place in the row, as an array that broadcasts."""
    shape = [1] * full.ndim
    shape[axis] = -1
    return np.arange(full.shape[axis]).reshape(shape)


def _down(values: np.ndarray, axis: int) -> np.ndarray:
    """The sum over all rows, in double precision."""
    others = tuple(k for k in range(values.ndim) if k != axis % values.ndim)
    return np.add.reduce(values, others, np.float64)


def render(plan: Plan, names: list[str]) -> str:
    """The text of the function."""
    nodes = _in_order(plan)
    lines = [f"def {plan.name}(axis, {', '.join(names)}):"]
    texts = _Texts(plan.kinds)
    last = _last_uses(nodes, plan.results)
    for number, node in enumerate(nodes):
        line = texts.line(node, [a for a in node.args if last.get(a) == number])
        if line:
            lines.append(f"    {line}")
    results = [texts.of(result) for result in plan.results]
    return "\n".join([*lines, f"    return {', '.join(results)}", ""])


def _in_order(plan: Plan) -> list[Node]:
    """The nodes that results need, each after its operands."""
    found: dict[Node, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, Node) and node not in found:
            for argument in node.args:
                visit(argument)
            found[node] = None

    for result in plan.results:
        visit(result)
    return list(found)


def _last_uses(nodes: list[Node], results: list[Any]) -> dict[Any, int]:
    """Node -> the number of the node that is the last to use it; results are used for ever."""
    found = {a: k for k, node in enumerate(nodes) for a in node.args if isinstance(a, Node)}
    return {node: k for node, k in found.items() if node not in results}


class _Texts:
    """The names that hold what nodes compute."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self.kinds = kinds
        self.like = next(name for name, kind in kinds.items() if kind == "full")
        self.names: dict[Node, str] = {}
        self.full: set[Any] = set()  # nodes that have all dims
        self.numbers: set[Any] = set()  # Python's own, which leave arrays their type
        self.own: set[Node] = set()  # those of them that are in memory of the function's own

    def of(self, value: Any) -> str:
        """The name or literal that holds a value."""
        return self.names[value] if isinstance(value, Node) else _literal(value)

    def line(self, node: Node, free: list[Any]) -> str:
        """The line that computes a node, in the memory of an operand that is `free` from here on;
        none for parameters."""
        if node.op == "parameter":
            self.names[node] = node.name
            if self.kinds[node.name] == "full":
                self.full.add(node)
            if self.kinds[node.name] == "number":
                self.numbers.add(node)
            return ""
        operands = ", ".join(self.of(a) for a in node.args)
        name = self.names[node] = f"t{len(self.names)}"
        return f"{name} = {self._call(node, operands, free)}"

    def _call(self, node: Node, operands: str, free: list[Any]) -> str:
        if node.op == "length":
            return f"{self.like}.shape[axis]"
        if node.op == "position":
            return f"_position({self.like}, axis)"
        if node.op == "down":
            return f"_down({operands}, axis)"
        if node.op in REDUCED:
            return f"_{node.op}({operands}, axis=axis, keepdims=True)"
        if all(a in self.numbers or not isinstance(a, Node) for a in node.args):
            self.numbers.add(node)
            return f"float(_{node.op}({operands}))"
        if not self.full.isdisjoint(node.args):
            self.full.add(node)
        return f"_{node.op}({operands}{self._target(node, free)})"

    def _target(self, node: Node, free: list[Any]) -> str:
        """`out=` of an operand, where that is possible."""
        function = PRIMITIVES[node.op]
        if node not in self.full or node.op in ASKING or node.op == "log1p":
            return ""
        if not isinstance(function, np.ufunc):
            return ""
        self.own.add(node)
        place = next((a for a in free if a in self.own), None)
        return "" if place is None else f", out={self.names[place]}"
