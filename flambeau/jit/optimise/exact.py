"""When two values may share what was made for one of them: only if no program can tell them apart.

`==` is not enough: -0.0 equals 0.0 and True equals 1, but 1/x and x's type differ; NaN equals
nothing, itself included. Every table of forms, constants or plans is asked by `exact` keys.
"""

from __future__ import annotations

import math
from typing import Any


def exact(value: Any) -> Any:
    """A key that two values share only if they are of one type and the same to the last bit."""
    kind = value.__class__
    if kind is float:
        # Equal floats have the same bits, zeros apart; a NaN is found as text.
        return (kind, value) if value and value == value else (kind, _odd(value))
    if kind is complex:
        return kind, exact(value.real), exact(value.imag)
    if kind is list or kind is tuple:
        return (kind, *[exact(item) for item in value])
    return kind, value


def _odd(value: float) -> str:
    """A zero or a NaN, its sign included, as text."""
    sign = "-" if math.copysign(1.0, value) < 0 else "+"
    return f"{sign}{value!r}"
