"""The generated call path of pointwise rows: functions, operators, and in-place forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.table import binder, dispatch, outputs, overrides
from flambeau._ops.table import elementwise_text as texts
from flambeau._ops.table import pointwise as kind
from flambeau._ops.table.compiled import LargeKernels
from flambeau._ops.table.number_operands import (
    SCALARS,
    number_tensor,
    scalar_tensor,
    scaled,
    tell_factor,
)
from flambeau._ops.table.op import Op
from flambeau._ops.table.recording import Plan
from flambeau._runtime import choice, cpu
from flambeau._runtime.warming import Warming
from flambeau._tensor.bits import Bits, among, reading, writing
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, constructors, wrap
from flambeau.autograd.history import bump, check_inplace, from_before, snapshot


def make_pointwise(op: Op) -> Callable[..., Any]:
    """The public function of a pointwise row."""
    path = Path(op)
    operands = [a for a in op.schema.arguments if kind.is_operand(a)]
    tensors = [a for a in operands if a.is_tensor and not a.optional]
    if texts.has_alpha(op) or len(op.schema.arguments) == len(operands) == len(tensors) <= 2:
        text = path.text = SHORT[len(tensors)](op, path.names)
    elif texts.takes_numbers(op):
        text = texts.numbers(op, path.names)
    else:
        text = texts.long(op, path.names)
    function = dispatch.compile_function(op.full_name, text, path.scope(), path.name)
    function.path = path
    return dispatch.finish(function, op)


class Path:
    """What the call path of one row needs: its kernels and the long way round."""

    def __init__(self, op: Op, called: str = "") -> None:
        self.op = op
        self.called = called  # the name of its function, if not the row's own
        self.name = op.public.rpartition(".")[2]
        self.kernels = kind.Kernels(op)
        self.large = LargeKernels(self.kernels)
        self.arguments = tuple(a for a in op.schema.arguments if not kind.is_factor(a))
        self.names = [binder.python_name(op, a) for a in self.arguments]
        self.recorder = dispatch.Recorder(op) if op.backward else None
        self.text = ""  # of the generated function, if it takes nothing but tensors

    def unwatched(self, name: str, long_way: Callable[..., Any]) -> Callable[..., Any]:
        """What runs once modes have had their say: the generated function `name` with a long way
        round that asks for none, so that what is watched is as fast as what is not."""
        if not self.text:
            return long_way
        found: Callable[..., Any] | None = self.__dict__.get("without_modes")
        if found is None:
            ways = dict.fromkeys(WAYS, long_way)
            scope = {
                **self.scope(),
                **ways,
                "general": lambda *values, out=None: long_way(*values),
                "foreign": lambda *values, out=None: long_way(*values),
            }
            text = self.text.replace("watch.active", "False")
            found = dispatch.compile_function(self.op.full_name, text, scope, name)
            self.without_modes = found
        return found

    def scope(self, inplace: bool = False) -> dict[str, Any]:
        """Names for the generated text, or that of the in-place form."""
        scope = {
            **dispatch.base_scope(self.op), "kernels": self.kernels, "general": self.general,
            "large": self.large, "with_factor": self.with_factor,
            "inplace": self.inplace, "operator": self.operator, "recorder": self.recorder,
            "foreign": self.foreign, "foreign_inplace": self.foreign_inplace,
            "foreign_operator": self.foreign_operator,
            "foreign_inplace_operator": self.foreign_inplace_operator,
            "isinstance": isinstance,
            "scalars": SCALARS, "scalar_tensor": scalar_tensor, "ValueError": ValueError,
            "one": 1, "broadcast_error": broadcast_error, "scaled": scaled, "apart": apart,
            "tell_factor": tell_factor,
        }  # fmt: skip
        scope["inline"] = Warming(scope, "inline", partial(self._learner, inplace))
        return scope

    def _learner(self, inplace: bool) -> Callable[..., None]:
        from flambeau._ops.table.pointwise_calls import learner

        count = texts.leading_tensors(self.op)
        return learner(self.kernels, self.large, self.large.limit, inplace, count, self.plain)

    def general(self, *values: Any, out: Any = None) -> Any:
        """Any arguments: promotion, numbers, layouts, modes, `out=`."""
        if Bits.exist:
            found = among(values)
            if found:
                with reading(found):
                    result = self.general(*values)
                return result if out is None else outputs.write_out(self.op, out, result, values)
        try:
            if modes.watch.active:
                if modes.watch.devices == modes.watch.active and out is None:
                    result = self.quick(values)
                    if result is not NotImplemented:
                        return result
                result = dispatch.watched(
                    self.op, self.unwatched(self.name, self.plain), values, out is None or None
                )
            elif out is not None and self._written(values, out):
                return out
            else:
                result = self.plain(*values)
        except NotStrided as error:
            return dispatch.otherwise(self.op, values, error, out)
        return result if out is None else outputs.write_out(self.op, out, result, values)

    @cached_property
    def quick(self) -> Callable[[tuple[Any, ...]], Any]:
        """The short way to the kernels of a device; NotImplemented where it does not lead there."""
        return constructors["quick_on_gpu"](self)  # type: ignore[no-any-return]

    def foreign(self, *values: Any, out: Any = None) -> Any:
        """A call with arguments that are no plain tensors: their classes may take it over."""
        taken, result = overrides.taken_over(self.op, values, out, called=self.called)
        return result if taken else self.general(*values, out=out)

    def foreign_operator(self, *values: Any) -> Any:
        """The same for Python's operators, which ask the other operand if nobody takes over."""
        try:
            taken, result = overrides.taken_over(self.op, values, called=self.called)
        except TypeError:
            return NotImplemented
        return result if taken else self.operator(*values)

    def foreign_inplace_operator(self, *values: Any) -> Any:
        """The same for those in place, which leave arrays to NumPy, too: PyTorch's `x += array` is
        `x = x + array`."""
        try:
            taken, result = self._taken_over_inplace(values)
        except TypeError:
            return NotImplemented
        if taken:
            return result
        return self.inplace(*values) if is_known(values[1]) else NotImplemented

    def foreign_inplace(self, *values: Any) -> Any:
        """The same in place."""
        taken, result = self._taken_over_inplace(values)
        return result if taken else self.inplace(*values)

    def _taken_over_inplace(self, values: tuple[Any, ...]) -> tuple[bool, Any]:
        return overrides.taken_over(self.op, values, inplace=True, called=self.called)

    def plain(self, *values: Any) -> Tensor:
        """The long way without modes."""
        if self.takes_tensors and self._are_operands({*map(type, values)}, values):
            operands: Any = values
        else:
            values = tuple(self._checked(values))
            operands = self._operands(values)
        result = kind.compute(self.kernels, self.large, operands)
        if self.recorder is not None and kind.wants_grad(values):
            element = kind.compute_dtype(self.op, operands)
            self.recorder.call(*kind.as_tensors(self.op, list(values), element), result)
        return result

    def _written(self, values: tuple[Any, ...], out: Any) -> bool:
        """Compute straight into `out` where it has just the result's shape and type, and a
        compiled kernel can."""
        if not isinstance(out, Tensor) or out._stored is not None:
            return False
        if out._data.size < self.large.limit:
            return False
        if (out.requires_grad and modes.grad.enabled) or kind.wants_grad(values):
            return False
        operands = self._operands(tuple(self._checked(values)))
        plan = kind.plan_of(self.kernels, operands)
        data = out._data
        fits = data.shape == plan.shape and data.dtype == plan.result.numpy_dtype
        if not fits or not plan.supported:
            return False
        outputs.check_overlap(data)
        outputs.check_partial_overlap(out, operands)
        if modes.watch.saving or modes.watch.active:
            check_inplace(out, False, leaf=False)
        if plan.write(operands, self.large, data) is None:
            return False
        bump(out)
        return True

    def with_factor(self, x: Any, y: Any, alpha: Any, out: Any, inplace: bool) -> Tensor | None:
        """`x + alpha * y` for tensors of one float type that need no recording, else None."""
        if x.__class__ is not Tensor or y.__class__ is not Tensor:
            values = (x, y, alpha)
            taken, result = overrides.taken_over(
                self.op, values, out, inplace=inplace, called=self.called
            )
            return result if taken else None
        if alpha.__class__ not in (float, int) or out is not None or modes.watch.active:
            return None
        if kind.wants_grad((x, y)) or not kind.MIN_WHOLE <= alpha <= kind.MAX_WHOLE:
            return None  # among the latter are NaN and infinite factors, which are rare
        a, b = x._data, y._data
        dtype = a.dtype
        if dtype is not b.dtype or dtype.kind != "f" or dtype in kind.dt.NUMPY_HALVES:
            return None
        if a.shape != b.shape or not a.flags.c_contiguous or not b.flags.c_contiguous:
            return None
        if inplace:
            check_inplace(x, False)
            outputs.check_partial_overlap(x, (y,))
        data = self._with_factor(a, b, np.array(alpha, dtype), a if inplace else ...)
        if not inplace:
            return wrap(data)
        bump(x)
        return x

    def _with_factor(self, a: np.ndarray, b: np.ndarray, factor: np.ndarray, out: Any) -> Any:
        if a.size >= choice.limit("pointwise"):
            fusion = self.large.fusion(a.dtype, True)
            done = fusion.run((a, b, factor), None if out is ... else (out,))
            if done is not None:
                return done[0]
        with cpu.quiet():
            return self.kernels[a.dtype](a, np.multiply(b, factor, out=...), out=out)

    def _checked(self, values: tuple[Any, ...]) -> list[Any]:
        """Arguments with foreign numbers and arrays made ours; torch's TypeError for others."""
        checked = []
        for position, (argument, value) in enumerate(zip(self.arguments, values, strict=True)):
            if isinstance(value, Tensor) and argument.is_tensor:
                pass
            elif argument.is_tensor and (value is not None or not argument.optional):
                value = self._operand(position, value, values)
            elif argument.type in ("Scalar", "float", "int") and value is not None:
                value = self._number(value, values)
            checked.append(value)
        return checked

    def _number(self, value: Any, values: tuple[Any, ...]) -> Any:
        """A Python number, also from a 0-dim tensor or a NumPy scalar."""
        if isinstance(value, Tensor) and binder.fits_number(value):
            return value._data.item()
        number = kind.number_of(value)
        if number is None:
            error = binder.argument_error(self.op, list(values), self.called)
            raise error or TypeError(f"{self.name}(): {value!r} is not a number")
        return number

    def _operand(self, position: int, value: Any, values: tuple[Any, ...]) -> Any:
        number = kind.number_of(value)
        if number is not None and binder.takes_number(self.op, position):
            if any(isinstance(v, Tensor) for v in values):
                return number
            if self.op.numbers == "all":
                return number_tensor(number)
        if isinstance(value, np.ndarray):
            return wrap(value)
        several = sum(argument.is_tensor for argument in self.arguments) > 1
        if several and self.op.numbers in ("other", "both"):
            raise binder.no_overload_error(
                binder.shown_name(self.op), [self.op], values, {}, self.called
            )
        error = binder.argument_error(self.op, list(values), self.called)
        raise error or TypeError(f"{self.name}(): bad argument at position {position + 1}")

    def _operands(self, values: tuple[Any, ...]) -> list[Any]:
        pairs = zip(self.arguments, values, strict=True)
        operands = [v for a, v in pairs if kind.is_operand(a) and v is not None]
        if self.op.check_operands is not None:
            self.op.check_operands(operands)
        return operands

    def operator(self, *values: Any) -> Any:
        """As `general`, for Python's operators: NotImplemented where the types are foreign."""
        if not isinstance(values[0], Tensor):
            raise TypeError(f"descriptor '__{self.name}__' for 'torch._C.TensorBase' objects "
                            f"doesn't apply to a '{type(values[0]).__name__}' object")  # fmt: skip
        for value in values:
            if value.__class__ is Tensor:
                continue
            if isinstance(value, np.ndarray):
                if self.op.promote != "bool" or value.dtype.kind not in "biufc":
                    return NotImplemented  # NumPy computes, and hands back to the tensor
            elif not isinstance(value, Tensor) and kind.number_of(value) is None:
                return NotImplemented
        return self.general(*values)

    def inplace(self, target: Tensor, *rest: Any) -> Tensor:
        """`target.op_(...)`: written through to the memory of `target`."""
        if Bits.exist:
            found = among((target, *rest))
            if found:
                with writing([target]), reading(found):
                    return self.inplace(target, *rest)
        try:
            if modes.watch.active:
                quick = self.unwatched(f"{self.name}_", self._inplace)
                return dispatch.watched(  # type: ignore[no-any-return]
                    self.op, quick, (target, *rest), functional=False
                )
            return self._inplace(target, *rest)
        except NotStrided as error:
            values = (target, *rest)
            return dispatch.otherwise(self.op, values, error, inplace=self.inplace)  # type: ignore[no-any-return]

    def _inplace(self, target: Tensor, *rest: Any) -> Tensor:
        if not isinstance(target, Tensor):
            raise binder.type_error(self.op, 0, target)
        values = self._checked((target, *rest))
        recorded = kind.wants_grad(values)
        check_inplace(target, recorded, leaf=self.name not in WITHOUT_HISTORY)
        operands = self._operands(tuple(values))
        outputs.check_partial_overlap(target, operands)
        recorder = self.inplace_recorder
        if not recorded or recorder is None:
            self._overwrite(target, operands)
            bump(target)
            return target
        element = kind.compute_dtype(self.op, operands)
        before = kind.as_tensors(self.op, values, element)
        if self.needs_before:
            before[0] = snapshot(target)
        others = from_before(target, before[1:]) if modes.watch.saving else before[1:]
        unrecordable = any(isinstance(value, Tensor) and value._inference for value in others)
        kept = target._data.copy() if unrecordable else None
        self._overwrite(target, operands)
        try:
            recorder.inplace(before[0], *others, target)
        except RuntimeError:
            if kept is not None:
                target._data[...] = kept
            raise
        return target

    def _are_operands(self, types: set[type], values: tuple[Any, ...]) -> bool:
        """Whether arguments need no look at each: tensors, or a tensor and Python's numbers."""
        if types == ONLY_TENSORS:
            return True
        takes_numbers = self.op.numbers != "none" and values[0].__class__ is Tensor
        return takes_numbers and types <= TENSORS_AND_NUMBERS

    @cached_property
    def takes_tensors(self) -> bool:
        """Whether all parameters are operands, about which nothing else is asked."""
        return self.op.check_operands is None and all(
            argument.is_tensor and kind.is_operand(argument) for argument in self.arguments
        )

    @cached_property
    def inplace_recorder(self) -> dispatch.Recorder | None:
        """What records the in-place form."""
        if self.op.backward_inplace is None:
            return self.recorder
        return dispatch.Recorder(self.op.written)

    @cached_property
    def needs_before(self) -> bool:
        """Whether formulas use the target's values from before the write."""
        op = self.op.written
        return bool(op.backward) and Plan(op).uses_self()

    def _overwrite(self, target: Tensor, operands: list[Any]) -> None:
        """Write the new values; shapes and types are checked before anything is written."""
        plan = kind.plan_of(self.kernels, operands)
        outputs.check_overlap(target._data)
        if plan.shape != target._data.shape:
            outputs.check_inplace_shape(target._data.shape, plan.shape)
        if not plan.supported and self.op.refusals:  # a check of its own, before that of the cast
            raise kind.refusal(self.op, plan.compute)
        outputs.check_cast(plan.result.numpy_dtype, target._data.dtype)
        if not plan.supported:
            raise kind.refusal(self.op, plan.compute)
        if plan.write(operands, self.large, target._data) is not None:
            return
        with cpu.quiet():
            data = self.kernels[plan.compute.numpy_dtype](*plan.arrays(operands), out=...)
        if data.dtype.kind not in "cWb" and plan.result.is_complex:
            raise RuntimeError(f"In-place {self.op.name} is not supported for complex tensors.")
        outputs.inplace_array(target, data)


WITHOUT_HISTORY = frozenset(("logical_and", "logical_or", "logical_xor", "logical_not"))
"""Operators that torch lets write to a leaf: no gradient is defined for them."""
ONLY_TENSORS = frozenset((Tensor,))
TENSORS_AND_NUMBERS = frozenset((Tensor, int, float))
WAYS = ("inplace", "operator", "foreign_inplace", "foreign_operator", "foreign_inplace_operator")
"""The long ways round that take no `out`, by their names in generated text."""


def is_known(other: Any) -> bool:
    """Whether an operand is ours: a tensor or a number."""
    return isinstance(other, Tensor) or kind.number_of(other) is not None


def apart(target: Tensor, other: Tensor | None = None) -> bool:
    """Whether a tensor that is a view, or not row-major, can be written to like any other one: no
    history follows the write, no node counts it, and its elements lie apart from each other and
    from `other`'s."""
    root, data = target._root, target._data
    if root is not None:
        base: Any = target._base
        if root._inference or (base is not None and base._requires_grad and modes.grad.enabled):
            return False
        if root._requires_grad and root._counter is not None:
            return False
    if 0 in data.strides:
        return False
    if other is None or other is target:
        return True
    alone = other._root is None and other._storage is None
    if alone and not other._data.ndim and other is not root:
        return True
    return not np.may_share_memory(data, other._data)


def broadcast_error(a: np.ndarray, b: np.ndarray, error: Exception) -> Exception:
    """Torch's words where NumPy could not broadcast."""
    try:
        kind.broadcast_shape([a.shape, b.shape])
    except RuntimeError as found:
        return found
    return error


SHORT = {1: texts.unary, 2: texts.binary}


def make_operator(op: Op, called: str) -> Callable[..., Any]:
    """The form of a binary row behind Python's operators, which go by the name `called`."""
    path = Path(op, called)
    text = path.text = texts.binary(op, path.names, operator=True)
    function = dispatch.compile_function(f"{op.full_name} operator", text, path.scope(), path.name)
    return dispatch.finish(function, op)


def make_inplace_operator(op: Op, called: str) -> Callable[..., Any]:
    """The form behind Python's operators in place."""
    path = Path(op, called)
    name = f"{path.name}_"
    target, other = path.names
    head = f"def {name}({target}, {other}):"
    text = path.text = texts.inplace_binary(op, head, target, other, operator=True)
    function = dispatch.compile_function(
        f"{op.full_name} inplace operator", text, path.scope(inplace=True), name
    )
    return dispatch.finish(function, op)


def make_inplace(op: Op) -> Callable[..., Any]:
    """The in-place form of a pointwise row: `name_`."""
    path = Path(op)
    name = f"{path.name}_"
    head = f"def {name}({binder.signature_text(op)}):"
    target, *rest = path.names
    if len(rest) == len(path.names) - 1 == 1 and op.schema.arguments[1].type == "Tensor":
        text = path.text = texts.inplace_binary(op, head, target, rest[0])
    elif texts.takes_numbers(op):
        text = texts.inplace_numbers(op, head, path.names)
    else:
        text = f"{head}\n    return inplace({', '.join(path.names)})\n"
    scope = path.scope(inplace=True)
    function = dispatch.compile_function(f"{op.full_name} inplace", text, scope, name)
    function.path = path
    return dispatch.finish(function, op)
