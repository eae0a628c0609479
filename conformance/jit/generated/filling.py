"""Results written to tensors that are there: `torch.add(x, y, out=z)`, also to several at once.

A script names each place (`torch.max(x, 0, max=v, max_values=i)`), Python takes them as one tuple;
`Eager` is torch for programs in the first spelling that run without a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import flambeau
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Parameter

from . import arguments, operators
from .expressions import Expr, Refused
from .operators import Operator
from .statements import PLACES, Statements

FITTING = ("torch.zeros({0}, dtype={1})", "torch.ones({0}, dtype={1})",
           "torch.zeros({0}, dtype={1}).t()")  # fmt: skip
SIZES = (*FITTING, "torch.empty([0], dtype={1})", "torch.zeros({2}, dtype={1})")
SIZE_WEIGHTS = (6, 2, 1, 1, 0.3)


class Filling(Statements):
    """Statements with `out=`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.env["torch"] = Eager(flambeau)

    def kinds(self) -> list[tuple[Callable[[], None], float]]:
        return [*super().kinds(), (self.fill, 4.0 * self.taste.writes)]

    def fill(self) -> None:
        """A call that writes its results to what is there or was made for it."""
        operator = self._filler()
        targets = operators.outputs(operator.schema)
        words = self._inputs(operator, targets)
        detached = self.chance(0.5)
        block = not detached and self.chance(0.6)
        with flambeau.no_grad() if block else nullcontext():
            values = self._values(operator, words, detached)
            if len(values) != len(targets):
                raise Refused("another number of results")
            words += [(p, self._target(v, detached)) for p, v in zip(targets, values, strict=True)]
            found = self._call(operator, words, detached)
        self._note(found, operator, block)

    def _filler(self) -> Operator:
        several = self.chance(0.25)
        known = [op for op in operators.filling() if _is_several(op) == several]
        everyday = [op for op in known if op.name in operators.EVERYDAY]
        return self.random.choice(everyday if self.chance(0.7) else known)

    def _inputs(self, operator: Operator,
                targets: tuple[Parameter, ...]) -> list[tuple[Parameter, Expr]]:  # fmt: skip
        given: list[Expr] = []
        words: list[tuple[Parameter, Expr]] = []
        for parameter in operator.schema.arguments:
            if parameter in targets or not arguments.is_given(self, operator, parameter):
                continue
            found = arguments.argument(self, operator, parameter, given, 1)
            given.append(found)
            words.append((parameter, found))
        return words

    def _values(self, operator: Operator, words: list[tuple[Parameter, Expr]],
                detached: bool) -> list[Any]:  # fmt: skip
        """What is to be written."""
        value = self._call(operator, words, detached).value
        return list(value) if isinstance(value, tuple) else [value]

    def _call(self, operator: Operator, words: list[tuple[Parameter, Expr]],
              detached: bool) -> Expr:  # fmt: skip
        parts = [Expr(f"{e.text}.detach()", e.type, e.value.detach())
                 if detached and e.type == T.TENSOR and e.text.isidentifier() else e
                 for _, e in words]  # fmt: skip
        return self.evaluated(self._text(operator, words), T.ANY, parts)

    def _target(self, value: Any, detached: bool) -> Expr:
        """A tensor for a result: a variable, a part of one, or a new one."""
        if not arguments.is_tensor(value):
            raise Refused("no tensor")

        def fits(other: Any) -> bool:
            return bool(other.shape == value.shape and other.dtype == value.dtype)

        if self.chance(0.6):
            names = [n for n in self.names_of(T.TENSOR) if fits(self.value_of(n))]
            if names:
                return self.picked(names, T.TENSOR)
        if self.chance(0.5):
            for _ in range(4):
                place = self._place()
                if fits(place.value):
                    return place
        return self._new_target(value, detached)

    def _place(self) -> Expr:
        target = self.variable(T.TENSOR)
        index = arguments.a_place(self, operators.python()[0], _INDEX, [target])
        return self.evaluated(self.random.choice(PLACES), T.TENSOR, [target, index])

    def _new_target(self, value: Any, detached: bool) -> Expr:
        known = len(FITTING) if detached else None  # a view that grows leaves its tensor
        form = self.random.choices(SIZES[:known], SIZE_WEIGHTS[:known])[0]
        sizes = list(value.shape)
        if form.endswith(".t()"):
            sizes = sizes[::-1]
        other = [*sizes[:-1], 2] if sizes else [1]
        made = self.evaluated(form.format(sizes, value.dtype, other), T.TENSOR)
        name = self.new_name("o")
        self.line(f"{name} = {made.text}")
        return self.define(name, T.TENSOR, made.value)

    def _note(self, found: Expr, operator: Operator, block: bool) -> None:
        text = found.text
        if self.chance(0.25):
            values = found.value if isinstance(found.value, tuple) else (found.value,)
            names = [self.new_name() for _ in values]
            text = f"{', '.join(names)} = {text}"
            for name, value in zip(names, values, strict=True):
                self.define(name, T.TENSOR, value)
        if block:
            self.line("with torch.no_grad():")
        self.line("    " * block + text)


_INDEX = Parameter("index", T.INT)


def _is_several(operator: Operator) -> bool:
    return len(operators.outputs(operator.schema)) > 1


class Eager:
    """torch, whose functions take each place for a result by its own name."""

    def __init__(self, space: Any, path: str = "") -> None:
        self._space = space
        self._path = path

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._space, name)
        if name in ("linalg", "special", "fft"):
            return Eager(found, f"{name}_")
        places = _places().get(self._path + name)
        return found if places is None else _gathering(found, places)


def _gathering(function: Callable[..., Any], places: list[tuple[str, ...]]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        names = next((names for names in places if kwargs.keys() >= set(names)), ())
        if names:
            kwargs["out"] = tuple(kwargs.pop(name) for name in names)
        return function(*args, **kwargs)

    return called


@cache
def _places() -> dict[str, list[tuple[str, ...]]]:
    """The names of places, by the function's name."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for operator in filter(_is_several, operators.filling()):
        names = tuple(p.name for p in operators.outputs(operator.schema))
        found.setdefault(operator.name, []).append(names)
    return found
