"""How much memory texts and lists take, in bytes, before an operator makes them.

Only operators are listed whose results may be far larger than what they are given. What tensors
take is seen where they take it: `jit.run.memory`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.jit.ir.function import FunctionSchema

Estimate = Callable[..., int]


def _times(items: Any, count: Any) -> int:
    if isinstance(items, int):
        items, count = count, items
    return 8 * len(items) * max(0, count)


def _replaced(text: str, old: str, new: str, most: int) -> int:
    found = text.count(old) if old else len(text) + 1
    return len(text) + (found if most < 0 else min(found, most)) * len(new)


def _width(text: str, width: int, *rest: Any) -> int:
    return width


SIZES: dict[str, Estimate] = {
    "aten::mul.left_t": _times, "aten::mul.right_": _times, "aten::mul_.t": _times,
    "prim::rangelist": lambda n: 8 * n,
    "aten::center": _width, "aten::ljust": _width, "aten::rjust": _width, "aten::zfill": _width,
    "aten::expandtabs": lambda text, size: len(text) + text.count("\t") * max(0, size),
    "aten::replace": _replaced,
    "aten::join": lambda text, parts: sum(map(len, parts)) + len(text) * len(parts),
}  # fmt: skip
"""By full name or name."""

GROWTH: dict[str, Estimate] = {
    "aten::append": lambda items, item: 8, "aten::insert": lambda items, place, item: 8,
    "aten::extend": lambda items, more: 8 * len(more),
    "aten::add_.t": lambda items, more: 8 * len(more),
    "aten::_set_item": lambda table, key, item: 100 if isinstance(table, dict) else 0,
}  # fmt: skip
"""How many bytes a list or dictionary grows by."""


def estimate_of(schema: FunctionSchema) -> Estimate | None:
    """The estimate of an operator; None for one whose results are about as large as its inputs."""
    return SIZES.get(schema.full_name) or SIZES.get(schema.name)


def growth_of(schema: FunctionSchema) -> Estimate | None:
    """By how much an operator lets its first argument grow; None for one that does not."""
    return GROWTH.get(schema.full_name) or GROWTH.get(schema.name)


def listed(tensor: Any) -> int:
    """The lists that a tensor becomes, with their numbers."""
    return tensor.numel() * LISTED_NUMBER  # type: ignore[no-any-return]


LISTED_NUMBER = 40
"""Bytes of a number of a list, and of its place there."""
