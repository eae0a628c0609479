"""Computes what is known before the program runs, and keeps each constant once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.device import device
from flambeau._tensor.tensor import Tensor
from flambeau.amp.autocast_mode import autocast
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Node, Value
from flambeau.jit.ir.values import ScriptObject, named_tuple
from flambeau.jit.passes.alias import AliasInfo
from flambeau.jit.passes.control_flow import (
    inline_branch,
    never_runs,
    remove_equal_results,
    remove_loop,
    remove_unchanged_carried,
)
from flambeau.jit.passes.dead_code import remove_dead_code
from flambeau.jit.passes.effects import has_mutable_values, has_side_effects, is_random

NOT_COMPUTED = frozenset((
    "prim::Constant", "prim::Closure", "prim::Uninitialized", "prim::CreateObject",
    "prim::unchecked_unwrap_optional", "prim::fork", "aten::wait", "aten::dequantize",
))  # fmt: skip

LARGEST = 1 << 20
"""Bytes of a result that is computed before the program runs."""


def propagate_constants(graph: Graph, in_every_mode: bool = False) -> None:
    """Replace nodes by what they compute if their inputs are constants, choose branches and drop
    loops whose conditions are known. Values stay that are written to anywhere, and those that
    leave the graph: who gets a list or tensor may write to it, and constants are shared.

    in_every_mode: leave what depends on the default dtype or on autocast, which calls may change.
    """
    alias = AliasInfo(graph)

    def stays(node: Node) -> bool:
        if any(map(alias.may_leave, node.outputs)):
            return True
        if any(alias.has_writers(v, deep=True) for v in (*node.inputs, *node.outputs)):
            return True
        return in_every_mode and _makes_tensors(node) and _depends_on_modes(node)

    _propagate(graph.block, stays)
    remove_dead_code(graph)


def propagate_immutable_constants(graph: Graph) -> None:
    """The same for nodes without tensors, lists and other things that can be written to."""
    _propagate(graph.block, has_mutable_values)
    remove_dead_code(graph)


def _propagate(block: Block, keep: Callable[[Node], bool]) -> None:
    for node in block:
        known = all(value.is_constant for value in node.inputs)
        if node.kind == "prim::If":
            _propagate_if(node, known, keep)
        elif node.kind == "prim::Loop":
            _propagate_loop(node, keep)
        elif node.blocks:
            for inner in node.blocks:
                _propagate(inner, keep)
        elif known and _is_pure(node) and not keep(node):
            _compute(node)


def _propagate_if(node: Node, known: bool, keep: Callable[[Node], bool]) -> None:
    if known:
        taken = bool(node.inputs[0].constant)
        _propagate(node.blocks[0 if taken else 1], keep)
        inline_branch(node, taken)
        return
    for block in node.blocks:
        _propagate(block, keep)
    remove_equal_results(node)


def _propagate_loop(node: Node, keep: Callable[[Node], bool]) -> None:
    if never_runs(node):
        remove_loop(node)
        return
    _propagate(node.blocks[0], keep)
    remove_unchanged_carried(node)


def _is_pure(node: Node) -> bool:
    return not (node.kind in NOT_COMPUTED or has_side_effects(node) or is_random(node))


def _makes_tensors(node: Node) -> bool:
    """Whether a result is a tensor."""
    return any(value.type.is_subtype_of(T.TENSOR) for value in node.outputs)


def _depends_on_modes(node: Node) -> bool:
    """Whether a node of constants gives tensors of other types under another default dtype, or
    under autocast."""
    values = [value.constant for value in node.inputs]
    other = dt.float32 if dt.Defaults.dtype is dt.float64 else dt.float64
    with _default_dtype(other):
        found = [_types(computed(node, values))]
    for enabled in (True, False):
        with autocast("cpu", dtype=dt.bfloat16, enabled=enabled):
            found.append(_types(computed(node, values)))
    return any(types != found[0] for types in found)


def _types(values: Sequence[Any] | None) -> Any:
    return values and [value.dtype if isinstance(value, Tensor) else None for value in values]


@contextmanager
def _default_dtype(dtype: dt.dtype) -> Iterator[None]:
    before = dt.Defaults.dtype
    dt.set_default_dtype(dtype)
    try:
        yield
    finally:
        dt.set_default_dtype(before)


@contextmanager
def _not_inference() -> Iterator[None]:
    """What is computed before a program runs is no inference tensor of its first call."""
    before, modes.grad.enabled = modes.grad.enabled, False
    try:
        yield
    finally:
        modes.grad.enabled = before


def _compute(node: Node) -> None:
    found = computed(node, [value.constant for value in node.inputs])
    if found is None:
        return
    for result, value in zip(node.outputs, found, strict=True):
        if not can_be_constant(value):
            continue
        with node.graph.inserting(node), node.graph.at(None):
            constant = node.graph.create("prim::Constant", (), (result.type,), value=value)
        constant.source = None
        result.replace_by(constant.insert_before(node).output)


def can_be_constant(value: Any) -> bool:
    """Whether a value may stand in a graph as a constant."""
    if isinstance(value, Tensor):
        return not value.requires_grad
    if isinstance(value, (list, tuple)):
        return all(map(can_be_constant, value))
    if isinstance(value, dict):
        return all(map(can_be_constant, value.values()))
    return not isinstance(value, ScriptObject)


def computed(node: Node, values: Sequence[Any]) -> list[Any] | None:
    """What a node gives for some inputs; None if that is not known or is an error."""
    special = SPECIAL.get(node.kind)
    if special is not None:
        return special(node, values)
    if node.schema is None or node.schema.vararg or not node.kind.startswith(("aten::", "prim::")):
        return None
    from flambeau.jit.operators.calls import implementation
    from flambeau.jit.operators.sizes import estimate_of

    estimate = estimate_of(node.schema)
    try:
        if estimate is not None and estimate(*values) > LARGEST:
            return None
        with _not_inference():
            result = implementation(node.schema)(*values)
    except Exception:  # noqa: BLE001  the program shall raise it where it stands
        return None
    return list(result) if len(node.outputs) > 1 else [result] if node.outputs else []


def _tuple(node: Node, values: Sequence[Any]) -> list[Any]:
    type = node.output.type
    if isinstance(type, T.TupleType) and type.qualified_name:
        return [named_tuple(type)(*values)]
    return [tuple(values)]


def _dictionary(node: Node, values: Sequence[Any]) -> list[Any] | None:
    if any(isinstance(key, Tensor) for key in values[::2]):
        return None
    return [dict(zip(values[::2], values[1::2], strict=True))]


SPECIAL: dict[str, Callable[[Node, Sequence[Any]], list[Any] | None]] = {
    "prim::TupleConstruct": _tuple,
    "prim::TupleUnpack": lambda node, values: list(values[0]),
    "prim::TupleIndex": lambda node, values: [values[0][values[1]]],
    "prim::TupleSlice": lambda node, values: [
        tuple(values[0][node.attributes["beg"] : node.attributes["end"]])
    ],
    "prim::ListConstruct": lambda node, values: [list(values)],
    "prim::ListUnpack": lambda node, values: list(values[0]),
    "prim::DictConstruct": _dictionary,
    "prim::unchecked_cast": lambda node, values: list(values),
    "prim::isinstance": lambda node, values: None,
    "prim::GetAttr": lambda node, values: None,
}
"""Nodes without an implementation of their own in the table of operators."""


# ---- pooling


def pool_constants(graph: Graph) -> None:
    """Move all constants to the beginning, the last one first, and keep equal ones once."""
    _Pool(graph).block(graph.block)


class _Pool:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: dict[Any, Value] = {}

    def block(self, block: Block) -> None:
        for node in block:
            for inner in node.blocks:
                self.block(inner)
            if node.kind == "prim::Constant":
                self.constant(node)

    def constant(self, node: Node) -> None:
        key = constant_key(node)
        known = self.known.get(key)
        if known is not None:
            node.output.replace_by(known)
            node.destroy()
            return
        self.known[key] = node.output
        first = self.graph.block.end.after
        assert first is not None
        if first is not node:
            node.move_before(first)


def constant_key(node: Node) -> Any:
    """Equal for nodes of constants that may be one."""
    type = node.output.type
    if isinstance(type, T.FunctionType):
        return ("function", type.function)
    return (str(type), type if type.parts else None, _value_key(node.attributes.get("value")))


def _value_key(value: Any) -> Any:
    """Numbers are told apart by their spelling (-0.0, nan), objects by identity."""
    if isinstance(value, (int, float, complex, str, type(None))):
        return (type(value), repr(value))
    if isinstance(value, device):
        return ("device", str(value))
    if isinstance(value, tuple):
        return tuple(map(_value_key, value))
    return ("object", id(value))
