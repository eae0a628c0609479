"""Guards as conditions in Python on inputs, and whether they hold for some."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
from sympy.printing.str import StrPrinter

from flambeau._tensor import symbolic_arrays
from flambeau._tensor.symbolic_functions import INFINITY
from flambeau._tensor.symbolic_numbers import expression_of, is_symbolic
from flambeau._tensor.tensor import Tensor


class _Python(StrPrinter):  # type: ignore[misc]
    """Expressions as Python, with what stands for each symbol."""

    def __init__(self, names: dict[Any, str]) -> None:
        super().__init__()
        self.names = names

    def _print_Symbol(self, expr: Any) -> str:
        return self.names.get(expr, str(expr))

    def _infix(self, expr: Any, word: str) -> str:
        return f"({self.doprint(expr.args[0])} {word} {self.doprint(expr.args[1])})"

    def _print_Equality(self, expr: Any) -> str:
        return self._infix(expr, "==")

    def _print_Unequality(self, expr: Any) -> str:
        return self._infix(expr, "!=")

    def _print_Mod(self, expr: Any) -> str:
        return self._infix(expr, "%")

    def _print_FloorDiv(self, expr: Any) -> str:
        return self._infix(expr, "//")

    def _print_IntTrueDiv(self, expr: Any) -> str:
        return self._infix(expr, "/")

    _print_FloatTrueDiv = _print_IntTrueDiv

    def _print_FloatPow(self, expr: Any) -> str:
        return self._infix(expr, "**")

    def _called(self, function: str, expr: Any) -> str:
        return f"{function}({', '.join(map(self.doprint, expr.args))})"

    def _print_Max(self, expr: Any) -> str:
        return self._called("max", expr)

    def _print_Min(self, expr: Any) -> str:
        return self._called("min", expr)

    def _print_ToFloat(self, expr: Any) -> str:
        return self._called("float", expr)

    def _print_TruncToInt(self, expr: Any) -> str:
        return self._called("int", expr)

    def _print_OpaqueUnaryFn_sqrt(self, expr: Any) -> str:
        return self._called("math.sqrt", expr)

    def _print_Where(self, expr: Any) -> str:
        condition, one, other = map(self.doprint, expr.args)
        return f"({one} if {condition} else {other})"

    def _print_And(self, expr: Any) -> str:
        return "(" + " and ".join(map(self.doprint, expr.args)) + ")"

    def _print_Or(self, expr: Any) -> str:
        return "(" + " or ".join(map(self.doprint, expr.args)) + ")"

    def _print_Not(self, expr: Any) -> str:
        return f"(not {self.doprint(expr.args[0])})"


def _quantities(placeholder: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Everything of an input that may be a symbol, as Python has it."""
    if not isinstance(placeholder, Tensor):
        yield name, placeholder
        return
    layout = symbolic_arrays.layout_of(placeholder._data)
    if layout is None:
        layout = symbolic_arrays.Layout(tuple(placeholder.shape), placeholder.stride())
    for dim, size in enumerate(layout.sizes):
        yield f"{name}.size()[{dim}]", size
    for dim, step in enumerate(layout.steps):
        yield f"{name}.stride()[{dim}]", step
    yield f"{name}.storage_offset()", layout.offset


def conditions(env: Any, placeholders: Sequence[Any], names: Sequence[str], ignore_static: bool
               ) -> list[str]:  # fmt: skip
    """All that was decided, as conditions in Python."""
    found = [pair for placeholder, name in zip(placeholders, names, strict=True)
             for pair in _quantities(placeholder, name)]  # fmt: skip
    places = _places(env, found)
    printer = _Python(places)
    texts = []
    for text, value in found:
        raw = value.node._expr if is_symbolic(value) else None
        if raw is None and ignore_static:
            continue
        expr = expression_of(value) if raw is None else env.replace(raw)
        if places.get(expr) != text and not (raw is not None and places.get(raw) == text):
            texts.append(f"{text} == {printer.doprint(expr)}")
    texts += [_unwrapped(printer.doprint(guard.expr)) for guard in env.guards]
    for symbol, place in places.items():
        low, high = env.var_to_range.get(symbol, (-INFINITY, INFINITY))
        texts += [f"{low} <= {place}"] if low != -INFINITY else []
        texts += [f"{place} <= {high}"] if high != INFINITY else []
    return list(dict.fromkeys(texts))


def _places(env: Any, found: list[tuple[str, Any]]) -> dict[Any, str]:
    """Where each symbol is found first, also those that turned out to be something else."""
    places: dict[Any, str] = {}
    for text, value in found:
        if not is_symbolic(value):
            continue
        for expr in (value.node._expr, env.replace(value.node._expr)):
            if expr.is_Symbol:
                places.setdefault(expr, text)
    return places


def _unwrapped(text: str) -> str:
    return text if text.startswith("(") or " and " not in text else f"({text})"


def holds(code: str, args: Sequence[Any]) -> bool:
    """Whether a condition holds for inputs."""
    names = {f"t{number}": value for number, value in enumerate(args)}
    return bool(eval(code, {"L": names, "math": math}))  # noqa: S307 (our own text)


def bound(env: Any, placeholders: Sequence[Any], args: Sequence[Any]) -> dict[Any, int]:
    """The numbers of symbols for inputs in the place of fake ones."""
    numbers: dict[Any, int] = {}
    for placeholder, value in zip(placeholders, args, strict=True):
        pairs = zip(_quantities(placeholder, "x"), _quantities(value, "x"), strict=True)
        for (_, symbol), (_, number) in pairs:
            expr = symbol.node._expr if is_symbolic(symbol) else sympy.Integer(symbol)
            if expr.is_Symbol:
                numbers.setdefault(expr, number)
    return numbers
