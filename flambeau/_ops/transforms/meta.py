"""What operators do with tensors without memory: the shape, strides and type of the result.

Pointwise rows know them from their plan. Views and composites need nothing: they are made of what
is here. Any other row is run on zeros that take no memory, and what it gives is thrown away; where
that does not do, it says so by `shape=`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import thread
from flambeau._core.layout import contiguous_strides
from flambeau._ops.table import dispatch, outputs, pointwise
from flambeau._ops.table.op import UNKNOWN, Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.recording import Plan
from flambeau._ops.transforms import batching
from flambeau._tensor import meta
from flambeau._tensor.meta import Meta
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import bump, check_inplace, snapshot

DEPENDS = "The shape of its result depends on the numbers in its operands."
NO_SHAPE = (
    "aten::{}: attempted to run this operator with Meta tensors, but there was no fake impl or "
    f"Meta kernel registered. {DEPENDS}"
)
MIXED = "Tensor on device {} is not on the expected device {}!"


def is_meta(tensor: Tensor) -> bool:
    """Whether a tensor has no memory; a sparse tensor has."""
    return isinstance(getattr(tensor, "_data", None), Meta)


def watch(op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
          functional: bool | None) -> Any:  # fmt: skip
    """A row's call with tensors without memory; NotImplemented where there are none."""
    if (op.kind == "composite" and op.shape is None) or not _concerned(values):
        return NotImplemented
    if op.kind == "view":
        return _views(plain(*values))
    if functional is False:
        return _in_place(op, plain, values)
    results = _results(op, plain, values)
    batching.record(op, values, results)
    return batching.as_returned(op, results)


def _concerned(values: Any) -> bool:
    return any(map(is_meta, tensors_in(values)))


def without_numbers(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of a composite that looks at numbers; NotImplemented if it may."""
    if not _concerned((*args, *kwargs.values())):
        return NotImplemented
    if op.shape == UNKNOWN:
        raise NotImplementedError(NO_SHAPE.format(op.name))
    named = {name: _zeros(value) for name, value in kwargs.items()}
    with Apart():
        result = op.body(*[_zeros(value) for value in args], **named)
    if isinstance(result, tuple):
        return type(result)(map(_forgotten, result))
    return _forgotten(result)


def _forgotten(part: Any) -> Any:
    return wrap(meta.like(part._data)) if isinstance(part, Tensor) else part


def _views(result: Any) -> Any:
    """Views are made by their rows; some come as plain arrays over the same memory."""
    for part in result if isinstance(result, tuple) else (result,):
        if part._data.__class__ is np.ndarray:
            part._data = np.ndarray.view(part._data, Meta)
    return result


def _results(op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
             is_written: bool = False) -> list[Any]:  # fmt: skip
    """Tensors for the results, without history."""
    found = op.shape(*map(_given, values)) if callable(op.shape) else op.shape
    if found == UNKNOWN:
        raise NotImplementedError(NO_SHAPE.format(op.name))
    if op.kind == "pointwise":
        return [wrap(_elementwise(op, plain, values, is_written))]
    written = [name for name, _ in WRITTEN.findall(op.text)] if "!" in op.text else []
    if op.shape == "ones":
        values = tuple([_ones(value) for value in values])
    return _on_zeros(plain, values, [a.name in written for a in op.schema.arguments])


def _given(value: Any) -> Any:
    """An argument as rules get it: arrays for tensors."""
    if isinstance(value, Tensor):
        return value._data
    if isinstance(value, (list, tuple)):
        return [_given(item) for item in value]
    return value


def _elementwise(op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
                 is_written: bool) -> Meta:  # fmt: skip
    """The layout comes from the plan of the call, the type from a call of single elements."""
    arguments = [a for a in op.schema.arguments if not pointwise.is_factor(a)]
    pairs = zip(arguments, values, strict=True)
    operands = [v for a, v in pairs if pointwise.is_operand(a) and v is not None]
    check_places(operands)
    plan = pointwise.CallPlan(op, operands)
    target, *rest = values
    rank = max([0, *[t._data.ndim for t in operands if isinstance(t, Tensor)]])
    # the target has as many dims as any, for writes
    given = _single(target, rank if is_written else None), *map(_single, rest)
    (single,) = _on_zeros(plain, given)
    strides = contiguous_strides(plan.shape) if plan.strides is None else plan.strides
    return meta.empty(plan.shape, strides, single._data.dtype)


def _single(value: Any, rank: int | None = None) -> Any:
    """A tensor of `rank` dims, by default as many, all of size 1."""
    if not isinstance(value, Tensor):
        return value
    return wrap(np.ones((1,) * (value._data.ndim if rank is None else rank), value._data.dtype))


def check_places(operands: Any) -> None:
    """Tensors with and without memory do not go together, but for single numbers.

    Raises:
        RuntimeError: there are both.
    """
    sized = [t for t in operands if isinstance(t, Tensor) and t._data.ndim]
    for tensor in sized[1:]:
        if tensor.device != sized[0].device:
            raise RuntimeError(MIXED.format(tensor.device, sized[0].device))


def _ones(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return wrap(np.ones(value._data.shape, value._data.dtype))


class Apart:
    """`with Apart():` what runs is not recorded, and draws no numbers that others would miss."""

    def __enter__(self) -> None:
        self.before = modes.grad.enabled, thread.on_zeros
        modes.grad.enabled, thread.on_zeros = False, True

    def __exit__(self, *exc: object) -> None:
        modes.grad.enabled, thread.on_zeros = self.before


WRITTEN = re.compile(r"!\)\??\s+(\w+)()")
"""Parameters that a row writes to."""


def _on_zeros(plain: Callable[..., Any], values: tuple[Any, ...], written: Any = ()) -> list[Any]:
    """The layouts of what a row makes of zeros. What it writes to is memory of its own."""
    with Apart():
        given = [_zeros(value) for value in values]
        for position, is_written in enumerate(written):
            if is_written and given[position] is not None:
                given[position] = wrap(given[position]._data.copy())
        result = plain(*given)
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [_forgotten(part) for part in parts]


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
    (result,) = _results(op, dispatch.Plain(op) if op.kind != "pointwise" else plain, values,
                         is_written=True)  # fmt: skip
    outputs.check_written(target._data, result._data)
    before = snapshot(target) if recorded and Plan(written).uses_self() else target
    if recorded:
        recorder = batching.recorder(written)
        recorder.inplace(*batching.as_recorded(op, (before, *rest)), target)
    else:
        bump(target)
    return target
