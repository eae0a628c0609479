"""What operators do with batches: `vmap`.

A call with tensors that stand for examples (`autograd.batches`) becomes calls with whole batches,
one level further out. A rule says how, from what the row is and from its `batch=`:

* elementwise operators line batches up with the other operands;
* what works along dims, or makes a view, works along the next ones;
* what works on items of a fixed number of dims (matrices, images) takes the batch for further
  items;
* composites are made of operators that have rules, and some rows say of which they could be.

All others work on one example after the other. The graph inside of the function is recorded here,
among the tensors that stand for examples; that of the batches is recorded by their own calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._ops.table import binder, dispatch, pointwise
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.recording import Plan
from flambeau._ops.transforms import batch_rules
from flambeau._ops.transforms.batched_call import Call, Parts
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import NO_OUT, TOO_SMALL, Batch
from flambeau.autograd.history import (
    bump,
    check_inplace,
    join_family,
    limit_view,
    snapshot,
    views_of,
)


def run(level: Batch, op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
        functional: bool | None) -> Any:  # fmt: skip
    """A row's call where an operand stands for examples; NotImplemented where none does."""
    if all(level.example(tensor) is None for tensor in tensors_in(values)):
        return NotImplemented
    if functional is None:
        raise RuntimeError(NO_OUT.format(op.public))
    if not functional:
        return _in_place(level, op, plain, values)
    if is_in_parts(op):
        return _in_parts(level, op, values)
    call = Call(level, op, plain, values)
    with level.apart():
        parts = batch_rules.apply(call)
    results = _standing(call, parts)
    if op.kind != "view":
        record(op, values, results)
    return as_returned(op, results)


def is_in_parts(op: Op) -> bool:
    """Whether batches go to the operators that a row is made of, or says that it could be."""
    return callable(op.batch) or (op.kind == "composite" and op.batch is None)


def _standing(call: Call, parts: Parts) -> list[Any]:
    """Tensors that stand for the results."""
    op, level = call.op, call.level
    if op.kind == "view":
        return _views(call, parts)
    found = []
    for part in parts.values:
        if part is not None and not isinstance(part, Tensor):
            raise RuntimeError(batch_rules.NO_RULE.format(op.name))
        found.append(None if part is None else level.standing_for(part, parts.is_batched))
    return found


def as_returned(op: Op, results: list[Any]) -> Any:
    if op.schema.return_types[0].endswith("[]"):
        return tuple(results)
    return dispatch.result_type(op)(results) if len(op.schema.returns) > 1 else results[0]


# ---- views


def _views(call: Call, parts: Parts) -> list[Any]:
    """Views of a tensor that stands for examples are that of its views: writes reach the batch,
    and its history."""
    source = call.values[0]
    made = [call.level.standing_for(part, parts.is_batched) for part in parts.values]
    if call.op.schema.return_types[0].endswith("[]"):
        views: Any = views_of(source, [one._data for one in made])
    else:
        (view,) = views = made
        if source._root is None:
            view._root = source
            view._base = source if call.op.backward else None
            view._view_version = source._version_count
        elif call.op.backward:
            join_family(source, view)
        else:
            view._root = source._root
    if call.op.backward:
        _record_views(call, views)
    return list(views)


def _record_views(call: Call, views: Any) -> None:
    source = call.values[0]
    if not (source.requires_grad or source._creation or not modes.grad.enabled):
        return
    several = call.op.schema.return_types[0].endswith("[]")
    if not several:
        limit_view(source, views[0])
    if modes.grad.enabled and source.requires_grad:
        recorder(call.op).call(*call.values, tuple(views) if several else views[0])


# ---- recording


_recorders: dict[str, dispatch.Recorder] = {}


def recorder(op: Op) -> dispatch.Recorder:
    """What records calls of a row."""
    key = f"{op.namespace}.{op.full_name}"
    if key not in _recorders:
        _recorders[key] = dispatch.Recorder(op)
    return _recorders[key]


def record(op: Op, values: tuple[Any, ...], results: list[Any]) -> None:
    """Record a call in the graph of tensors that stand for examples."""
    if op.backward and pointwise.wants_grad(values):
        lists = op.schema.return_types[0].endswith("[]")
        recorder(op).call(*as_recorded(op, values), *([tuple(results)] if lists else results))
    elif modes.grad.enabled is None:
        for result in results:
            if result is not None:
                result._inference = True


def as_recorded(op: Op, values: tuple[Any, ...]) -> list[Any]:
    """Arguments as formulas expect them: tensors for numbers."""
    if op.kind != "pointwise":
        return list(values)
    operands = [v for v in values if isinstance(v, (Tensor, int, float, complex))]
    return pointwise.as_tensors(op, list(values), pointwise.compute_dtype(op, operands))


def _in_parts(level: Batch, op: Op, values: tuple[Any, ...]) -> Any:
    """A row that is made of others: run on tensors without history, and recorded once."""
    function: Any = op.batch if callable(op.batch) else op.body
    if op.kind == "view":
        return function(*values)
    names = [binder.python_name(op, a) for a in op.schema.arguments if a.keyword_only]
    plain = [_without_history(level, value) for value in values]
    count = len(plain) - len(names)
    result = function(*plain[:count], **dict(zip(names, plain[count:], strict=True)))
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    record(op, values, results)
    return as_returned(op, results)


def _without_history(level: Batch, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_without_history(level, v) for v in value])
    entry = level.example(value) if isinstance(value, Tensor) else None
    return value if entry is None else level.standing_for(entry.value, entry.is_batched)


# ---- in place


def _in_place(level: Batch, op: Op, plain: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """A write to what a tensor stands for."""
    target, *rest = values
    writes = [e for t in tensors_in(rest) if (e := level.example(t)) is not None and e.is_batched]
    recorded = bool(op.written.backward) and pointwise.wants_grad(values)
    check_inplace(target, recorded)
    if not writes:
        level.take_in(target)
    entry = level.example(target)
    if entry is None or (writes and not entry.is_batched):
        raise RuntimeError(
            TOO_SMALL.format(
                "inplace arithmetic" if op.kind == "pointwise" else f"aten::{op.name}_"
            )
        )
    written = op.written
    before = snapshot(target) if recorded and Plan(written).uses_self() else target
    with level.apart():
        batch_rules.write(Call(level, op, plain, values))
    if recorded:
        recorder(written).inplace(*as_recorded(op, (before, *rest)), target)
    else:
        bump(target)
    return target
