"""Pointwise rows as calls of public operators, from the expressions that they are: for those who
look on below autograd where ATen has no such operator (`dispatching`)."""

from __future__ import annotations

import operator
from typing import Any

from flambeau._compiler.expr import Expr, trace
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Op
from flambeau._tensor.tensor import Tensor

PUBLIC = {"equal": "eq", "power": "pow", "invert": "bitwise_not", "rint": "round",
          "minimum": "clamp_max", "maximum": "clamp_min"}  # fmt: skip
"""Primitives whose operator has another name; extremes are those with a number."""

NUMBERS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
           "divide": operator.truediv, "negative": operator.neg}  # fmt: skip
"""What primitives do with numbers alone."""


def evaluate(op: Op, values: tuple[Any, ...]) -> Any:
    """What a row computes, by public operators.

    Raises:
        AttributeError: one of its primitives is none.
    """
    names = [argument.name for argument in op.schema.arguments]
    known = dict(zip(names, values, strict=True))
    return _value(trace(op.body, names), known)


def _value(node: Any, known: dict[str, Any]) -> Any:
    if not isinstance(node, Expr):
        return node
    if node.op in ("parameter", "constant"):
        return known[node.args[0]] if node.op == "parameter" else node.args[0]
    args = [_value(part, known) for part in node.args]
    if node.op in ("minimum", "maximum"):
        return _extreme(node.op, *args)
    if not any(isinstance(arg, Tensor) for arg in args):
        return NUMBERS[node.op](*args)
    if not isinstance(args[0], Tensor) and node.op != "where":
        if node.op == "subtract":
            return ops.rsub(args[1], args[0])
        args = [args[1], args[0]] if node.op in ("add", "multiply") else [_as_tensor(args), args[1]]
    return getattr(ops, PUBLIC.get(node.op, node.op))(*args)


def _as_tensor(args: list[Any]) -> Any:
    return ops.full_like(args[1], args[0])


def _extreme(name: str, one: Any, other: Any) -> Any:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return getattr(ops, name)(one, other)
    tensor, number = (one, other) if isinstance(one, Tensor) else (other, one)
    return getattr(ops, PUBLIC[name])(tensor, number)
