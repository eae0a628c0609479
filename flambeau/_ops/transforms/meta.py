"""What operators do with tensors without memory: the shape, strides and type of the result.

Pointwise rows know them from their plan, and rows may say them (`shape=`). Views and composites need
nothing: they are made of what is here. Any other row is run on zeros that take no memory, and what
it gives is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.layout import contiguous_strides
from flambeau._ops.table import binder, dispatch, outputs, pointwise
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.recording import Plan
from flambeau._ops.transforms import batching
from flambeau._tensor import meta
from flambeau._tensor.meta import Meta
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import bump, check_inplace, snapshot

NO_SHAPE = (
    "aten::{}: attempted to run this operator with Meta tensors, but there was no fake impl or "
    "Meta kernel registered. The shape of its result depends on the numbers in its operands."
)
MIXED = "Tensor on device {} is not on the expected device {}!"


def is_meta(tensor: Tensor) -> bool:
    """Whether a tensor has no memory; a sparse tensor has."""
    return isinstance(getattr(tensor, "_data", None), Meta)


def watch(op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
          functional: bool | None) -> Any:  # fmt: skip
    """A row's call with tensors without memory; NotImplemented where there are none."""
    if op.kind == "view" or op.kind == "composite":
        return NotImplemented
    if not any(map(is_meta, tensors_in(values))):
        return NotImplemented
    if functional is False:
        return _in_place(op, plain, values)
    results = _results(op, plain, values)
    batching._record(op, values, results)
    return batching._as_returned(op, results)


def _results(op: Op, plain: Callable[..., Any], values: tuple[Any, ...]) -> list[Any]:
    """Tensors for the results, without history."""
    if op.shape == "unknown":
        raise NotImplementedError(NO_SHAPE.format(op.name))
    if op.kind == "pointwise":
        return [wrap(_elementwise(op, values))]
    if op.shape is not None:
        arrays = [_given(value) for value in values]
        found = op.shape(*arrays)
        return [wrap(part) for part in (found if isinstance(found, tuple) else (found,))]
    return _on_zeros(plain, values)


def _given(value: Any) -> Any:
    """An argument as rules get it: arrays for tensors."""
    if isinstance(value, Tensor):
        return value._data
    if isinstance(value, (list, tuple)):
        return [_given(item) for item in value]
    return value


def _elementwise(op: Op, values: tuple[Any, ...]) -> Meta:
    arguments = [a for a in op.schema.arguments if not pointwise.is_factor(a)]
    pairs = zip(arguments, values, strict=True)
    operands = [v for a, v in pairs if pointwise.is_operand(a) and v is not None]
    operands = [v if isinstance(v, Tensor) else pointwise.number_of(v) for v in operands]
    if None in operands:
        raise dispatch.explain(op, values, TypeError(f"{op.public}(): bad arguments"))
    if op.check_operands is not None:
        op.check_operands(operands)
    check_places(operands)
    plan = pointwise.CallPlan(op, operands)
    if not plan.supported:
        raise pointwise.refusal(op, plan.compute)
    strides = contiguous_strides(plan.shape) if plan.strides is None else plan.strides
    return meta.empty(plan.shape, strides, plan.result.numpy_dtype)


def check_places(operands: Any) -> None:
    """Tensors with and without memory do not go together, but for single numbers.

    Raises:
        RuntimeError: there are both.
    """
    sized = [t for t in operands if isinstance(t, Tensor) and t._data.ndim]
    for tensor in sized[1:]:
        if tensor.device != sized[0].device:
            raise RuntimeError(MIXED.format(tensor.device, sized[0].device))


def _on_zeros(plain: Callable[..., Any], values: tuple[Any, ...]) -> list[Any]:
    """The layouts of what a row makes of zeros."""
    enabled, modes.grad.enabled = modes.grad.enabled, False
    try:
        result = plain(*[_zeros(value) for value in values])
    finally:
        modes.grad.enabled = enabled
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [wrap(meta.like(part._data)) if isinstance(part, Tensor) else part for part in parts]


def _zeros(value: Any) -> Any:
    if isinstance(value, Tensor):
        return wrap(meta.zeros_of(value._data)) if is_meta(value) else value
    if isinstance(value, (list, tuple)):
        return type(value)([_zeros(item) for item in value])
    return value


def _in_place(op: Op, plain: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """A write to a tensor without memory: all that is left of it are its checks and its history."""
    target, *rest = values
    if not is_meta(target):
        raise NotImplementedError(meta.NO_DATA)
    written = op.written
    recorded = bool(written.backward) and pointwise.wants_grad(values)
    check_inplace(target, recorded)
    (result,) = _results(op, dispatch.Plain(op) if op.kind != "pointwise" else plain, values)
    outputs.check_written(target._data, result._data)
    before = snapshot(target) if recorded and Plan(written).uses_self() else target
    if recorded:
        recorder = batching.recorder(written)
        recorder.inplace(*batching._as_recorded(op, (before, *rest)), target)
    else:
        bump(target)
    return target
