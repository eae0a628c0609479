"""Expressions as lines of the kernel language, with types: what one step of a loop computes.

The types are those of NumPy's rules: every parameter enters in the type that the row computes in
(half types in f32), comparisons give booleans, Python numbers take the type beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr
from flambeau._compiler.types import Scalar, b8, bf16, boolean, f16, f32, f64, i16, i32, i64

HALVES = (f16, bf16)
LETTERS = {"float": "f", "int": "i", "uint": "u", "bool": "b"}
INTEGER_OF = {16: i16, 32: i32, 64: i64}


class NoForm(Exception):
    """This expression has no form in the kernel language: NumPy computes it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A piece of text and its type; None is the type of a Python number. `wide`: W lanes."""

    text: str
    type: Scalar | None
    wide: bool = False


# Primitive -> {letters of the kinds it is defined for: text}. {0}, {1}, {2} are the operands, {T}
# is their type, {I} the integer type of as many bits, {bits} how many these are.
SAME: dict[str, dict[str, str]] = {
    "add": {"fiu": "{0} + {1}", "b": "{0} | {1}"},
    "subtract": {"fiu": "{0} - {1}"},
    "multiply": {"fiu": "{0} * {1}", "b": "{0} & {1}"},
    "divide": {"f": "{0} / {1}"},
    "negative": {"fiu": "-{0}"},
    "positive": {"fiub": "{0}"},
    "kept": {"fiub": "{0}"},
    "conjugate": {"fiub": "{0}"},
    "absolute": {"fiu": "absolute({0})", "b": "{0}"},
    "square": {"fiu": "{0} * {0}"},
    "reciprocal": {"f": "1.0 / {0}"},
    "inverse": {"f": "1.0 / {0}"},
    "sqrt": {"f": "sqrt({0})"},
    "inverse_root": {"f": "1.0 / sqrt({0})"},
    "floor": {"f": "floor({0})"},
    "ceil": {"f": "ceil({0})"},
    "trunc": {"f": "trunc({0})"},
    "rint": {"f": "rint({0})"},
    "floor_floats": {"f": "floor({0})", "iu": "{0}"},
    "ceil_floats": {"f": "ceil({0})", "iu": "{0}"},
    "trunc_floats": {"f": "trunc({0})", "iu": "{0}"},
    "rint_floats": {"f": "rint({0})", "iu": "{0}"},
    "maximum": {"fiu": "maximum({0}, {1})", "b": "{0} | {1}"},
    "minimum": {"fiu": "minimum({0}, {1})", "b": "{0} & {1}"},
    "fmax": {"f": "select(({0} >= {1}) | is_nan({1}), {0}, {1})", "iu": "larger({0}, {1})"},
    "fmin": {"f": "select(({0} <= {1}) | is_nan({1}), {0}, {1})", "iu": "smaller({0}, {1})"},
    "copysign": {"f": "copysign({0}, {1})"},
    "sign_of": {"fi": "select({0} > 0, {T}(1), select({0} < 0, {T}(-1), {T}(0)))",
                "u": "select({0} > 0, {T}(1), {T}(0))", "b": "{0}"},
    "sgn": {"fi": "select({0} > 0, {T}(1), select({0} < 0, {T}(-1), {T}(0)))",
            "u": "select({0} > 0, {T}(1), {T}(0))", "b": "{0}"},
    "bitwise_and": {"iub": "{0} & {1}"},
    "bitwise_or": {"iub": "{0} | {1}"},
    "bitwise_xor": {"iub": "{0} ^ {1}"},
    "invert": {"iub": "~{0}"},
    "left_shift": {"i": "select(({1} >= 0) & ({1} < {bits}), {0} << {1}, 0)",
                   "u": "select({1} < {bits}, {0} << {1}, 0)"},
    "right_shift": {"i": "select(({1} >= 0) & ({1} < {bits}), {0} >> {1}, {0} >> ({bits} - 1))",
                    "u": "select({1} < {bits}, {0} >> {1}, 0)"},
    "heaviside_step": {"fiu": "select({0} == 0, {1}, {T}({0} > 0))"},
    "lerp": {"f": "select(absolute({2}) < 0.5, {0} + {2} * ({1} - {0}), "
                  "{1} - ({1} - {0}) * (1.0 - {2}))"},
}  # fmt: skip
"""Primitives whose result has the operands' type."""

ASKS: dict[str, dict[str, str]] = {
    "equal": {"fiub": "{0} == {1}"},
    "not_equal": {"fiub": "{0} != {1}"},
    "less": {"fiub": "{0} < {1}"},
    "less_equal": {"fiub": "{0} <= {1}"},
    "greater": {"fiub": "{0} > {1}"},
    "greater_equal": {"fiub": "{0} >= {1}"},
    "logical_and": {"fiu": "({0} != 0) & ({1} != 0)", "b": "{0} & {1}"},
    "logical_or": {"fiu": "({0} != 0) | ({1} != 0)", "b": "{0} | {1}"},
    "logical_xor": {"fiu": "({0} != 0) ^ ({1} != 0)", "b": "{0} ^ {1}"},
    "logical_not": {"fiu": "{0} == 0", "b": "~{0}"},
    "isnan": {"f": "is_nan({0})"},
    "isinf": {"f": "absolute({0}) == INF"},
    "isfinite": {"f": "absolute({0}) < INF"},
    "signbit": {"f": "cast({I}, {0}) < 0", "i": "{0} < 0"},
}
"""Primitives whose result is a boolean."""

COSTS = {"divide": 2, "sqrt": 2, "inverse": 2, "inverse_root": 4, "reciprocal": 2}
MATH_COST = 8
"""What a primitive costs beside the loads and stores of its operands, in additions."""


def functions() -> dict[str, Any]:
    """The functions of `vector_math`, by the names of the primitives."""
    try:
        from flambeau._compiler.vector_math import VECTOR_MATH
    except ImportError:
        return {}
    return VECTOR_MATH


class Lines:
    """The lines that compute expressions; equal subexpressions are computed once."""

    def __init__(self, compute: Scalar, parameters: dict[str, Term]) -> None:
        self.compute = f32 if compute in HALVES else boolean if compute is b8 else compute
        self.halves = compute in HALVES
        self.parameters = parameters
        self.lines: list[tuple[str, str, Scalar]] = []  # name, text, type
        self.known: dict[Any, Term] = {}
        self.of_expressions: dict[int, tuple[Expr, Term]] = {}  # by ids, which are theirs meanwhile
        self.used: dict[str, Any] = {}  # functions of `vector_math`
        self.cost = 0

    def term(self, node: Any) -> Term:
        """The term that holds a node's value."""
        if not isinstance(node, Expr):
            return constant(node)
        if node.op == "parameter":
            return self.parameters[node.args[0]]
        if node.op == "constant":
            return constant(node.args[0])
        found = self.of_expressions.get(id(node))  # shared parts are walked through once
        if found is None:
            operands = [self.term(argument) for argument in node.args]
            key = (node.op, *operands)
            if key not in self.known:
                self.known[key] = self.apply(node.op, operands)
            found = self.of_expressions[id(node)] = node, self.known[key]
        return found[1]

    def apply(self, op: str, operands: list[Term]) -> Term:
        """A primitive of these operands."""
        if op in MADE:
            return MADE[op](self, *operands)
        if op == "where":
            return self._where(*operands)
        common, operands = self.alike(operands)
        letter = LETTERS[common.kind]
        for table, result in ((SAME, common), (ASKS, boolean)):
            for kinds, text in table.get(op, {}).items():
                if letter in kinds:
                    self.cost += COSTS.get(op, 1)
                    return self._line(text, operands, common, result)
        return self.call(op, operands, common)

    def function(self, op: str, type: Scalar) -> Any:
        """The function that computes a primitive in a type; None if there is none."""
        return functions().get(op) if type in (f32, f64) else None

    def call(self, op: str, operands: list[Term], common: Scalar) -> Term:
        op = op.removeprefix("special_")
        function = self.function(op, common)
        if function is None:
            raise NoForm(op)
        self.cost += MATH_COST
        self.used[f"math_{op}"] = function
        typed = [t if t.type else Term(f"{common.name}({t.text})", common) for t in operands]
        if any(t.wide for t in typed):
            typed = [t if t.wide else Term(f"splat({t.text}, W)", common, True) for t in typed]
        places = ", ".join(f"{{{k}}}" for k in range(len(operands)))
        return self._line(f"math_{op}({places})", typed, common, common)

    def _where(self, condition: Term, a: Term, b: Term) -> Term:
        if condition.type is None:
            raise NoForm("where")
        test = condition
        if condition.type is not boolean:
            test = Term(f"({condition.text} != 0)", boolean, condition.wide)
        common, (a, b) = self.alike([a, b])
        self.cost += 1
        return self._line("select({2}, {0}, {1})", [a, b, test], common, common)

    def alike(self, operands: list[Term]) -> tuple[Scalar, list[Term]]:
        """The operands' common type; booleans beside numbers become numbers."""
        types = {operand.type for operand in operands} - {None}
        if not types:
            raise NoForm("constants alone")
        numbers = types - {boolean}
        if len(numbers) > 1:
            raise NoForm("several types")
        common = numbers.pop() if numbers else boolean
        assert common is not None
        return common, [fitted(operand, common) for operand in operands]

    def _line(self, text: str, operands: list[Term], common: Scalar, result: Scalar) -> Term:
        whole = text.format(*[operand.text for operand in operands], T=common.name,
                            bits=common.bits, I=INTEGER_OF.get(common.bits, i64).name)  # fmt: skip
        name = f"t{len(self.lines)}"
        self.lines.append((name, whole, result))
        return Term(name, result, any(operand.wide for operand in operands))


def constant(value: Any) -> Term:
    """A number as text: Python's, or one of NumPy's as Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        raise NoForm("complex numbers")
    if isinstance(value, float) and value != value:
        return Term("NAN", None)
    if value in (float("inf"), -float("inf")):
        return Term("INF" if value > 0 else "(-INF)", None)
    return Term(repr(value) if value >= 0 else f"({value!r})", None)


def is_float_text(text: str) -> bool:
    """Whether the text of a Python number is that of a float."""
    return any(letter in text for letter in ".eN")


def fitted(term: Term, type: Scalar) -> Term:
    """A term for a place beside values of a type; numbers stay as they are."""
    if term.type is type:
        return term
    if term.type is not None:
        return Term(f"{type.name}({term.text})", type, term.wide)
    if type is boolean or (is_float_text(term.text) and not type.is_float):
        raise NoForm("a number of a higher category")
    return term


def has_form(
    expression: Any, names: list[str], compute: Scalar, writer: type[Lines] = Lines
) -> bool:
    """Whether an expression of these parameters can be computed in a type."""
    wide = f32 if compute in HALVES else boolean if compute is b8 else compute
    fixed = static_parameters(expression)
    terms = {name: constant(2) if name in fixed else Term(name, wide) for name in names}
    try:
        writer(compute, terms).term(expression)
    except NoForm:
        return False
    return True


# ---- primitives that are made of others


def _number_power(to: Lines, base: Term, exponent: Term) -> Term:
    """Powers by small numbers as products, all others by `power`."""
    number = None if exponent.type is not None else float(exponent.text.strip("()"))
    if number not in FIXED_POWERS["float"]:
        return to.apply("power", [base, exponent])
    squared = to.apply("square", [base])
    if number == 1:
        return base
    if number == 3:
        return to.apply("multiply", [squared, base])
    if number == -1:
        return to.apply("inverse", [base])
    if number == -2:
        return to.apply("inverse", [squared])
    if number in ROOTS:
        return to.apply(ROOTS[number], [base])
    return squared


ROOTS = {0.5: "sqrt", -0.5: "inverse_root"}
FIXED_POWERS = {"float": (1, 2, 3, -1, -2, 0.5, -0.5), "int": (1, 2, 3), "uint": (1, 2, 3)}


def fixed_number(compute: Scalar, number: Any) -> bool:
    """Whether a power by this number is written out in the kernel."""
    return number in FIXED_POWERS.get(compute.kind, ())


def _sigmoid(to: Lines, x: Term) -> Term:
    raised = to.apply("exp", [to.apply("negative", [x])])
    return to.apply("inverse", [to.apply("add", [raised, constant(1)])])


def _product_with_log(log: str) -> Callable[[Lines, Term, Term], Term]:
    def make(to: Lines, x: Term, y: Term) -> Term:
        product = to.apply("multiply", [x, to.apply(log, [y])])
        product = to.apply("where", [to.apply("equal", [x, constant(0)]), constant(0.0), product])
        return to.apply("where", [to.apply("isnan", [y]), y, product])

    return make


def _nextafter(to: Lines, x: Term, y: Term) -> Term:
    """The neighbour of a number of a half type is none of its neighbours in f32."""
    if to.halves:
        raise NoForm("neighbours of half types")
    common, operands = to.alike([x, y])
    return to.call("nextafter", operands, common)


MADE: dict[str, Callable[..., Term]] = {
    "nextafter": _nextafter,
    "number_power": _number_power,
    "checked_power": lambda to, base, exponent: to.apply("power", [base, exponent]),
    "sigmoid": _sigmoid,
    "xlogy": _product_with_log("log"),
    "xlog1py": _product_with_log("log1p"),
}


def conditions(expressions: Iterable[Any]) -> set[str]:
    """Parameters that are used as conditions of `where` and for nothing else."""
    choosing: set[str] = set()
    others: set[str] = set()
    waiting = list(expressions)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Expr) or node.op == "constant":
            continue
        if node.op == "parameter":
            others.add(node.args[0])
            continue
        parts = list(node.args)
        if node.op == "where" and isinstance(parts[0], Expr) and parts[0].op == "parameter":
            choosing.add(parts.pop(0).args[0])
        waiting += parts
    return choosing - others


def static_parameters(expression: Any) -> set[str]:
    """Parameters whose number may decide what is computed: the exponent of `number_power`."""
    if not isinstance(expression, Expr) or expression.op in ("parameter", "constant"):
        return set()
    found: set[str] = set().union(*[static_parameters(part) for part in expression.args])
    if expression.op == "number_power":
        exponent = expression.args[1]
        if isinstance(exponent, Expr) and exponent.op == "parameter":
            found.add(exponent.args[0])
    return found
