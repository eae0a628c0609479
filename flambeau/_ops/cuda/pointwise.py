"""Pointwise rows on GPUs: the rows' own bodies and rules of types, in kernels for the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler.expr import parameter, trace
from flambeau._compiler.gpu.pointwise_text import DeviceLines
from flambeau._compiler.kernel_source import has_form, static_parameters
from flambeau._compiler.types import OF_NUMPY
from flambeau._core import dtype as dt
from flambeau._core.layout import contiguous_strides
from flambeau._ops.cuda.elementwise import Fusion, Plan
from flambeau._ops.table import pointwise as kind
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import can_cast
from flambeau._runtime import choice
from flambeau._runtime.cuda.memory import Block, Current
from flambeau._tensor import device_array
from flambeau._tensor.device_array import DeviceArray, empty, layout_of
from flambeau._tensor.tensor import wrap

UNSIGNED = 1 << 64


class Call(NamedTuple):
    """What calls with operands of the same kinds have in common."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    device: int
    plan: Plan
    casts: tuple[Any, ...]
    as_given: bool
    """Whether the operands are the arguments."""


class Write(NamedTuple):
    """A launch that writes to the first argument, and lacks addresses and numbers alone."""

    device: int
    go: Any
    blocks: int
    given: list[int]
    numbers: list[tuple[int, Any]]
    rest: tuple[int, ...]


class Row:
    """A pointwise row on a device; `write` is its form in place."""

    def __init__(self, op: Op) -> None:
        self.op = op
        arguments = op.schema.arguments
        self.names = [a.name for a in arguments if kind.is_operand(a)]
        self.places = [k for k, a in enumerate(arguments) if kind.is_operand(a)]
        self.factor = next((k for k, a in enumerate(arguments) if kind.is_factor(a)), None)
        self.others = [k for k in range(len(arguments))
                       if k not in self.places and k != self.factor]  # fmt: skip
        self.fusions: dict[Any, Fusion | None] = {}
        self.plans: dict[Any, tuple[Any, ...] | None] = {}
        self.calls: dict[Any, Call] = {}
        self.writes: dict[Any, Write] = {}
        self.numbers_matter = bool(static_parameters(trace(op.body, self.names)))

    def __call__(self, *values: Any) -> Any:
        """The row's result in new memory."""
        # One look-up for everything about a call: scripts/gpu_check/kernels.py, "row alone".
        key: list[Any] = []
        for value in values:
            if isinstance(value, DeviceArray):
                key.append(value.layout or layout_of(value))
            else:
                key.append(value if self.numbers_matter else value.__class__)
        if self.factor is not None and len(values) > self.factor:
            key.append(values[self.factor] != 1)
        call = self.calls.get(tuple(key))
        if call is None:
            call = self._call(values)
            if call is None:
                return NotImplemented
            if len(self.calls) >= kind.MOST_PLANS:
                self.calls.clear()
            self.calls[tuple(key)] = call
        out = empty(call.shape, call.strides, call.dtype, call.device)
        operands = values if call.as_given else self._operands(values, call.casts)
        call.plan.run(operands, (out,))
        return out

    def _call(self, values: tuple[Any, ...]) -> Call | None:
        """All that calls with such arguments have in common; None where there is no kernel."""
        found = self._settled(values)
        if found is None:
            return None
        shape, strides, dtype, fusion, casts, index = found
        out = empty(shape, strides, dtype, index)
        plan = fusion.plan_of(self._operands(values, casts), (out,))
        if plan is None:
            return None
        plain = not any(casts) and len(values) == len(casts)
        return Call(shape, strides, dtype, index, plan, casts, plain)

    def write(self, *values: Any) -> Any:
        """The result in the memory of the first argument."""
        target = values[0]
        key: list[Any] = []
        meeting = 1
        for value in values:
            if isinstance(value, DeviceArray):
                key.append(value.layout or layout_of(value))
                if value is not target and not are_apart(target, value):
                    meeting = 2
            else:
                key.append(value if self.numbers_matter else value.__class__)
                if isinstance(value, np.generic):
                    key.append(value.dtype)
        if self.factor is not None and len(values) > self.factor:
            key.append(values[self.factor] != 1)
        if device_array.watching is not None:
            meeting = 2
        ready = self.writes.get(tuple(key)) if meeting == 1 else None
        if ready is None or ready.device != Current.device:
            return self._write(values, tuple(key) if meeting == 1 else None)
        given = [values[k] for k in ready.given]
        more = [number(values[k], cast) for k, cast in ready.numbers]
        ready.go(Current.stream, ready.blocks, *given, target, *more, *ready.rest)
        return None

    def _write(self, values: tuple[Any, ...], key: Any) -> Any:
        """The long way of `write`; with a key, the next call finds the launch by it."""
        found = self._settled(values)
        target = values[0]
        if found is None or found[0] != target.shape or not _takes(target, found[2]):
            return NotImplemented
        _, _, _, fusion, casts, index = found
        operands = self._operands(values, casts)
        if not fusion.run(operands, (target,)):
            return NotImplemented
        plan = fusion.plan_of(operands, (target,), False)
        if key is not None and plan is not None and plan.kernel is not None:
            used = self._used(values)
            if len(self.writes) >= kind.MOST_PLANS:
                self.writes.clear()
            given = [used[k] for k in plan.given]
            numbers = [(used[k], casts[k]) for k in plan.numbers]
            go = plan.kernel.devices[index]
            self.writes[key] = Write(index, go, plan.blocks, given, numbers, plan.rest)
        return None

    def _operands(self, values: tuple[Any, ...], casts: tuple[Any, ...]) -> list[Any]:
        """Arrays as they are, single numbers in the type that they enter in."""
        return [
            value if cast is None else number(value, cast)
            for value, cast in zip([values[k] for k in self._used(values)], casts, strict=True)
        ]

    def _used(self, values: tuple[Any, ...]) -> list[int]:
        """The places of operands among the arguments: with a factor, if it is not 1."""
        scaled = self._factor(values) != 1
        return [*self.places, self.factor] if scaled else self.places  # type: ignore[list-item]

    def _factor(self, values: tuple[Any, ...]) -> Any:
        """What the last operand is multiplied by: mostly it has been already."""
        return values[self.factor] if self.factor is not None and self.factor < len(values) else 1

    def _settled(self, values: tuple[Any, ...]) -> Any:
        """(shape, strides, dtype of the result, fusion, casts of numbers, device); None where
        there is no kernel."""
        key: list[Any] = []
        for value in values:
            if isinstance(value, np.ndarray):
                key += (value.shape, value.strides, value.dtype.num, value.__class__)
            elif isinstance(value, np.generic):
                key.append(value.dtype)
            else:
                key.append(value.__class__)
        key.append(self._factor(values) != 1)
        found = self.plans.get(tuple(key), self)
        if found is self:
            if len(self.plans) >= kind.MOST_PLANS:
                self.plans.clear()
            found = self.plans[tuple(key)] = self._plan(values)
        return found

    def _plan(self, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        operands = [values[k] for k in self.places]
        if not all(_is_operand(value) for value in operands) or not self._scales(values):
            return None
        place = next(v.place for v in operands if isinstance(v, DeviceArray))
        tensors = [_tensor(value) for value in operands]
        plan = kind.CallPlan(self.op, tensors)
        used = self._used(values)
        fusion = self._fusion(plan.compute.numpy_dtype, len(used) > len(self.places))
        if not plan.supported or fusion is None:
            return None
        wanted = plan.loose if len(used) == len(operands) else (*plan.loose, _factor_type(plan))
        own = plan.compute.numpy_dtype
        casts = tuple(None if isinstance(values[k], np.ndarray) else cast or own
                      for k, cast in zip(used, wanted, strict=True))  # fmt: skip
        strides = contiguous_strides(plan.shape) if plan.strides is None else plan.strides
        return plan.shape, strides, plan.result.numpy_dtype, fusion, casts, place.index

    def _scales(self, values: tuple[Any, ...]) -> bool:
        """Whether the factor, if there is one, is a number that integers may be multiplied by."""
        factor = self._factor(values)
        floats = any(getattr(v, "dtype", dt.float32.numpy_dtype).kind in "fV" for v in values)
        return factor.__class__ is int or (factor.__class__ is float and floats)

    def _fusion(self, compute: np.dtype[Any], factor: bool) -> Fusion | None:
        key = (compute, factor)
        if key not in self.fusions:
            self.fusions[key] = self._made(compute, factor)
        return self.fusions[key]

    def _made(self, compute: np.dtype[Any], factor: bool) -> Fusion | None:
        computed = OF_NUMPY.get(compute.name)
        if computed is None or not choice.available() or self.others:
            return None
        names = self.names
        expression = trace(self.op.body, names)
        if factor:
            *first, last = [parameter(name) for name in names]
            expression = self.op.body(*first, last * parameter("alpha"))
            names = [*names, "alpha"]
        if not has_form(expression, names, computed, DeviceLines):
            return None
        rounds = [self.op.rounds[k] for k in self.places] + [False] * factor
        return Fusion(self.op.full_name, [expression], names, compute, rounds)


def _factor_type(plan: Any) -> np.dtype[Any]:
    compute: np.dtype[Any] = plan.compute.numpy_dtype
    return kind.FLOAT32 if compute.itemsize == 2 and compute.kind in "fV" else compute


def _is_operand(value: Any) -> bool:
    return isinstance(value, (DeviceArray, np.generic)) or kind.number_of(value) is not None


def _tensor(value: Any) -> Any:
    """An operand as the rules of types know it: single numbers of the CPU are 0-dim tensors."""
    if isinstance(value, DeviceArray):
        return wrap(value)
    return wrap(np.asarray(value)) if isinstance(value, np.generic) else value


def number(value: Any, cast: np.dtype[Any]) -> Any:
    """A number as kernels are handed it, converted as `CallPlan` says."""
    if isinstance(value, np.generic):
        array = np.asarray(value).astype(cast)
    else:
        array = kind.number_array(value, cast)
    if array.dtype.kind in "fV":
        return float(array)
    found = int(array)
    return found if found < UNSIGNED >> 1 else found - UNSIGNED


def are_apart(target: Any, other: Any) -> bool:
    """Whether it is seen at once that two arrays share no memory: each is the first over its own
    block."""
    mine, others = target.base, other.base
    return mine is not others and mine.__class__ is others.__class__ is Block


def _takes(target: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a result of a type may be written to an array."""
    if target.dtype == dtype:
        return True
    return can_cast(dt.from_numpy_dtype(dtype), dt.from_numpy_dtype(target.dtype))


ROWS: dict[Op, Row] = {}


def row_of(op: Op) -> Row:
    """The kernels of a pointwise row."""
    return ROWS.get(op) or ROWS.setdefault(op, Row(op))


def _forget() -> None:
    """The default type has changed: integers enter float operators as another one."""
    for row in ROWS.values():
        row.plans.clear()
        row.calls.clear()
        row.writes.clear()


dt.on_default_change.append(_forget)
