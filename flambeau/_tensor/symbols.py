"""Functions that a size may go through whether it is a number or a symbol: `torch.sym_max`, …

Symbols are numbers of `symbolic_numbers.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from flambeau._tensor.overriding import asks
from flambeau._tensor.symbolic_numbers import SymFloat, expression_of, is_symbolic, made

NUMBERS = (np.integer, np.floating, int, float)


@asks
def sym_int(a: Any) -> int:
    """A number without its fraction, as `int`.

    >>> import flambeau as torch
    >>> torch.sym_int(-3.7)
    -3
    """
    return a.__sym_int__() if is_symbolic(a) else int(a)


@asks
def sym_float(a: Any) -> float:
    """A number as `float`.

    >>> import flambeau as torch
    >>> torch.sym_float(3)
    3.0
    """
    return a.__sym_float__() if is_symbolic(a) else float(a)


@asks
def sym_not(a: Any) -> bool:
    """The negation of a truth value.

    >>> import flambeau as torch
    >>> torch.sym_not(True)
    False
    """
    return a.__sym_not__() if is_symbolic(a) else not a


@asks
def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, a float if one of them is.

    Raises:
        AssertionError: one is no number.

    >>> import flambeau as torch
    >>> torch.sym_max(3, 2.0)
    3.0
    """
    return _of_two("max", a, b)


@asks
def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if one of them is.

    Raises:
        AssertionError: one is no number.

    >>> import flambeau as torch
    >>> torch.sym_min(3, 2.0)
    2.0
    """
    return _of_two("min", a, b)


def _of_two(word: str, a: Any, b: Any) -> Any:
    for value in (a, b):
        if not isinstance(value, NUMBERS):
            raise AssertionError(f"expected {NUMBERS}, got {type(value)}")
    if is_symbolic(a) or is_symbolic(b):
        return _of_symbols(word, a, b)
    chosen = (max if word == "max" else min)(a, b)
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


def _of_symbols(word: str, a: Any, b: Any) -> Any:
    import sympy

    if isinstance(a, float) or isinstance(b, float):
        a, b = sym_float(a), sym_float(b)
    env = (a if is_symbolic(a) else b).node.shape_env
    one, two = expression_of(a), expression_of(b)
    expr = sympy.Max(one, two) if word == "max" else sympy.Min(one, two)
    function = sym_max if word == "max" else sym_min
    return made(env, expr, float if isinstance(a, float) else int, (function, (a, b)))


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
    if t.__class__ is not f.__class__:
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    if not is_symbolic(b):
        return t if b else f
    from flambeau._tensor import symbolic_rules

    expr = symbolic_rules.chosen(b.node.expr, expression_of(t), expression_of(f))
    kind = bool if isinstance(t, bool) else type(t) if not is_symbolic(t) else t.node.pytype
    return made(b.node.shape_env, expr, kind, (sym_ite, (b, t, f)))


@asks
def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers.

    >>> import flambeau as torch
    >>> torch.sym_sum([1, 2, 3])
    6
    """
    args = list(args)
    symbols = [value for value in args if is_symbolic(value)]
    if not symbols or any(isinstance(value, SymFloat) for value in args):
        return sum(args)
    import sympy

    expr = sympy.Add(*map(expression_of, args))
    return made(symbols[0].node.shape_env, expr, int, (sym_sum, (args,)))


@asks
def sym_sqrt(a: Any) -> float:
    """The square root of a number.

    >>> import flambeau as torch
    >>> torch.sym_sqrt(4)
    2.0
    """
    if not is_symbolic(a):
        return math.sqrt(a)
    from flambeau._tensor import symbolic_rules

    expr = symbolic_rules.root(a.node.expr, a.node.pytype)
    return made(a.node.shape_env, expr, float, (sym_sqrt, (a,)))  # type: ignore[no-any-return]
