"""Both operands broadcast at once, by accident: [n, 1] and [n] give [n, n]."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._tensor.tensor import Tensor
from flambeau.debug.advice.base import Call, Topic, kind
from flambeau.debug.advice.origins import Origin
from flambeau.debug.advice.rows import is_elementwise, is_pairwise, is_reduction

ON_PURPOSE = frozenset((
    "unsqueeze", "view", "expand", "permute", "unflatten", "arange", "index", "as_strided",
))  # fmt: skip
"""Operators that give a tensor its shape: who calls them knows it."""


class Spread(NamedTuple):
    """A result that is larger than both of its operands."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    shape: tuple[int, ...]
    line: Any


class BroadcastTwice(Topic):
    """`pred - target` with shapes [n, 1] and [n]: n x n differences, where n were meant."""

    title = "both operands broadcast"

    def wants(self, name: str) -> bool:
        """Operators of two operands that broadcast."""
        return is_pairwise(name)

    def operator(self, call: Call) -> None:
        """Look at the shapes, and whether somebody wanted them."""
        left, right = call.values[:2]
        if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
            return
        shapes = left._data.shape, right._data.shape
        size = accidental(*shapes)
        if not size or any(wanted(origin) for origin in call.origins[:2]):
            return
        count = (*shapes[0][:-1], size) if len(shapes[0]) > len(shapes[1]) else shapes[1][:-1]
        shape = (*count[: max(map(len, shapes)) - 1], size)
        if call.origin is not None and call.origin.shape == shape:
            call.origin.spread = Spread(*shapes, shape, call.line)
        column = "the first" if len(shapes[0]) > len(shapes[1]) else "the second"
        text = (f"{call.name} of {kind(left)} and {kind(right)} makes {list(shape)}: every element "
                f"with every other")  # fmt: skip
        flat = f"{column} operand as {[size]}: .squeeze(-1), or .flatten()"
        better = f"{flat}\nif all pairs are meant, say so: a[:, None] and b[None, :]"
        self.add(call.line, text, better, 1, call.seconds)


def accidental(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """n for shapes [n, 1] and [n] in either order, else 0. Two matrices, [n, 1] and [1, n], were
    brought to that form by somebody."""
    short, long = sorted((left, right), key=len)
    if len(short) != 1 or len(long) != 2 or long[1] != 1:  # noqa: PLR2004
        return 0
    return short[0] if short[0] == long[0] > 1 else 0


def wanted(origin: Origin | None) -> bool:
    """Whether an operand was given its shape on purpose, by `x[:, None]` or `keepdim=True`."""
    while origin is not None:
        if origin.name in ON_PURPOSE:
            return True
        if not (is_elementwise(origin.name) or is_pairwise(origin.name)):
            return is_reduction(origin.name) and len(origin.shape) > 1
        origin = origin.first
    return False


class ReducedBroadcast(Topic):
    """`(pred - target).square().mean()` of such a result: one number, and a wrong one."""

    title = "a reduction of a broadcast"
    operators = ("*",)

    def operator(self, call: Call) -> None:
        """Hand on that a tensor came of a broadcast; speak when it is reduced to one number."""
        origin, first = call.origin, call.origins[0] if call.origins else None
        if first is None or first.spread is None or origin is None:
            return
        spread = first.spread
        if origin.shape == spread.shape:
            origin.spread = origin.spread or spread
            return
        if not is_reduction(call.name) or origin.shape:
            return
        number = spread.shape[-1]
        text = (f"{call.name}() without dim over {list(spread.shape)}, which {list(spread.left)} "
                f"and {list(spread.right)} became in line {spread.line.number}: "
                f"{number * number:,} elements, where {number:,} were there")  # fmt: skip
        better = (f"give both operands the shape {[number]} in line {spread.line.number}\n"
                  "and name the dim of a reduction: a wrong shape is an error then")  # fmt: skip
        self.add(call.line, text, better, 1, call.seconds)
