"""Expressions of rows as mathematics, in LaTeX."""

from __future__ import annotations

from typing import Any

from flambeau._compiler.expr import Expr

OPERATORS = {
    "add": ("{0} + {1}", 1), "subtract": ("{0} - {1}", 1), "multiply": (r"{0} \cdot {1}", 2),
    "negative": ("-{0}", 2), "less": ("{0} < {1}", 0), "greater": ("{0} > {1}", 0),
    "less_equal": (r"{0} \le {1}", 0), "greater_equal": (r"{0} \ge {1}", 0),
    "equal": ("{0} = {1}", 0), "not_equal": (r"{0} \ne {1}", 0),
    "logical_and": (r"{0} \land {1}", 0), "logical_or": (r"{0} \lor {1}", 0),
    "bitwise_and": (r"{0} \land {1}", 0), "bitwise_or": (r"{0} \lor {1}", 0),
    "bitwise_xor": (r"{0} \oplus {1}", 0), "logical_xor": (r"{0} \oplus {1}", 0),
    "left_shift": (r"{0} \cdot 2^{{{1}}}", 2),
}  # fmt: skip
"""Primitive -> its text, and how strongly it binds."""

WHOLE = {
    "divide": r"\frac{{{0}}}{{{1}}}", "reciprocal": r"\frac{{1}}{{{0}}}",
    "inverse": r"\frac{{1}}{{{0}}}", "sqrt": r"\sqrt{{{0}}}",
    "inverse_root": r"\frac{{1}}{{\sqrt{{{0}}}}}", "absolute": r"\left|{0}\right|",
    "floor": r"\lfloor {0} \rfloor", "ceil": r"\lceil {0} \rceil", "kept": "{0}",
    "positive": "{0}", "conjugate": r"\overline{{{0}}}",
    "length": "n", "position": "i",
    "where": r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{else}} \end{{cases}}",
}  # fmt: skip
"""Primitives that need no brackets around themselves or their operands."""

REDUCED = {"total": r"\sum", "amax": r"\max", "amin": r"\min", "product": r"\prod"}
"""Over a row: what is reduced has an index of its own."""

NEXT = {"i": "j", "j": "k", "k": "l", "l": "m"}
KNOWN = {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan"}
RAISED = {"power": "{0}^{{{1}}}", "square": "{0}^2", "exp2": "2^{{{0}}}"}


def latex(node: Any, outer: int = 0, index: str = "") -> str:
    """The text of an expression that stands where what binds weaker than `outer` has brackets.

    index: of the elements of a row, for formulas over rows.
    """
    if not isinstance(node, Expr):
        return _number(node)
    if node.op == "constant":
        return _number(node.args[0])
    if node.op == "parameter":
        return _name(node.args[0]) + (f"_{index}" if index else "")
    if node.op in OPERATORS:
        return _operator(node, outer, index)
    if node.op in REDUCED:
        inner = NEXT.get(index, "j")
        return f"{REDUCED[node.op]}_{inner} {latex(node.args[0], 2, inner)}"
    if node.op in WHOLE:
        return WHOLE[node.op].format(*[latex(part, 0, index) for part in node.args])
    if node.op in RAISED:
        base = latex(node.args[0], 0 if node.op == "exp2" else 9, index)
        exponents = [latex(part, 0, index) for part in node.args[1:]]
        written = RAISED[node.op].format(base, *exponents)
        return rf"\left({written}\right)" if outer == 9 else written
    return _function(node, index)


def _operator(node: Expr, outer: int, index: str) -> str:
    text, binds = OPERATORS[node.op]
    right = binds + (node.op == "subtract")
    parts = [latex(part, right if place else binds, index) for place, part in enumerate(node.args)]
    written = text.format(*parts)
    return rf"\left({written}\right)" if binds < outer else written


def _function(node: Expr, index: str) -> str:
    name = rf"\{node.op}" if node.op in KNOWN else rf"\mathrm{{{_plain(node.op)}}}"
    listed = ", ".join(latex(part, 0, index) for part in node.args)
    return rf"{name}\left({listed}\right)"


def _plain(name: str) -> str:
    return name.strip("_").replace("_", r"\,")


def _name(name: str) -> str:
    if len(name) == 1:
        return name
    return {"self": "x", "other": "y", "alpha": r"\alpha", "beta": r"\beta"}.get(
        name, rf"\mathrm{{{_plain(name)}}}"
    )


def _number(value: Any) -> str:
    if value in (float("inf"), -float("inf")):
        return r"\infty" if value > 0 else r"-\infty"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def size(node: Any) -> int:
    """How many symbols an expression has."""
    return 1 + sum(size(part) for part in node.args) if isinstance(node, Expr) else 1
