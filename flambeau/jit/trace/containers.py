"""Inputs and results of a trace that are tuples, lists and dictionaries of tensors."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.values import facts_of
from flambeau.jit.operators import table
from flambeau.jit.trace.sizes import TracedInt
from flambeau.jit.trace.words import STRICT

ONLY = (
    "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs "
    "or outputs of traced functions, but instead got value of type {}."
)
RESULTS = (
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
    "functions"
)
NOTHING = (
    "The traced function didn't return any values! Side-effects are not captured in traces, so it "
    "would be a no-op."
)


def input_type(value: Any) -> T.Type:
    """The type of an example input."""
    if isinstance(value, Tensor):
        return facts_of(value)
    if isinstance(value, tuple):
        return T.TupleType(tuple(map(input_type, value)))
    if isinstance(value, list) and value:
        return T.ListType(T.without_facts(input_type(value[0])))
    if isinstance(value, dict) and value:
        key, item = next(iter(value.items()))
        known: Any = {str: T.STRING, int: T.INT, float: T.FLOAT}
        return T.DictType(known[type(key)], T.without_facts(input_type(item)))
    simple = {int: T.INT, float: T.FLOAT, bool: T.BOOL, str: T.STRING, type(None): T.NONE}
    if type(value) in simple:
        return simple[type(value)]
    raise RuntimeError(ONLY.format(type(value).__name__))


def take(trace: Any, value: Any, known: Value) -> Any:
    """Let a trace know an input, and give what the program gets for it: tensors of its own, of
    the same memory, so that one tensor given twice stays two inputs.
    """
    if isinstance(value, Tensor):
        copied = value.detach().requires_grad_(value.requires_grad)  # type: ignore[attr-defined]
        trace.know(copied, known)
        return copied
    if isinstance(value, dict):
        return {key: take(trace, item, _entry(trace, known, key)) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        kind = "prim::TupleUnpack" if isinstance(value, tuple) else "prim::ListUnpack"
        node = trace.graph.insert(kind, [known], [input_type(item) for item in value])
        items = [take(trace, item, v) for item, v in zip(value, node.outputs, strict=True)]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    return value


def _entry(trace: Any, known: Value, key: Any) -> Value:
    wanted = known.type.value  # type: ignore[attr-defined]
    node = trace.graph.insert("aten::__getitem__", [known, trace.graph.constant(key)], [wanted])
    node.schema = table.overload(
        "aten::__getitem__",
        f"Dict_{known.type.key}",  # type: ignore[attr-defined]
    )
    return node.output  # type: ignore[no-any-return]


def result(trace: Any, value: Any, *, outermost: bool = True) -> Value:
    """The value of what the program returns.

    A strict trace warns of lists.

    Raises:
        RuntimeError: it is no tensor nor a container of tensors; or, if the trace is strict, a
            dictionary.
    """
    if isinstance(value, Tensor):
        return trace.value_of(value)  # type: ignore[no-any-return]
    if isinstance(value, TracedInt):
        return trace.value_of(value.tensor)  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        parts = [result(trace, item, outermost=False) for item in value]
        made = T.TupleType(tuple(part.type for part in parts))
        return trace.graph.insert("prim::TupleConstruct", parts, [made]).output  # type: ignore[no-any-return]
    if value is None and outermost:
        raise RuntimeError(NOTHING)
    if isinstance(value, dict) and trace.strict:
        raise RuntimeError(STRICT.format("dict"))
    if isinstance(value, list) and trace.strict:
        trace.warn("list as a result")
    if isinstance(value, list) and value:
        parts = [result(trace, item, outermost=False) for item in value]
        made_list = T.ListType(T.without_facts(parts[0].type))
        return trace.graph.insert("prim::ListConstruct", parts, [made_list]).output  # type: ignore[no-any-return]
    if isinstance(value, dict) and value:
        parts = [
            part for key, item in value.items()
            for part in (trace.graph.constant(key), result(trace, item, outermost=False))
        ]  # fmt: skip
        made_dict = T.DictType(parts[0].type, T.without_facts(parts[1].type))
        return trace.graph.insert("prim::DictConstruct", parts, [made_dict]).output  # type: ignore[no-any-return]
    raise RuntimeError(RESULTS)
