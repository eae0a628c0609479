"""What a tensor of a group stands for while the group is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr, parameter


class NotFusible(Exception):
    """The group has no form for these arguments: its operators run one by one."""


@dataclass(frozen=True, slots=True)
class Source:
    """An array that kernels read: a numbered place of the form, or a part of it.

    dim, start, size: the part along a dim; dim is None for the whole array.
    """

    place: int
    shape: tuple[int, ...]
    dim: int | None = None
    start: int = 0
    size: int = 0

    @property
    def name(self) -> str:
        """The parameter that stands for it in expressions: no other part has the same."""
        whole = f"x{self.place}"
        return whole if self.dim is None else f"{whole}_{self.dim}_{self.start}_{self.size}"

    def part(self, dim: int, start: int, size: int) -> Source:
        """A part of it; of size 1 along the dim, it stays as it is."""
        if self.dim is not None and self.dim != dim:
            raise NotFusible("a part of a part")
        shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
        return Source(self.place, shape, dim, self.start + start, size)

    def of(self, array: np.ndarray) -> np.ndarray:
        """The array, or its part."""
        if self.dim is None:
            return array
        where = (slice(None),) * self.dim + (slice(self.start, self.start + self.size),)
        return array[where]


class Whole:
    """A tensor that is one expression. Its shape may be larger than the expression's, which then
    broadcasts: `Tracer.covers` tells.
    """

    __slots__ = ("dtype", "expr", "shape")

    def __init__(self, expr: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.expr = expr
        self.shape = shape
        self.dtype = dtype


class Parts:
    """A tensor that consists of several along a dim."""

    __slots__ = ("dim", "dtype", "parts", "shape")

    def __init__(self, parts: Sequence[Whole], dim: int) -> None:
        first = parts[0]
        total = sum(part.shape[dim] for part in parts)
        self.parts = list(parts)
        self.dim = dim
        self.shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
        self.dtype = first.dtype

    @property
    def sizes(self) -> list[int]:
        """Those of the parts along the dim."""
        return [part.shape[self.dim] for part in self.parts]


def parts_of(symbol: Whole | Parts) -> list[Whole]:
    """The parts of a symbol; itself, if it has none."""
    return symbol.parts if isinstance(symbol, Parts) else [symbol]


def leaves(expression: Any) -> dict[str, Expr]:
    """The parameters of an expression, each once."""
    found: dict[str, Expr] = {}
    for node in nodes_of(expression):
        if node.op == "parameter":
            found[node.args[0]] = node
    return found


def nodes_of(expression: Any) -> list[Expr]:
    """All nodes of an expression, each once, operands first."""
    seen: set[int] = set()
    found: list[Expr] = []

    def visit(node: Any) -> None:
        if not isinstance(node, Expr) or id(node) in seen:
            return
        seen.add(id(node))
        if node.op not in ("parameter", "constant"):
            for part in node.args:
                visit(part)
        found.append(node)

    visit(expression)
    return found


def rebuilt(expression: Any, change: Callable[[Expr], Any], known: dict[int, Any]) -> Any:
    """The expression with nodes replaced where `change` gives something else than None."""
    if not isinstance(expression, Expr):
        return expression
    found = known.get(id(expression), expression)
    if found is not expression:
        return found
    result = change(expression)
    if result is None:
        result = expression
        if expression.op not in ("parameter", "constant"):
            args = [rebuilt(part, change, known) for part in expression.args]
            same = all(a is b for a, b in zip(args, expression.args, strict=True))
            result = expression if same else Expr(expression.op, *args)
    known[id(expression)] = result
    return result


def rebuilt_symbol(symbol: Any, change: Callable[[Expr], Any], known: dict[int, Any]) -> Any:
    """A symbol with its expressions rebuilt."""
    if isinstance(symbol, Parts):
        return Parts([rebuilt_symbol(part, change, known) for part in symbol.parts], symbol.dim)
    return Whole(rebuilt(symbol.expr, change, known), symbol.shape, symbol.dtype)


def size_written_out(expression: Any) -> int:
    """How many nodes the expression has where shared ones are written out each time."""
    sizes: dict[int, int] = {}
    for node in nodes_of(expression):
        inner = () if node.op in ("parameter", "constant") else node.args
        sizes[id(node)] = 1 + sum(sizes.get(id(part), 0) for part in inner)
    return sizes.get(id(expression), 1)


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape."""
    return tuple(np.broadcast_shapes(*shapes))


def elements(shape: tuple[int, ...]) -> int:
    """How many elements there are."""
    return prod(shape)


__all__ = ["NotFusible", "Parts", "Source", "Whole", "broadcast", "elements", "leaves", "nodes_of",
           "parameter", "parts_of", "rebuilt", "rebuilt_symbol", "size_written_out"]  # fmt: skip
