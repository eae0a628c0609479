"""Functions that a size may go through whether it is a number or a symbol: `torch.sym_max`, …

Sizes are numbers here, so these are arithmetic of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from flambeau._tensor.overriding import asks

NUMBERS = (np.integer, np.floating, int, float)


@asks
def sym_int(a: Any) -> int:
    """A number without its fraction, as `int`.

    >>> import flambeau as torch
    >>> torch.sym_int(-3.7)
    -3
    """
    return int(a)


@asks
def sym_float(a: Any) -> float:
    """A number as `float`.

    >>> import flambeau as torch
    >>> torch.sym_float(3)
    3.0
    """
    return float(a)


@asks
def sym_not(a: Any) -> bool:
    """The negation of a truth value.

    >>> import flambeau as torch
    >>> torch.sym_not(True)
    False
    """
    return not a


@asks
def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, a float if one of them is.

    Raises:
        AssertionError: one is no number.

    >>> import flambeau as torch
    >>> torch.sym_max(3, 2.0)
    3.0
    """
    return _of_two(max, a, b)


@asks
def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if one of them is.

    Raises:
        AssertionError: one is no number.

    >>> import flambeau as torch
    >>> torch.sym_min(3, 2.0)
    2.0
    """
    return _of_two(min, a, b)


def _of_two(choose: Any, a: Any, b: Any) -> Any:
    for value in (a, b):
        if not isinstance(value, NUMBERS):
            raise AssertionError(f"expected {NUMBERS}, got {type(value)}")
    chosen = choose(a, b)
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


@asks
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b` is true, else `f`, which is of the same class.

    Raises:
        AssertionError: `b` is no bool, or the classes differ.

    >>> import flambeau as torch
    >>> torch.sym_ite(2 > 1, 10, 20)
    10
    """
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


@asks
def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers.

    >>> import flambeau as torch
    >>> torch.sym_sum([1, 2, 3])
    6
    """
    return sum(args)


@asks
def sym_sqrt(a: Any) -> float:
    """The square root of a number.

    >>> import flambeau as torch
    >>> torch.sym_sqrt(4)
    2.0
    """
    return math.sqrt(a)
