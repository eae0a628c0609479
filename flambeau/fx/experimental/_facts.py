"""What is known of symbols: relations that hold, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
from sympy.core.relational import Relational

from flambeau._tensor.symbolic_functions import INFINITY, Bounds, bounds, decided

MIRRORED = {sympy.Gt: sympy.Lt, sympy.Ge: sympy.Le}
TIGHTENING = (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)


def negated(condition: Any) -> Any:
    """The opposite of a condition."""
    return sympy.Not(condition)


def canonical(condition: Any) -> Any:
    """A relation in one of its ways of being written: `a <= b` for `b >= a`."""
    if isinstance(condition, Relational) and condition.func in MIRRORED:
        return MIRRORED[condition.func](condition.rhs, condition.lhs)
    return condition


class Facts:
    """Relations between symbols that hold, with the ranges and the replacements that they imply."""

    def __init__(self) -> None:
        self.ranges: dict[Any, Bounds] = {}
        self.replacements: dict[Any, Any] = {}
        self.relations: dict[Any, None] = {}
        self.numbers: dict[Any, Any] = {}  # of expressions, such as remainders
        self.order: dict[Any, int] = {}

    def add_symbol(self, symbol: Any, low: Any, high: Any = INFINITY) -> None:
        """A new symbol, between two numbers."""
        self.order[symbol] = len(self.order)
        self.ranges[symbol] = low, high

    def replace(self, expr: Any) -> Any:
        """An expression without symbols that are known to be something else."""
        symbols = getattr(expr, "free_symbols", ())
        while not self.replacements.keys().isdisjoint(symbols):
            expr = expr.xreplace(self.replacements)
            symbols = expr.free_symbols
            expr = expr.doit() if isinstance(expr, Relational) else expr
        return expr

    def known(self, condition: Any) -> bool | None:
        """Whether a condition is known to hold (True) or not to hold (False); else None."""
        condition = canonical(self.replace(condition))
        if self.numbers and isinstance(condition, Relational):
            condition = canonical(condition.xreplace(self.numbers).doit())
        if condition is sympy.true or condition is sympy.false:
            return condition is sympy.true
        if condition in self.relations:
            return True
        if canonical(negated(condition)) in self.relations:
            return False
        if isinstance(condition, (sympy.And, sympy.Or)):
            return self._known_of_several(condition)
        return decided(condition, self.ranges)

    def _known_of_several(self, condition: Any) -> bool | None:
        parts = [self.known(part) for part in condition.args]
        decisive = isinstance(condition, sympy.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive

    def add(self, condition: Any) -> None:
        """A condition that holds from now on."""
        condition = canonical(self.replace(condition))
        if isinstance(condition, sympy.And):
            for part in condition.args:
                self.add(part)
            return
        self.relations[condition] = None
        for implied in _implied(condition):
            self.relations[implied] = None
        if isinstance(condition, sympy.Eq):
            if condition.rhs.is_number and not condition.lhs.is_Symbol:
                self.numbers[condition.lhs] = condition.rhs
            self._unify(condition.lhs, condition.rhs)
        elif isinstance(condition, TIGHTENING):
            self._tighten(condition)

    def _unify(self, one: Any, two: Any) -> None:
        """One of two equal things becomes the other, if it is a symbol: the younger one."""
        pairs = [(a, b) for a, b in ((one, two), (two, one))
                 if a.is_Symbol and a not in b.free_symbols]  # fmt: skip
        if not pairs:
            pairs = self._solved(one - two)
        if pairs:
            symbol, expr = max(pairs, key=lambda pair: self.order.get(pair[0], -1))
            if expr.is_Symbol:
                lows, highs = zip(self.ranges[symbol], self.ranges[expr], strict=True)
                self.ranges[expr] = max(lows), min(highs)
            self.replacements[symbol] = expr

    def _solved(self, difference: Any) -> list[tuple[Any, Any]]:
        """A symbol that a difference of zero decides on: it stands there alone, with 1 or -1."""
        found = []
        difference = sympy.expand(difference)
        for symbol in difference.free_symbols:
            factor = difference.coeff(symbol, 1)
            rest = sympy.expand(difference - factor * symbol)
            if factor in (1, -1) and symbol not in rest.free_symbols:
                found.append((symbol, -rest / factor))
        return found

    def _tighten(self, condition: Any) -> None:
        """`2*s0 <= 9` bounds the range of s0."""
        difference = sympy.expand(condition.lhs - condition.rhs)  # < 0 or <= 0
        strict = int(isinstance(condition, sympy.Lt))
        for symbol in difference.free_symbols:
            factor = difference.coeff(symbol, 1)
            rest = difference - factor * symbol
            if not factor.is_Integer or factor == 0 or symbol in sympy.expand(rest).free_symbols:
                continue
            low, high = self.ranges.get(symbol, (-INFINITY, INFINITY))
            least = bounds(sympy.expand(rest), self.ranges)[0]
            if abs(least) == INFINITY:
                continue
            limit = -(least + strict)  # factor * symbol <= limit
            if factor > 0:
                high = min(high, limit // factor)
            else:
                low = max(low, -(limit // -factor))
            self.ranges[symbol] = low, high


def _implied(condition: Any) -> Iterator[Any]:
    """What a strict relation says besides."""
    if isinstance(condition, sympy.Lt):
        yield sympy.Le(condition.lhs, condition.rhs)
        yield sympy.Ne(condition.lhs, condition.rhs)
        yield sympy.Ne(condition.rhs, condition.lhs)
    elif isinstance(condition, (sympy.Eq, sympy.Ne)):
        yield condition.func(condition.rhs, condition.lhs)
