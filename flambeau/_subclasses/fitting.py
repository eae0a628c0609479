"""Expressions that give the numbers which came out of a call at several points."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

MOST_FACTORS = 5
MOST_PARTS = 8
DIVISORS = range(2, 65)


class Samples:
    """Points (numbers for symbols), and the numbers that came out at each.

    After `prepare`: `columns`, the values at the points of every expression that is looked at.
    """

    def __init__(self, points: list[dict[Any, int]], outcomes: list[list[int]]) -> None:
        self.points = points
        self.outcomes = outcomes
        self.columns: dict[Any, np.ndarray] = {}

    def prepare(self, call: Any) -> None:
        """Look at what a call is made of."""
        self.call = call
        self.symbols = call.symbols
        self.sizes = list(dict.fromkeys(sum(call.sizes, [])))
        self.atoms = call.atoms
        self.constants = [expr for expr in self.atoms if expr.is_Integer and expr > 1]
        self.products = self._products()

    def _products(self) -> list[Any]:
        found = []
        for sizes in self.call.sizes:
            some = sizes[:MOST_FACTORS]
            for count in range(2, len(some) + 1):
                found += [products(part) for part in itertools.combinations(some, count)]
        return list(dict.fromkeys(found))

    def column(self, expr: Any) -> np.ndarray:
        """The values of an expression at the points."""
        if expr not in self.columns:
            values = [self.call.value(expr, point) for point in self.points]
            self.columns[expr] = np.array(values, dtype=np.int64)
        return self.columns[expr]


def products(parts: Any) -> Any:
    """The product of expressions, multiplied out."""
    import sympy

    return sympy.expand(sympy.Mul(*parts))


def fitted(samples: Samples, place: int, thoroughly: bool, sizes: Any = None) -> Any:
    """An expression for the numbers at one place of the outcomes; None if none is found.

    Args:
        samples: the points and outcomes.
        place: the place in each outcome.
        thoroughly: whether also expressions are tried that take many points to tell apart.
        sizes: for strides and offsets: the sizes of the result.
    """
    import sympy

    wanted = np.array([outcome[place] for outcome in samples.outcomes], dtype=np.int64)
    if (wanted == wanted[0]).all():
        return sympy.Integer(int(wanted[0]))
    for expr in _simple(samples, sizes):
        if (samples.column(expr) == wanted).all():
            return expr
    for find in (_quotient, _polynomial, _bounded, _rounded) if thoroughly else (_quotient,):
        found = find(samples, wanted)
        if found is not None:
            return found
    return None


def _simple(samples: Samples, sizes: Any) -> Iterator[Any]:
    """What results are most often: a size, a product of sizes, the same with a stride."""
    yield from samples.atoms if sizes is None else ()
    if sizes is not None:
        some = sizes[-MOST_FACTORS:]
        for count in range(1, len(some) + 1):
            for part in itertools.combinations(some, count):
                yield products(part)
        yield from samples.atoms
    yield from samples.products
    for one, two in itertools.combinations_with_replacement(samples.atoms[:MOST_PARTS], 2):
        yield products((one, two))
        yield one + two
    if sizes is not None:
        for one in samples.atoms:
            for two in sizes:
                yield products((one, two))


def _quotient(samples: Samples, wanted: np.ndarray) -> Any:
    """A product of sizes over a number or another one."""
    from flambeau._tensor.symbolic_functions import FloorDiv

    below = [*samples.constants, *[e for e in samples.atoms if not e.is_number]]
    pairs = itertools.combinations_with_replacement(samples.constants[:MOST_PARTS], 2)
    below += [products(pair) for pair in pairs]
    for above in (*samples.atoms, *samples.products):
        if above.is_number:
            continue
        values = samples.column(above)
        for divisor in below:
            by = samples.column(divisor)
            if (by > 0).all() and (values // by == wanted).all() and (values % by == 0).all():
                return FloorDiv(above, divisor)
    return None


def _polynomial(samples: Samples, wanted: np.ndarray) -> Any:
    """A sum of products of symbols with whole numbers before them."""
    import sympy

    for degree in (1, 2, 3):
        terms: list[Any] = [sympy.Integer(1)]
        for count in range(1, degree + 1):
            several = itertools.combinations_with_replacement(samples.symbols, count)
            terms += [sympy.Mul(*part) for part in several]
        if len(terms) + 3 > len(samples.points):
            return None
        matrix = np.stack([samples.column(term) for term in terms], axis=1)
        factors = np.linalg.lstsq(matrix.astype(np.float64), wanted.astype(np.float64))[0]
        whole = np.rint(factors).astype(np.int64)
        if (matrix @ whole == wanted).all():
            return sympy.Add(*[int(n) * term for n, term in zip(whole, terms, strict=True)])
    return None


def _bounded(samples: Samples, wanted: np.ndarray) -> Any:
    """The smaller or the larger of two sizes."""
    import sympy

    for one, two in itertools.combinations(samples.atoms, 2):
        pair = samples.column(one), samples.column(two)
        if (np.minimum(*pair) == wanted).all():
            return sympy.Min(one, two)
        if (np.maximum(*pair) == wanted).all():
            return sympy.Max(one, two)
    return None


def _rounded(samples: Samples, wanted: np.ndarray) -> Any:
    """A multiple of a size and a number, over another number: what windows leave of a size."""
    for size in [*samples.sizes, *samples.atoms]:
        values = samples.column(size)
        if size.is_number or not _is_function(values, wanted):
            continue
        found = _line(size, values, wanted)
        if found is not None:
            return found
    return None


def _is_function(values: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether equal sizes have equal results."""
    order = np.lexsort((wanted, values))
    same = values[order][1:] == values[order][:-1]
    return bool((wanted[order][1:][same] == wanted[order][:-1][same]).all())


def _line(size: Any, values: np.ndarray, wanted: np.ndarray) -> Any:
    from flambeau._tensor.symbolic_functions import FloorDiv

    for divisor in DIVISORS:
        step = _rise(divisor, values, wanted)
        if step is None:
            continue
        low = int((divisor * wanted - step * values).max())
        high = int((divisor * wanted - step * values).min()) + divisor - 1
        if low <= high and len(set((values % divisor).tolist())) == divisor:
            return FloorDiv(step * size + low, divisor)
    return None


def _rise(divisor: int, values: np.ndarray, wanted: np.ndarray) -> int | None:
    """By how much results grow when a size grows by so much."""
    by_value = dict(zip(values.tolist(), wanted.tolist(), strict=True))
    for value, result in by_value.items():
        if value + divisor in by_value:
            return int(by_value[value + divisor] - result)
    return None
