"""Sizes of results as expressions over the sizes of operands.

A row says what shape its result has by running on arrays without memory, for numbers. So a call is
run for several numbers in the place of each symbol, and the expression is the one that gives the
numbers which came out, all of them: no row states its shape a second time for symbols. What a call
needs of symbols (equal sizes, an even one) shows in the numbers for which it fails, and becomes a
guard; a symbol for which neither is found becomes a number, with a guard that says so.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._subclasses.fitting import Samples, fitted
from flambeau._tensor.symbolic_arrays import Layout, layout_of
from flambeau._tensor.symbolic_numbers import expression_of, is_symbolic, made
from flambeau._tensor.tensor import Tensor
from flambeau.utils._pytree import tree_leaves

ENOUGH = 4
"""Points at which simple expressions are told apart."""
MANY = 24
"""Points for expressions with several numbers in them."""
LARGE = 1 << 20
"""Numbers from here on say that there is no bound; they are part of no size."""
SCANNED = range(2, 19)
STEPS = (0, 1, 2, 3, 5, 7)
Point = dict[Any, int]


class Failed(Exception):  # noqa: N818 (it is no error)
    """A call does not run for some numbers."""


def symbols_in(values: Any) -> bool:
    """Whether there are symbols among the sizes and numbers of a call."""
    return any(is_symbolic(leaf) or (isinstance(leaf, Tensor) and layout_of(leaf._data) is not None)
               for leaf in tree_leaves(values))  # fmt: skip


def number_for(env: Any, value: Any) -> Any:
    """A number of this run in the place of a symbol."""
    return env._concrete(value.node.expr) if is_symbolic(value) else value


def expressions_in(layout: Layout) -> list[Any]:
    """The sizes, strides and offset of a layout."""
    return [expression_of(n) for n in (*layout.sizes, *layout.steps, layout.offset)]


def described(results: Any) -> tuple[tuple[Any, ...], list[int]]:
    """What results are, and the numbers in their layouts."""
    kinds: list[Any] = []
    numbers: list[int] = []
    for leaf in tree_leaves(results):
        if not isinstance(leaf, Tensor):
            kinds.append(type(leaf))
            continue
        tensor: Any = leaf
        shape, steps = tensor.shape, tensor.stride()
        kinds.append((len(shape), tensor.dtype))
        numbers += [*shape, *steps, tensor.storage_offset()]
    return tuple(kinds), numbers


class Again(Exception):  # noqa: N818 (it is no error)
    """More is known of symbols by now."""


class Repeated:
    """A call that can be run for other numbers.

    Args:
        env: the environment of the symbols.
        run: runs the call, with numbers for symbols and tensors on "meta" for fake ones; it gets a
            function that gives the number of an expression, and returns the results.
        layouts: those of the operands.
        numbers: the int arguments, symbols or not, and other symbols.
    """

    def __init__(self, env: Any, run: Callable[[Callable[[Any], Any]], Any],
                 layouts: list[Layout], numbers: list[Any]) -> None:  # fmt: skip
        self.env = env
        self.run = run
        self.layouts = layouts
        self.floats = [n for n in numbers if not isinstance(n, int)]
        ints = [n for n in numbers if isinstance(n, int)]
        self.numbers = [n for n in ints if is_symbolic(n) or abs(n) < LARGE]
        self.random = random.Random(0)
        self.seen: dict[tuple[int, ...], Any] = {}
        self._read()

    def _read(self) -> None:
        """What operands are made of, in the terms of today."""
        replace = self.env.replace
        self.sizes = [[replace(expression_of(n)) for n in layout.sizes] for layout in self.layouts]
        self.steps = [[replace(e) for e in expressions_in(layout)[len(layout.sizes):]]
                      for layout in self.layouts]  # fmt: skip
        self.given = [replace(expression_of(number)) for number in self.numbers]
        atoms = [*sum(self.sizes, []), *sum(self.steps, []), *self.given]
        self.atoms = list(dict.fromkeys(atoms))
        everything = [*self.atoms, *map(replace, map(expression_of, self.floats))]
        symbols = set().union(*[expr.free_symbols for expr in everything])
        self.symbols = sorted(symbols, key=self.env._facts.order.__getitem__)
        self.hint: Point = {symbol: self.env._number_of(symbol) for symbol in self.symbols}
        self.relations = [
            one for one in map(replace, self.env._facts.relations) if one.free_symbols <= symbols
        ]

    # ---- points

    def observe(self, point: Point) -> list[int]:
        """The numbers in the layouts of the results.

        Raises:
            Failed: there are none, or the results are others than in this run.
        """
        key = tuple([point[symbol] for symbol in self.symbols])
        if key not in self.seen:
            try:
                self.seen[key] = described(self.run(lambda expr: self.value(expr, point)))
            except Exception:  # whatever an operator says of sizes that it does not take
                self.seen[key] = None
        found = self.seen[key]
        if found is None or found[0] != self.kinds:
            raise Failed
        return found[1]  # type: ignore[no-any-return]

    def value(self, expr: Any, point: Point) -> Any:
        """The number of an expression at a point."""
        from flambeau._tensor.symbolic_functions import evaluate

        return evaluate(self.env.replace(expr), point)

    def is_possible(self, point: Point) -> bool:
        """Whether what is known of symbols allows for numbers, and sizes stay such as they are."""
        for symbol, number in point.items():
            low, high = self.env.var_to_range[symbol]
            if not low <= number <= high:
                return False
        if not all(self.value(relation, point) for relation in self.relations):
            return False
        return all(self._alike(self.value(expr, self.hint), self.value(expr, point))
                   for expr in sum(self.sizes, []))  # fmt: skip

    @staticmethod
    def _alike(now: int, then: int) -> bool:
        return then >= min(now, 2) and (now > 1 or then == now)

    def drawn(self) -> Iterator[Point]:
        """Random points."""
        limit = 14 if len(self.symbols) < ENOUGH else 8
        for _ in range(400):
            point = {}
            for symbol, hint in self.hint.items():
                near = min(hint, 64)
                choices = (self.random.randrange(2, limit), near + self.random.choice(STEPS),
                           near * self.random.choice((1, 2, 3)))  # fmt: skip
                point[symbol] = self.random.choice(choices)
            if self.is_possible(point):
                yield point

    def samples(self, count: int) -> Samples:
        """Points at which the call runs, with what came of it.

        Raises:
            Failed: there are too few.
        """
        found: dict[tuple[int, ...], Point] = {}
        failures: list[Point] = []
        outcomes = [self.observe(self.hint)]
        found[tuple(self.hint.values())] = self.hint
        for point in self.drawn():
            if len(found) > count or len(failures) > 3 * count:
                break
            if tuple(point.values()) in found:
                continue
            try:
                outcomes.append(self.observe(point))
            except Failed:
                failures.append(point)
                continue
            found[tuple(point.values())] = point
        samples = Samples(list(found.values()), outcomes)
        if failures and self._explain(samples, failures):
            raise Again
        if len(found) <= min(count, ENOUGH) or len(failures) > count:
            raise Failed
        return samples

    def _explain(self, samples: Samples, failures: list[Point]) -> bool:
        """Whether there was a condition to be found that holds where the call runs, and only there;
        it is a guard from now on."""
        if len(samples.points) < ENOUGH:
            return False
        for condition in self._conditions(samples):
            known = [self.value(condition, point) for point in failures]
            if not any(known) and all(self.value(condition, point) for point in samples.points):
                self.decide(condition)
                return True
        return False

    def _conditions(self, samples: Samples) -> Iterator[Any]:
        """What calls need most often: that a size can be divided, that one is no smaller."""
        import sympy

        samples.prepare(self)
        divisors = [*samples.constants, *[sympy.Integer(n) for n in (2, 3, 4)]]
        divisors += [one * two for one in samples.constants for two in samples.constants]
        for above in (*samples.atoms, *samples.products):
            if not above.is_number:
                for divisor in [*divisors, *[e for e in self.given if not e.is_number]]:
                    if self.value(divisor, self.hint) > 1:
                        yield sympy.Eq(sympy.Mod(above, divisor), 0)
        for one in samples.atoms:
            for two in samples.atoms:
                if one != two:
                    yield one <= two

    # ---- what a call needs

    def scan(self, symbol: Any) -> dict[int, bool]:
        """For numbers in the place of one symbol: whether the call runs."""
        found = {}
        for number in sorted({*SCANNED, self.hint[symbol]}):
            point = {**self.hint, symbol: number}
            if self.is_possible(point):
                found[number] = self.works(point)
        return found

    def works(self, point: Point) -> bool:
        """Whether the call runs at a point."""
        try:
            self.observe(point)
        except Failed:
            return False
        return True

    def need(self) -> None:
        """Guards for what a call needs of the symbols."""
        before = len(self.env._facts.relations)
        for symbol in self.symbols:
            condition = self._condition(symbol)
            if condition is None:
                continue
            if condition is False:
                condition = self._tie(symbol)
            if condition is not None:
                self.decide(condition)
                return
        if len(self.env._facts.relations) == before:
            self.specialize(self.symbols[-1])

    def _condition(self, symbol: Any) -> Any:
        """What a call needs of one symbol alone: a condition, None (nothing), False (unclear)."""
        import sympy

        found = self.scan(symbol)
        good = [number for number, works in found.items() if works]
        if len(good) == len(found) > 1:
            return None
        step = math.gcd(*good)
        if len(good) > 1 and step > 1 and all(n in good for n in found if n % step == 0):
            return sympy.Eq(sympy.Mod(symbol, step), 0)
        if len(good) > 1 and all(n in good for n in found if n >= good[0]):
            return symbol >= good[0]
        if len(good) > 1 and all(n in good for n in found if n <= good[-1]):
            return symbol <= good[-1]
        return False

    def _tie(self, symbol: Any) -> Any:
        """An equality that lets a symbol vary together with others, or the number that it is."""
        import sympy

        for one in self.atoms:
            for two in self.atoms:
                if symbol in one.free_symbols and self._may_be_equal(one, two):
                    equality = sympy.Eq(one, two)
                    if self._lets_vary(equality):
                        return equality
        return sympy.Eq(symbol, self.hint[symbol])

    def _may_be_equal(self, one: Any, two: Any) -> bool:
        if one == two or two.is_number:
            return False
        return bool(self.value(one, self.hint) == self.value(two, self.hint))

    def _lets_vary(self, equality: Any) -> bool:
        """Whether the call runs for all numbers under an equality."""
        tied = sorted(equality.free_symbols, key=self.symbols.index)
        solutions = self.env._facts._solved(equality.lhs - equality.rhs)
        if not solutions:
            return False
        solved, expr = solutions[0]
        count = 0
        for number in (self.hint[tied[0]] + step for step in (1, 2, 3, 4)):
            point = {**self.hint, **{s: number for s in tied if s != solved}}
            point[solved] = self.value(expr, point)
            if self.is_possible(point):
                if not self.works(point):
                    return False
                count += 1
        return count > 1

    def decide(self, condition: Any) -> None:
        """A condition that holds in this run, as a guard."""
        if any(symbol in self.env.unbacked for symbol in condition.free_symbols):
            self.env.guard_or_defer_runtime_assert(condition, "")
        else:
            self.env._decide(condition)
        self.seen.clear()
        self._read()

    def specialize(self, symbol: Any) -> None:
        """A symbol is the number that it is in this run."""
        import sympy

        self.decide(sympy.Eq(symbol, self.hint[symbol]))

    # ---- results

    def expressions(self, results: Any) -> list[Any]:
        """The sizes, strides and offsets of results, which are as in this run, as expressions."""
        self.kinds, numbers = described(results)
        while self.symbols:
            try:
                return self._fitted(numbers)
            except Failed:
                self.need()
            except Again:
                continue
        import sympy

        return [sympy.Integer(number) for number in numbers]

    def _fitted(self, numbers: list[int]) -> list[Any]:
        known: list[Any] = [None] * len(numbers)
        for count in (ENOUGH, MANY):
            samples = self.samples(count)
            if count == MANY:
                samples = self._with_scans(samples)
            samples.prepare(self)
            self._fill(known, samples, count == MANY)
            if all(expr is not None for expr in known):
                return known
        open_ones = [place for place, expr in enumerate(known) if expr is None]
        self.specialize(self._most_involved(open_ones))
        return self._fitted(numbers) if self.symbols else known_numbers(numbers)

    def _with_scans(self, samples: Samples) -> Samples:
        points, outcomes = list(samples.points), list(samples.outcomes)
        for symbol in self.symbols:
            for number in sorted({*range(2, 40)}):
                point = {**self.hint, symbol: number}
                if self.is_possible(point) and self.works(point):
                    points.append(point)
                    outcomes.append(self.observe(point))
        return Samples(points, outcomes)

    def _most_involved(self, places: list[int]) -> Any:
        """A symbol on which numbers without expression depend."""
        at_hint = self.observe(self.hint)
        for symbol in reversed(self.symbols):
            for number in SCANNED:
                point = {**self.hint, symbol: number}
                if self.is_possible(point) and self.works(point):
                    there = self.observe(point)
                    if any(there[place] != at_hint[place] for place in places):
                        return symbol
        return self.symbols[-1]

    def _fill(self, known: list[Any], samples: Samples, thoroughly: bool) -> None:
        place = 0
        for kind in self.kinds:
            if isinstance(kind, type):
                continue
            rank = kind[0]
            for index in range(place, place + rank):
                if known[index] is None:
                    known[index] = fitted(samples, index, thoroughly)
            sizes = known[place : place + rank]
            for index in range(place + rank, place + 2 * rank + 1):
                if known[index] is None:
                    known[index] = fitted(samples, index, thoroughly,
                                          [size for size in sizes if size is not None])  # fmt: skip
            place += 2 * rank + 1


def known_numbers(numbers: list[int]) -> list[Any]:
    """Numbers as expressions."""
    import sympy

    return [sympy.Integer(number) for number in numbers]


def layouts(env: Any, kinds: Any, expressions: list[Any]) -> list[Layout | None]:
    """The layouts of results, of their expressions; sizes that may be 1 or 0 are decided on."""
    found: list[Layout | None] = []
    place = 0
    for kind in kinds:
        if isinstance(kind, type):
            found.append(None)
            continue
        rank = kind[0]
        for expr in expressions[place : place + rank]:
            _settle(env, expr)
        numbers = [made(env, env.replace(expr), int)
                   for expr in expressions[place : place + 2 * rank + 1]]  # fmt: skip
        found.append(Layout(tuple(numbers[:rank]), tuple(numbers[rank:-1]), numbers[-1]))
        place += 2 * rank + 1
    return found


def _settle(env: Any, expr: Any) -> None:
    import sympy

    if expr.is_number or any(symbol in env.unbacked for symbol in expr.free_symbols):
        return
    for number in (1, 0):
        if env._decide(sympy.Eq(expr, number)):
            return
