"""What a node does beside computing its results."""

from __future__ import annotations

from functools import cache

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Node
from flambeau.jit.operators.table import overloads

SIDE_EFFECTS = frozenset((
    "prim::PythonOp", "prim::IgnoredPythonOp", "prim::Print", "prim::RaiseException",
    "prim::SetAttr", "prim::TimePoint", "prim::CallFunction", "prim::CallMethod", "prim::Enter",
    "prim::Exit", "aten::warn", "aten::save", "aten::manual_seed", "flambeau::Call",
    "aten::_assert", "aten::_assert_async", "aten::_assert_scalar", "aten::is_grad_enabled",
    "aten::set_grad_enabled", "aten::_set_grad_enabled", "aten::backward", "aten::grad",
    "aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled", "aten::get_autocast_dtype",
    "aten::initial_seed", "aten::seed", "aten::autocast_increment_nesting", "prim::TimePoint",
))  # fmt: skip
"""Operators that act on, or depend on, something that is no value of the graph."""

RATES = frozenset(("p", "dropout", "dropout_p"))
"""What schemas call the probability of dropout."""
SWITCHES = ("train", "training")
"""What they call the flag without which there is none."""
GENERATORS = (T.GENERATOR, T.optional(T.GENERATOR))


@cache
def draws(kind: str) -> str | None:
    """Whether an operator draws random numbers, as its schemas tell: None if not, and the name of
    the parameter without which it does not; "" if there is none."""
    schemas = overloads(kind)
    names = {p.name for schema in schemas for p in schema.arguments}
    switch = next((name for name in SWITCHES if name in names), "")
    if any(p.type in GENERATORS for schema in schemas for p in schema.arguments):
        return switch
    if switch and names & RATES:
        return switch
    return "dropout_p" if "dropout_p" in names else None


def has_side_effects(node: Node) -> bool:
    """Whether the node has to run though nothing uses its results; writes apart."""
    if node.kind in SIDE_EFFECTS:
        return True
    return node.kind.startswith("^")


def is_random(node: Node) -> bool:
    """Whether two runs of the node may differ."""
    switch = draws(node.kind)
    if not switch or node.schema is None:
        return switch is not None
    try:
        value = node.named(switch)
    except KeyError:
        return True
    return not (value.is_constant and value.constant is not None and not value.constant)


def writes_inputs(node: Node) -> bool:
    """Whether the node's schema says that it writes to an input."""
    return node.schema is not None and any(p.written for p in node.schema.arguments)


def fills(node: Node) -> bool:
    """Whether a node's results are tensors that it was given (`out=`). It is another operator,
    then, than those of the same name that only compute."""
    schema = node.schema
    return schema is not None and any(p.keyword_only and p.written for p in schema.arguments)


def is_mutable(type: T.Type) -> bool:
    """Whether values of a type can be written to, or hold such values."""
    if type is T.TENSOR:  # most are
        return True
    if isinstance(type, (T.OptionalType, T.UnionType, T.TupleType)):
        return any(map(is_mutable, type.parts))
    if type in IMMUTABLE:
        return False
    return not isinstance(type, (T.FunctionType, T.EnumType))


IMMUTABLE = frozenset((T.INT, T.FLOAT, T.COMPLEX, T.BOOL, T.STRING, T.NONE, T.NUMBER, T.DEVICE,
                       T.STREAM, T.QSCHEME, T.NO_RETURN, T.ANY_ENUM))  # fmt: skip


def has_mutable_values(node: Node) -> bool:
    """Whether an input or a result of the node is of a mutable type."""
    return any(is_mutable(value.type) for value in (*node.inputs, *node.outputs))
