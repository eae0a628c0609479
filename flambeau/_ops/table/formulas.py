"""Gradient formulas of several operators as one loop over large tensors.

A formula is run once on single elements, while every operator that it calls is noted; if all of
them are pointwise, the whole formula is one expression, and large gradients take one kernel for it.
Formulas that are themselves recorded (double backward) run operator by operator.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr, parameter, parameters
from flambeau._core import modes
from flambeau._ops.table.ranks import Rank

MOST_FORMS = 16
"""Forms of one formula (types, and the numbers in it) that are compiled; then operators run."""


class NotPointwise(Exception):
    """A formula that is not one expression."""


class LargeFormula:
    """A formula for large tensors: one kernel where it is an expression."""

    def __init__(self, title: str, function: Callable[..., Any], names: list[str]) -> None:
        self.title = title
        self.function = function
        self.names = names
        self.forms: dict[Any, Form | None] = {}
        self.on_device: Any = None  # the same for tensors on GPUs; False: never one launch

    def __call__(self, *values: Any) -> Any:
        """The gradient, as `function` gives it."""
        if modes.grad.enabled or modes.watch.active:
            if self.on_device is not False and modes.watch.active == modes.watch.devices:
                return self._launched(values)
            return self.function(*values)
        key = _key(values)
        if key is None:
            return self.function(*values)
        form = self.forms.get(key, self)
        if form is self:
            form = self.forms[key] = self._form(values)
        result = None if form is None else form.run(values)  # type: ignore[union-attr]
        return self.function(*values) if result is None else result

    def _launched(self, values: tuple[Any, ...]) -> Any:
        """The gradient by one launch on a GPU, if that is what it takes."""
        if modes.grad.enabled:
            return self.function(*values)
        if self.on_device is None:
            from flambeau._tensor.tensor import constructors

            self.on_device = constructors["gradients_on_gpu"](self)
        result = self.on_device(values)
        return self.function(*values) if result is NotImplemented else result

    def _form(self, values: tuple[Any, ...]) -> Form | None:
        if len(self.forms) >= MOST_FORMS:
            return None
        try:
            return Form(self, values)
        except NotPointwise:
            return None


def _key(values: tuple[Any, ...]) -> Any:
    """What a form depends on; None for arguments that no form is made for."""
    from flambeau._tensor.tensor import Tensor

    key: list[Any] = []
    for value in values:
        if value.__class__ is Tensor:
            key.append((value._data.dtype, value._data.ndim > 0))
        elif value.__class__ in (float, int, bool):
            key += [value.__class__, value]
        else:
            return None
    return tuple(key)


class Form:
    """A formula as an expression of those arguments that take part in it."""

    def __init__(self, formula: LargeFormula, values: tuple[Any, ...]) -> None:
        from flambeau._compiler.kernel_source import ASKS, has_form
        from flambeau._compiler.types import OF_NUMPY
        from flambeau._ops.launching.loop_plans import Fusion

        compute = values[0]._data.dtype
        expression = traced(formula, values)
        used = sorted(parameters(expression))
        computed = OF_NUMPY.get(compute.name)
        if computed is None or steps(expression) < 2 or expression.op in ASKS:
            raise NotPointwise
        if not has_form(expression, used, computed):
            raise NotPointwise
        self.places = [formula.names.index(name) for name in used]
        for place in self.places:
            if values[place]._data.dtype not in (compute, np.dtype(bool)):
                raise NotPointwise
        self.fusion = Fusion(f"backward {formula.title}", [expression], used, compute, [compute])

    def run(self, values: tuple[Any, ...]) -> Any:
        """The result as a tensor; None where NumPy has to compute."""
        from flambeau._core.layout import contiguous_strides
        from flambeau._ops.table.pointwise import broadcast_shape, result_strides
        from flambeau._runtime import cpu
        from flambeau._tensor.tensor import wrap

        arrays = [values[place]._data for place in self.places]
        shape = broadcast_shape([array.shape for array in arrays])
        strides = result_strides(arrays, shape) if len(shape) > 1 else None
        if strides is None:
            strides = contiguous_strides(shape)
        out = cpu.empty_strided(shape, strides, self.fusion.dtypes[0])
        return None if self.fusion.run(arrays, (out,)) is None else wrap(out)


def steps(node: Any) -> int:
    """How many primitives an expression applies, counted no further than needed."""
    if not isinstance(node, Expr) or node.op in ("parameter", "constant"):
        return 0
    return 1 + max((steps(part) for part in node.args), default=0)


# ---- tracing


class Trace:
    """What operators have computed so far, as expressions."""

    def __init__(self) -> None:
        self.known: dict[
            int, tuple[Any, Expr]
        ] = {}  # with the tensor, so that its id stays its own

    def note(self, tensor: Any, expression: Expr) -> None:
        """Remember what a tensor stands for."""
        self.known[id(tensor)] = (tensor, expression)

    def expression(self, value: Any) -> Any:
        """What a value of a call stands for; tensors of the formula's own are constants."""
        from flambeau._tensor.tensor import Tensor

        if not isinstance(value, Tensor):
            return value
        found = self.known.get(id(value))
        if found is not None:
            return found[1]
        if value._data.ndim:
            raise NotPointwise
        return value._data.item()


class Current(threading.local):
    """The trace of this thread."""

    trace: Trace | None = None


current = Current()


def watch(
    op: Any, plain: Callable[..., Any], values: tuple[Any, ...], functional: bool | None
) -> Any:
    """Note a call while a formula is traced."""
    trace = current.trace
    if trace is None:
        return NotImplemented
    if not functional or (op.kind != "pointwise" and op.name != "_where"):
        raise NotPointwise
    operands = [trace.expression(value) for value in values]
    result = plain(*values)
    if op.name == "_where":
        trace.note(result, Expr("where", *operands))
    elif all(not isinstance(operand, Expr) for operand in operands):
        return result  # of constants alone
    else:
        trace.note(result, op.body(*operands))
    return result


def traced(formula: LargeFormula, values: tuple[Any, ...]) -> Expr:
    """The expression that a formula computes from arguments like these."""
    from flambeau._ops.table import dispatch
    from flambeau._tensor.tensor import Tensor, wrap

    dispatch.add_watcher(watch, Rank.RECORDING)
    trace = Trace()
    singles = []
    for name, value in zip(formula.names, values, strict=True):
        if isinstance(value, Tensor):
            data = value._data
            value = wrap(np.ones((1,) if data.ndim else (), data.dtype))
            trace.note(value, parameter(name))
        singles.append(value)
    current.trace = trace
    try:
        with modes.Switch():
            result = formula.function(*singles)
    finally:
        current.trace = None
    expression = trace.expression(result) if isinstance(result, Tensor) else None
    if not isinstance(expression, Expr):
        raise NotPointwise
    return expression
