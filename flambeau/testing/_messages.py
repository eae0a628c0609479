"""What `assert_close` says about values that differ, in PyTorch's words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops


class Mismatch(Exception):
    """A difference: the class and text of the error to raise, and the keys that lead to it."""

    def __init__(self, kind: type[Exception], text: str, path: tuple[Any, ...]) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.path = path

    def error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error for the user, whose own text is `msg` or what `msg` makes of this one."""
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.path:
            keys = "".join(f"[{key!r}]" for key in self.path)
            text += f"\n\nThe failure occurred for item {keys}"
        return self.kind(text if msg is None else msg(text))


def _headline(what: str, rtol: float, atol: float) -> str:
    return f"{what} are not {'close' if rtol or atol else 'equal'}!"


def _line(kind: str, difference: Any, where: Any, allowed: str) -> str:
    if where is None:
        return f"{kind.title()} difference: {difference}{allowed}"
    return f"Greatest {kind} difference: {difference} at index {where}{allowed}"


def _allowed(tolerance: float, rtol: float, atol: float) -> str:
    return f" (up to {tolerance} allowed)" if rtol or atol else ""


def scalars_differ(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    """The text for two numbers."""
    difference = abs(actual - expected)
    relative = math.inf if expected == 0 else difference / abs(expected)
    return "\n".join(
        (
            _headline("Scalars", rtol, atol),
            "",
            f"Expected {expected} but got {actual}.",
            _line("absolute", difference, None, _allowed(atol, rtol, atol)),
            _line("relative", relative, None, _allowed(rtol, rtol, atol)),
        )
    )


def tensors_differ(actual: Any, expected: Any, matches: Any, rtol: float, atol: float) -> str:
    """The text for two tensors of one dtype and shape; `matches` says where they are close."""
    count = matches.numel()
    wrong = count - int(matches.sum())
    share = f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:
        place = _plain(np.argwhere(~matches._data)[0])
        detail = f"The first mismatched element is at index {place}."
        return f"Tensor-likes are not 'equal'!\n\n{share}\n{detail}"
    lines = [_headline("Tensor-likes", rtol, atol), "", share]
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.to(dt.int64), expected.to(dt.int64)
    absolute = ops.abs(actual - expected)
    relative = absolute / ops.abs(expected)
    for kind, differences, tolerance in (
        ("absolute", absolute, atol),
        ("relative", relative, rtol),
    ):
        greatest, where = _greatest(differences, matches)
        lines.append(_line(kind, greatest, where, _allowed(tolerance, rtol, atol)))
    return "\n".join(lines)


def _greatest(differences: Any, matches: Any) -> tuple[Any, tuple[int, ...]]:
    """The greatest difference among elements that do not match, and its index."""
    flat = ops.where(matches, ops.zeros_like(differences), differences).flatten()
    value, place = ops.max(flat, 0)
    return value.item(), _plain(np.unravel_index(int(place), matches.shape))


def _plain(index: Any) -> tuple[int, ...]:
    return tuple(int(place) for place in index)
