"""The text of the kernel that an operator's row becomes."""

from __future__ import annotations

from flambeau._compiler import loops
from flambeau._compiler.expr import Expr, trace
from flambeau._compiler.fuse import plan
from flambeau._compiler.kernel_source import NoForm
from flambeau._compiler.row_text import along_text
from flambeau._compiler.types import f32
from flambeau._ops.table.op import BY_NAME, Op
from flambeau._ops.table.pointwise import is_operand


def kernel_text(name: str, overload: str | None = None) -> str:
    """The text, in the kernel language, that large float32 tensors are computed by.

    name: of an operator: "softmax", "sigmoid", "special.entr".
    overload: of the row, where the name has several; None: the first that has a kernel.

    Operators that are element by element, or formulas over rows, have one; it is written when it
    is asked for, and nothing is compiled. KeyError: there is no such operator. ValueError: it is
    no formula, but an algorithm of its own or made of others.

    >>> import flambeau as torch
    >>> print(torch.debug.kernel_text("mul").rstrip())
    def span(self: pointer(f32), other: pointer(f32), out: pointer(f32), n: i64, W: static):
        for i in range(0, n, W):
            v_self = load(self + i, W)
            v_other = load(other + i, W)
            t0 = v_self * v_other
            store(out + i, t0)
    """
    found = [op for op in BY_NAME[name] if overload in (None, op.overload)]
    for op in found:
        text = text_of(op)
        if text:
            return text
    raise ValueError(f"{name} is no formula: it has no kernel that is written from its row")


def text_of(op: Op) -> str:
    """The text for one row; "" where there is none."""
    if op.kind == "rows":
        return along_text(plan(op.formula, tuple(op.formula.kinds.items())))
    return _pointwise(op) if op.kind == "pointwise" else ""


def expression(op: Op) -> Expr:
    """What a row of the kinds "pointwise" and "rows" computes.

    TypeError or ValueError: it decides by numbers that it does not have here.
    """
    if op.kind == "rows":
        result: Expr = op.formula.traced(dict(op.formula.kinds))[0]
        return result
    return trace(op.body, _operands(op))


def _operands(op: Op) -> list[str]:
    return [argument.name for argument in op.schema.arguments if is_operand(argument)]


def _pointwise(op: Op) -> str:
    names = tuple(_operands(op))
    inputs = tuple(loops.Operand(name, f32, "C") for name in names)
    outputs = (loops.Operand("out", f32, "C"),)
    try:
        loop = loops.Loop(op.name, (expression(op),), names, f32, inputs, outputs, flat=True)
        inner, _ = loops.span(loop)
    except (NoForm, TypeError, ValueError):
        return ""
    return inner.source
