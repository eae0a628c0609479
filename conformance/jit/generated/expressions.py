"""Expressions, drawn while the program runs: each has its text, its type, and a value.

What raises an error is drawn again, so that a program passes at least with the first arguments.
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Parameter

from . import arguments, operators
from .operators import Operator

MOST_ELEMENTS = 20_000
MOST_DIMS = 5
TRIES = 6
RANDOM = frozenset(
    """rand_like randn_like rand randn bernoulli dropout feature_dropout alpha_dropout rrelu
    randint_like randint randperm normal multinomial poisson""".split()
)


@dataclass(frozen=True, slots=True)
class Expr:
    """Something in the program that has a value."""

    text: str
    type: T.Type
    value: Any


class Refused(Exception):
    """Nothing of the kind could be drawn here."""


@dataclass(frozen=True, slots=True)
class Taste:
    """What a program is rather made of."""

    everyday: float
    vocabulary: tuple[Operator, ...]
    loops: float
    writes: float
    depth: int


def sane(value: Any) -> bool:
    """Whether a value is of a size that one can go on with."""
    if arguments.is_tensor(value):
        return _sane_tensor(value)
    if isinstance(value, (list, tuple)):
        return len(value) <= 64 and all(map(sane, value))
    if isinstance(value, dict):
        return len(value) <= 64 and all(map(sane, value.values()))
    if isinstance(value, int):
        return abs(value) < 2**62
    return not isinstance(value, str) or len(value) < 200


def _sane_tensor(value: Any) -> bool:
    if value.dim() > MOST_DIMS or value.numel() > MOST_ELEMENTS:
        return False
    return str(value.layout) == "torch.strided" and value.device.type == "cpu"


class Expressions:
    """A program's names, what they hold now, and expressions of them."""

    def __init__(self, drawn: random.Random, taste: Taste) -> None:
        self.random = drawn
        self.taste = taste
        self.env: dict[str, Any] = {"torch": flambeau, "F": flambeau.nn.functional, "math": math}
        self.types: dict[str, T.Type] = {}
        self.unused: set[str] = set()
        self.locals: list[Operator] = []  # helper functions and parts of the module
        self.written: list[str] = []  # lines of the block that is drawn
        self.counter = 0
        self.fixed: set[str] = set()  # counters that end loops
        self.pools: dict[Any, list[Operator]] = {}
        self.like: Any = None  # the value that is to be replaced
        self.tame: int | None = None  # how many of the numbers are drawn; the last ones are odd

    # ---- names

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def new_name(self, stem: str = "v") -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def define(self, name: str, type: T.Type, value: Any) -> Expr:
        """Note a variable."""
        self.env[name] = value
        self.types[name] = type
        self.unused.add(name)
        return Expr(name, type, value)

    def names_of(self, type: T.Type) -> list[str]:
        """The variables of a type, last ones last."""
        return [name for name, known in self.types.items() if known == type]

    def variable(self, type: T.Type, fits: Callable[[Any], bool] | None = None) -> Expr:
        """A variable, rather a late one and one that is not used yet."""
        names = self.names_of(type)
        if fits is None and type == T.TENSOR and self.chance(0.8):
            fits = self._suits
        if fits is not None:
            names = [name for name in names if fits(self.value_of(name))]
        if not names:
            raise Refused(f"no {type}")
        return self.picked(names, type)

    def picked(self, names: list[str], type: T.Type) -> Expr:
        """One of some variables."""
        fresh = [name for name in names if name in self.unused]
        late = names[-3:] if self.chance(0.5) else names
        pool = fresh[-4:] if fresh and self.chance(0.5) else late
        name = self.random.choice(pool)
        self.unused.discard(name)
        return Expr(name, type, self.value_of(name))

    def _suits(self, value: Any) -> bool:
        """Whether a tensor is like what is to be made, or at least of numbers."""
        if self.like is None:
            return bool(value.is_floating_point())
        return value.dtype == self.like.dtype and arguments.broadcasts(value, self.like)

    def value_of(self, name: str) -> Any:
        """What a variable, an element or an attribute holds now."""
        if name in self.env:
            return self.env[name]
        try:
            return eval(name, self.env)  # noqa: S307
        except Exception as error:  # noqa: BLE001  # what it is part of has changed
            raise Refused(str(error)) from None

    # ---- evaluation

    def evaluated(self, text: str, type: T.Type, given: Iterable[Expr] = ()) -> Expr:
        """The expression `text`, whose placeholders are other expressions."""
        given = list(given)
        names = [f"_{index}" for index in range(len(given))]
        self.env.update(zip(names, [e.value for e in given], strict=True))
        try:
            value = eval(text.format(*names), self.env)  # noqa: S307
        except (MemoryError, RecursionError):
            raise Refused("too large") from None
        except Exception as error:  # noqa: BLE001  # whatever the library refuses
            raise Refused(str(error)) from None
        if not sane(value) or not _is_of(value, type):
            raise Refused("not sane")
        return Expr(text.format(*[_part(e.text, text) for e in given]), type, value)

    # ---- expressions

    def expression(self, type: T.Type, depth: int | None = None) -> Expr:
        """Any expression of a type."""
        depth = self.taste.depth if depth is None else depth
        unused = set(self.unused)
        for _ in range(TRIES):
            try:
                return self._attempt(type, depth)
            except Refused:
                self.unused = set(unused)
        return self.simple(type)

    def _attempt(self, type: T.Type, depth: int) -> Expr:
        if depth <= 0 or (type != T.TENSOR and self.chance(0.4)):
            return self.simple(type)
        return self.called(self.operator(type), depth)

    def simple(self, type: T.Type) -> Expr:
        """A variable or a constant."""
        share = 0.93 if type == T.TENSOR else 0.6
        if self.chance(share) or type not in arguments.LITERALS:
            try:
                return self.variable(type)
            except Refused:
                pass
        literal = arguments.LITERALS.get(type)
        if literal is None:
            raise Refused(f"no {type}")
        return literal(self)

    def operator(self, type: T.Type) -> Operator:
        """An operator that gives a type and writes to nothing."""
        choice = self.random.random()
        if self.locals and choice < 0.15:
            source = "locals"
        elif choice < 0.4:
            source = "python"
        elif choice < 0.4 + self.taste.everyday * 0.6:
            source = "vocabulary"
        else:
            source = "catalogue"
        pool = self._pool(source, type)
        if not pool:
            raise Refused(f"nothing gives {type}")
        return self.random.choices(pool, [operator.weight for operator in pool])[0]

    def _pool(self, source: str, type: T.Type) -> list[Operator]:
        key = (source, type, len(self.locals))
        if key not in self.pools:
            every: Iterable[Operator] = {
                "locals": self.locals, "python": operators.python(),
                "vocabulary": self.taste.vocabulary, "catalogue": operators.catalogue(),
            }[source]  # fmt: skip
            self.pools[key] = [o for o in every if not o.writes and o.result == type]
        return self.pools[key]

    def called(self, operator: Operator, depth: int = 1) -> Expr:
        """A call of an operator with arguments that it takes."""
        given: list[Expr] = []
        words: list[tuple[Parameter, Expr]] = []
        for parameter in operator.schema.arguments:
            if not arguments.is_given(self, operator, parameter):
                continue
            found = arguments.argument(self, operator, parameter, given, depth)
            given.append(found)
            words.append((parameter, found))
        return self.evaluated(self._text(operator, words), operator.result, given)

    def _text(self, operator: Operator, words: list[tuple[Parameter, Expr]]) -> str:
        """The call with placeholders; what may only be given by name is, and what follows it."""
        text = self.random.choice(operator.texts)
        if "{more}" not in text:
            return text
        by_name = False
        parts = []
        skipped = iter(operator.schema.arguments)
        start = text.count("{}")
        for index, (parameter, _) in enumerate(words):
            while next(skipped) is not parameter:
                by_name = True
            by_name = by_name or parameter.keyword_only or parameter.name == "alpha"
            if index >= start:
                parts.append(f"{parameter.name}={{{index}}}" if by_name else f"{{{index}}}")
        head = text.replace("{}", "{0}", 1)
        return head.replace("{more}", ", ".join(parts))


def _part(text: str, whole: str) -> str:
    """An expression as part of another one, in brackets where it needs them."""
    node = ast.parse(text.strip(), mode="eval").body
    if isinstance(node, ast.UnaryOp) and "({" in whole:
        return text
    simple = not isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.UnaryOp))
    return text if simple else f"({text})"


KINDS = {T.INT: int, T.FLOAT: float, T.BOOL: bool, T.STRING: str}


def _is_of(value: Any, type: T.Type) -> bool:
    if type == T.TENSOR:
        return arguments.is_tensor(value)
    kind = KINDS.get(type)
    if kind is None:
        return True
    if kind is int and isinstance(value, bool):
        return False
    return isinstance(value, kind)
