"""Gradient formulas on GPUs: those that are one expression (see `_ops.table.formulas`) take one
launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._compiler.expr import parameters
from flambeau._compiler.kernel_source import ASKS, has_form
from flambeau._compiler.types import OF_NUMPY
from flambeau._core.layout import contiguous_strides
from flambeau._ops.cuda.elementwise import Fusion
from flambeau._ops.table import pointwise as kind
from flambeau._ops.table.formulas import LargeFormula, NotPointwise, steps, traced
from flambeau._runtime.cuda.memory import Block, Current
from flambeau._tensor import device_array
from flambeau._tensor.device_array import DeviceArray, empty, layout_of, maker_of
from flambeau._tensor.tensor import Tensor, new, provides

NUMBERS = frozenset((int, float, bool))
BOOL = np.dtype(bool)
MOST = 512
TRIED = 3
"""Kinds of arguments after which a formula that was no expression for any is not tried again."""


class Ready:
    """A launch that lacks addresses alone."""

    __slots__ = ("blocks", "go", "make", "nbytes", "places", "rest")


class Gradient:
    """A formula on the current device: NotImplemented where it does not take one launch."""

    def __init__(self, formula: LargeFormula) -> None:
        self.formula = formula
        self.fusions: dict[Any, tuple[Fusion, list[int]] | None] = {}
        self.ready: dict[Any, Any] = {}

    def __call__(self, values: tuple[Any, ...]) -> Any:
        if device_array.watching is not None:
            return NotImplemented
        key: list[Any] = [Current.device]
        arrays: list[Any] = []
        for value in values:
            if value.__class__ is Tensor or getattr(value, "_is_param", False) is True:
                data = value._data
                if not isinstance(data, DeviceArray):
                    return NotImplemented
                key.append(data.layout or layout_of(data))
                arrays.append(data)
            elif value.__class__ in NUMBERS:
                key += (value.__class__, value)
                arrays.append(value)
            else:
                return NotImplemented
        ready = self.ready.get(tuple(key))
        if ready is None:
            return self._first(values, arrays, tuple(key))
        if ready is NotImplemented:
            return NotImplemented
        block = Block(ready.nbytes, Current.device)
        at = block.address
        given = [arrays[place] for place in ready.places]
        ready.go(Current.stream, ready.blocks, *given, at, *ready.rest)
        return _tensor(ready.make(block, at))

    def _first(self, values: tuple[Any, ...], arrays: list[Any], key: Any) -> Any:
        """The long way, and what is to be kept of it."""
        if len(self.ready) >= MOST:
            self.ready.clear()
        self.ready[key] = NotImplemented
        on_device = [a for a in arrays if isinstance(a, DeviceArray)]
        index = Current.device
        if not on_device or any(a.place.index != index for a in on_device):
            return NotImplemented
        found = self._fusion(values, arrays)
        if found is None:
            return NotImplemented
        fusion, places = found
        operands = [arrays[place] for place in places]
        shape = kind.broadcast_shape([array.shape for array in operands])
        strides = kind.result_strides(operands, shape) if len(shape) > 1 else None
        strides = contiguous_strides(shape) if strides is None else strides
        out = empty(shape, strides, operands[0].dtype, index)
        plan = fusion.plan_of(operands, (out,))
        if plan is None:
            return NotImplemented
        plan.run(operands, (out,))
        if plan.kernel is not None and index in plan.kernel.devices:
            ready = self.ready[key] = Ready()
            ready.go, ready.blocks, ready.rest = plan.kernel.devices[index], plan.blocks, plan.rest
            ready.places, ready.nbytes = [places[k] for k in plan.given], out.block.nbytes
            ready.make = maker_of(out.__class__, out.shape, out.dtype, out.strides)
        else:
            self.ready.pop(key)
        return _tensor(out)

    def _fusion(self, values: tuple[Any, ...], arrays: list[Any]) -> Any:
        """The formula as a loop for such types and numbers, and which values it takes."""
        key = tuple([
            (a.dtype, a.ndim > 0) if isinstance(a, DeviceArray) else (a.__class__, a)
            for a in arrays
        ])  # fmt: skip
        if key not in self.fusions:
            if len(self.fusions) >= MOST:
                return None
            try:
                self.fusions[key] = self._made(values, arrays)
            except NotPointwise:
                self.fusions[key] = None
                if len(self.fusions) == TRIED and not any(self.fusions.values()):
                    self.formula.on_device = False
        return self.fusions[key]

    def _made(self, values: tuple[Any, ...], arrays: list[Any]) -> tuple[Fusion, list[int]]:
        compute = arrays[0].dtype
        expression = traced(self.formula, values)
        used = sorted(parameters(expression))
        computed = OF_NUMPY.get(compute.name)
        if computed is None or steps(expression) < 2 or expression.op in ASKS:
            raise NotPointwise
        places = [self.formula.names.index(name) for name in used]
        if not has_form(expression, used, computed):
            raise NotPointwise
        if any(arrays[place].dtype not in (compute, BOOL) for place in places):
            raise NotPointwise
        return Fusion(f"backward {self.formula.title}", [expression], used, compute), places


def _tensor(data: Any) -> Tensor:
    result = new(Tensor)
    result._data = data
    return result  # type: ignore[no-any-return]


@provides("gradients_on_gpu")
def gradients_on_gpu(formula: LargeFormula) -> Gradient:
    """A formula on GPUs."""
    return Gradient(formula)
