"""Whether two outcomes of a call are the same: results with strides, gradients, words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from conformance.autograd.generated.comparing import Difference, _plainly
from conformance.autograd.generated.observing import Line, Outcome, Seen
from conformance.jit.generated.comparing import compare_arrays

LIMITS = {
    "float64": 1e-11, "complex128": 1e-11, "float32": 2e-5, "complex64": 2e-5, "bfloat16": 2.5e-2,
    "float16": 4e-3,
}  # fmt: skip
"""How far values may be apart, in parts of the largest."""

CANCELLED = 1e-2
"""Gradients smaller than this part of a program's numbers are what is left of such."""


REFUSED = re.compile(
    "not implemented for|does not support automatic differentiation|Unsupported memory format"
    "|view size is not compatible|index 0 out of range for tensor of size .0."
    "|object of type 'float' has no len"
)
"""What PyTorch says where it has no code for what works here (docs/compatibility.md)."""
ANY_OF = re.compile("Found an invalid max index")
"""What is said of any of several wrong elements."""


def difference(mine: Outcome, other: Outcome) -> Difference | None:
    """The first difference; `other` is what should be."""
    least = CANCELLED * max(_largest(list(line.values.values())) for line in other.lines)
    for index, (one, two) in enumerate(zip(mine.lines, other.lines, strict=True)):
        found = _lines(one, two, index, least)
        if found is not None or two.error:
            return found
    return None


def _lines(mine: Line, other: Line, index: int, least: float) -> Difference | None:
    if REFUSED.search(other.said) and not mine.error:
        return None
    if mine.error != other.error:
        told = f"{mine.error}: {mine.said} for {other.error}: {other.said}"
        return Difference(_error_kind(mine, other), told, (index,))
    if _plainly(mine.said) != _plainly(other.said) and not ANY_OF.search(other.said):
        return Difference("words of an error", f"{mine.said!r} for {other.said!r}", (index,))
    for name, value in other.values.items():
        found = _values(mine.values[name], value, (index, name), max(_largest(value), least))
        if found is not None:
            return found
    if mine.warned != other.warned:
        return Difference("warnings", f"{mine.warned} for {other.warned}", (index,))
    return None


def _error_kind(mine: Line, other: Line) -> str:
    if not other.error:
        return f"raises {mine.error}"
    if not mine.error:
        return f"does not raise {other.error}"
    return f"raises {mine.error} for {other.error}"


def _largest(value: Any) -> float:
    """The largest number in what a statement gave: what cancels is as exact as that."""
    if isinstance(value, list):
        return max((_largest(item) for item in value), default=0.0)
    if not isinstance(value, Seen) or value.values.dtype.kind not in "fc":
        return 0.0
    sizes = np.abs(value.values[np.isfinite(value.values)])
    return float(sizes.max(initial=0.0))


def _values(mine: Any, other: Any, place: tuple[Any, ...], largest: float) -> Difference | None:
    if isinstance(mine, Seen) and isinstance(other, Seen):
        return _tensors(mine, other, place, largest)
    if isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        pairs = zip(mine, other, strict=True)
        found = (_values(one, two, (*place, i), largest) for i, (one, two) in enumerate(pairs))
        return next((one for one in found if one is not None), None)
    if type(mine) is type(other) and mine == other:
        return None
    return Difference("other value", f"{mine!s:.200} for {other!s:.200}", place)


FIELDS = ("dtype", "shape", "requires_grad", "is_leaf")


def _tensors(mine: Seen, other: Seen, place: tuple[Any, ...], largest: float) -> Difference | None:
    gradient = place[1][0] == "g"
    what = " of a gradient" if gradient else ""
    for field in FIELDS[: 2 if gradient else 4]:
        one, two = getattr(mine, field), getattr(other, field)
        if one != two:
            return Difference(field + what, f"{one} for {two}", place)
    size = compare_arrays(mine.values, other.values, signs=False)
    if gradient and largest:
        size *= max(_largest(other), 1e-30) / largest
    if size > LIMITS.get(other.dtype, 0.0):
        told = f"{mine.values.tolist()!s:.300} for {other.values.tolist()!s:.300}"
        return Difference("values" + what, told, place, size)
    if not gradient and _strides(mine) != _strides(other):
        told = f"{mine.stride} for {other.stride}, {mine.shape}"
        return Difference("stride", told, place)
    return None


def _strides(value: Seen) -> list[int]:
    """The strides that mean something."""
    if 0 in value.shape:
        return []
    return [step for step, size in zip(value.stride, value.shape, strict=True) if size > 1]
