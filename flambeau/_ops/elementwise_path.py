"""The generated call path of pointwise rows: functions, operators, and in-place forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops import binder, dispatch, outputs
from flambeau._ops import pointwise as kind
from flambeau._ops.op import Op
from flambeau._runtime import cpu
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import bump, check_inplace


def make_pointwise(op: Op) -> Callable[..., Any]:
    """The public function of a pointwise row."""
    path = Path(op)
    operands = [a for a in op.schema.arguments if kind.is_operand(a)]
    tensors = [a for a in operands if a.is_tensor and not a.optional]
    if has_alpha(op) or len(op.schema.arguments) == len(operands) == len(tensors) <= 2:
        text = SHORT[len(tensors)](op, path.names)
    elif takes_numbers(op):
        text = _numbers_text(op, path.names)
    else:
        text = _long_text(op, path.names)
    function = dispatch.compile_function(op.full_name, text, path.scope(), path.name)
    function.path = path
    return dispatch.finish(function, op)


def takes_numbers(op: Op) -> bool:
    """Whether a row is a function of tensors and then numbers: `leaky_relu(x, 0.01)`."""
    rest = op.schema.arguments[leading_tensors(op) :]
    return leading_tensors(op) > 0 and all(
        a.type in ("Scalar", "float") and not a.optional and not a.is_list for a in rest
    )  # fmt: skip


def leading_tensors(op: Op) -> int:
    """How many tensors a row begins with."""
    count = 0
    for argument in op.schema.arguments:
        if not argument.is_tensor or argument.is_list or argument.optional:
            break
        count += 1
    return count


def has_alpha(op: Op) -> bool:
    """Whether a row multiplies its second operand by `alpha`."""
    return kind.is_factor(op.schema.arguments[-1])


class Path:
    """What the call path of one row needs: its kernels and the long way round."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.name = op.public.rpartition(".")[2]
        self.kernels = kind.Kernels(op)
        self.arguments = tuple(a for a in op.schema.arguments if not kind.is_factor(a))
        self.names = [binder.python_name(op, a) for a in self.arguments]
        self.recorder = dispatch.Recorder(op) if op.backward else None

    def scope(self) -> dict[str, Any]:
        """Names for the generated text."""
        return {
            **dispatch.base_scope(self.op), "kernels": self.kernels, "general": self.general,
            "inplace": self.inplace, "operator": self.operator, "recorder": self.recorder,
            "scalars": SCALARS, "scalar_tensor": scalar_tensor, "ValueError": ValueError,
            "broadcast_error": broadcast_error, "scaled": scaled,
        }  # fmt: skip

    def general(self, *values: Any, out: Any = None) -> Any:
        """Any arguments: promotion, numbers, layouts, modes, `out=`."""
        if modes.watch.active:
            result = dispatch.watched(self.op, self.plain, values)
        else:
            result = self.plain(*values)
        return result if out is None else outputs.write_out(self.op, out, result, values)

    def plain(self, *values: Any) -> Tensor:
        """The long way without modes."""
        values = tuple(self._checked(values))
        operands = self._operands(values)
        result = kind.compute(self.op, self.kernels, operands)
        if self.recorder is not None and kind.wants_grad(values):
            element = kind.compute_dtype(self.op, operands)
            self.recorder.call(*kind.as_tensors(self.op, list(values), element), result)
        return result

    def _checked(self, values: tuple[Any, ...]) -> list[Any]:
        """Arguments with foreign numbers and arrays made ours; torch's TypeError for others."""
        checked = []
        for position, (argument, value) in enumerate(zip(self.arguments, values, strict=True)):
            if argument.is_tensor and not isinstance(value, Tensor) and value is not None:
                value = self._operand(position, value, values)
            elif argument.type in ("Scalar", "float", "int") and value is not None:
                value = self._number(value, values)
            checked.append(value)
        return checked

    def _number(self, value: Any, values: tuple[Any, ...]) -> Any:
        """A Python number, also from a 0-dim tensor or a NumPy scalar."""
        if isinstance(value, Tensor) and value._data.ndim == 0:
            return value._data.item()
        number = kind.number_of(value)
        if number is None:
            error = binder.argument_error(self.op, list(values))
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
        if self.op.numbers in ("other", "both") and len(self.arguments) > 1:
            raise binder.no_overload_error(self.name, [self.op], values, {})
        error = binder.argument_error(self.op, list(values))
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
            known = isinstance(value, (Tensor, np.ndarray)) or kind.number_of(value) is not None
            if not known:
                return NotImplemented
        return self.general(*values)

    def inplace(self, target: Tensor, *rest: Any) -> Tensor:
        """`target.op_(...)`: written through to the memory of `target`."""
        if modes.watch.active:
            return dispatch.watched(  # type: ignore[no-any-return]
                self.op, self._inplace, (target, *rest)
            )
        return self._inplace(target, *rest)

    def _inplace(self, target: Tensor, *rest: Any) -> Tensor:
        values = self._checked((target, *rest))
        recorded = kind.wants_grad(values)
        check_inplace(target, recorded)
        operands = self._operands(tuple(values))
        outputs.check_partial_overlap(target, operands)
        data = self._inplace_data(target, operands)
        if not recorded or self.recorder is None:
            outputs.inplace_array(target, data)
            bump(target)
            return target
        element = kind.compute_dtype(self.op, operands)
        before = kind.as_tensors(self.op, values, element)
        before[0] = wrap(cpu.copy(target._data))
        outputs.inplace_array(target, data)
        self.recorder.inplace(*before, target)
        return target

    def _inplace_data(self, target: Tensor, operands: list[Any]) -> np.ndarray:
        """The new values; shapes and types are checked before anything is written."""
        prepared = kind.Prepared(self.op, operands)
        outputs.check_cast(prepared.result.numpy_dtype, target._data.dtype)
        if prepared.shape != target._data.shape:
            outputs.check_inplace_shape(target._data.shape, prepared.shape)
        outputs.check_overlap(target._data)
        if not kind.supports(self.op, prepared.compute):
            raise kind.refusal(self.op, prepared.compute)
        with cpu.quiet():
            data = self.kernels[prepared.compute.numpy_dtype](*prepared.arrays, out=...)
        if data.dtype.kind not in "cb" and prepared.result.is_complex:
            raise RuntimeError(f"In-place {self.op.name} is not supported for complex tensors.")
        return data


SCALARS: dict[Any, Tensor] = {}
"""Numbers beside float tensors, as 0-dim tensors: (number, its class, dtype) -> tensor."""
SCALAR_LIMIT = 4096


def scalar_tensor(value: Any, numpy_dtype: Any) -> Tensor | None:
    """A cached 0-dim tensor for a number beside a tensor of a type that the number does not change.

    None where the general rules have to decide: half types (the number keeps float32 precision),
    float zeros (0.0 and -0.0 are one key), a float beside integers, integers that do not fit.
    """
    kind_ = numpy_dtype.kind
    if (not value and type(value) is not int) or numpy_dtype in kind.dt.NUMPY_HALVES:
        return None
    if kind_ == "f" or (kind_ == "c" and type(value) is float):
        pass
    elif kind_ != "i" or type(value) is not int or abs(value) >= 128:
        return None
    if len(SCALARS) >= SCALAR_LIMIT:
        SCALARS.clear()
    result = wrap(np.array(value, numpy_dtype))
    result._inference = False  # made in inference mode, it is still used outside
    SCALARS[value, type(value), numpy_dtype] = result
    return result


def number_tensor(value: Any) -> Tensor:
    """A number as a tensor of the number's own type."""
    return wrap(np.array(value, kind.dtype_of_number(value).numpy_dtype))


def broadcast_error(a: np.ndarray, b: np.ndarray, error: Exception) -> Exception:
    """Torch's words where NumPy could not broadcast."""
    try:
        kind.broadcast_shape([a.shape, b.shape])
    except RuntimeError as found:
        return found
    return error


def scaled(tensor: Any, other: Any, alpha: Any) -> Any:
    """`alpha * other`, with torch's checks of alpha's type."""
    common = kind.common_dtype([v for v in (tensor, other) if v is not None])
    if isinstance(alpha, bool) and common is not kind.dt.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and kind.category(common) < kind.FLOAT:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating "
                           "point number.")  # fmt: skip
    if isinstance(alpha, complex) and not common.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex "
                           "number.")  # fmt: skip
    return other * alpha


# ---- templates


def _head(op: Op, names: list[str], name: str, out: bool) -> str:
    text = binder.signature_text(op, "out=None" if out else "")
    return f"def {name}({text}):"


def _unary_text(op: Op, names: list[str]) -> str:
    (x,) = names
    lines = [
        _head(op, names, op.public.rpartition(".")[2], out=True),
        "    try:",
        f"        a = {x}._data",
        "    except AttributeError:",
        f"        return general({x}, out=out)",
        f"    if watch.active or out is not None or {irregular('a')}:",
        f"        return general({x}, out=out)",
        *_kernel_lines("kernels[a.dtype](a, out=...)", "raise"),
        *_record(op, f"{x}._requires_grad", x),
        "    return result",
    ]
    return "\n".join(lines) + "\n"


def irregular(array: str) -> str:
    """The test for layouts that the general rules have to hand on."""
    return (f"({array}.ndim > 1 and not {array}.flags.c_contiguous)"
            f" or ({array}.base is not None and 1 in {array}.shape)")  # fmt: skip


def _scaling_lines(x: str, y: str) -> list[str]:
    return ["    if alpha != 1:", f"        {y} = scaled({x}, {y}, alpha)"]


def _binary_text(op: Op, names: list[str], *, operator: bool = False) -> str:
    x, y = names
    name = op.public.rpartition(".")[2]
    scaling = has_alpha(op) and not operator
    general = f"operator({x}, {y})" if operator else f"general({x}, {y}, out=out)"
    out_test = "" if operator else "out is not None or "
    lines = [
        f"def {name}({x}, {y}):" if operator else _head(op, names, name, out=True),
        *(_scaling_lines(x, y) if scaling else []),
        *_operand_lines(op, x, y, general),
        f"    if ({out_test}watch.active or dtype is not b.dtype",
        f"            or {irregular('a')}",
        f"            or {irregular('b')}):",
        f"        return {general}",
        *_kernel_lines("kernels[dtype](a, b, out=...)", "raise broadcast_error(a, b, error)"),
        *_record(op, f"{x}._requires_grad or {y}._requires_grad", f"{x}, {y}"),
        "    return result",
    ]
    return "\n".join(lines) + "\n"


def _operand_lines(op: Op, x: str, y: str, general: str) -> list[str]:
    """The arrays of two operands; a number beside a tensor becomes a cached 0-dim tensor."""
    number = [
        "        if kind is float or kind is int:",
        f"            number = scalars.get(({y}, kind, dtype))",
        "            if number is None:",
        f"                number = scalar_tensor({y}, dtype)",
        "            if number is None:",
        f"                return {general}",
        f"            {y} = number",
    ]
    return [
        *([f"    kind = {y}.__class__"] if op.numbers != "none" else []),
        "    try:",
        f"        a = {x}._data",
        "        dtype = a.dtype",
        *(number if op.numbers != "none" else []),
        f"        b = {y}._data",
        "    except AttributeError:",
        f"        return {general}",
    ]


def _mixed_lines(names: list[str], count: int, general: str) -> list[str]:
    """The arrays of `count` tensors of one type, and 0-dim arrays of the numbers that follow."""
    lines = ["    try:", f"        a = {names[0]}._data", "        dtype = a.dtype"]
    lines += [f"        a{i} = {names[i]}._data" for i in range(1, count)]
    lines += ["    except AttributeError:", f"        return {general}"]
    for i in range(1, count):
        lines += [f"    if a{i}.dtype is not dtype or {irregular(f'a{i}')}:",
                  f"        return {general}"]  # fmt: skip
    for number in names[count:]:
        lines += [
            f"    kind = {number}.__class__",
            "    if kind is not float and kind is not int:",
            f"        return {general}",
            f"    n_{number} = scalars.get(({number}, kind, dtype))",
            f"    if n_{number} is None:",
            f"        n_{number} = scalar_tensor({number}, dtype)",
            f"        if n_{number} is None:",
            f"            return {general}",
        ]
    return lines


def _mixed_arrays(names: list[str], count: int) -> str:
    arrays = ["a", *[f"a{i}" for i in range(1, count)]]
    return ", ".join([*arrays, *[f"n_{number}._data" for number in names[count:]]])


def _numbers_text(op: Op, names: list[str]) -> str:
    """Tensors and then numbers."""
    name = op.public.rpartition(".")[2]
    general = f"general({', '.join(names)}, out=out)"
    count = leading_tensors(op)
    flags = " or ".join([f"{tensor}._requires_grad" for tensor in names[:count]])
    kernel = f"kernels[dtype]({_mixed_arrays(names, count)}, out=...)"
    lines = [
        _head(op, names, name, out=True),
        *_mixed_lines(names, count, general),
        "    if watch.active or out is not None or (a.ndim > 1 and not a.flags.c_contiguous):",
        f"        return {general}",
        *_kernel_lines(kernel, f"return {general}"),
        *_record(op, flags, ", ".join(names)),
        "    return result",
    ]
    return "\n".join(lines) + "\n"


def _kernel_lines(call: str, failure: str) -> list[str]:
    return [
        "    token = enter_quiet(QUIET)",
        "    try:",
        f"        data = {call}",
        "    except ValueError as error:",
        f"        {failure}",
        "    finally:",
        "        leave_quiet(token)",
        "    result = new(Tensor)",
        "    result._data = data",
    ]


def _record(op: Op, flags: str, arguments: str) -> list[str]:
    if not op.backward:
        return []
    return [
        f"    if ({flags} or rewritten.count) and grad_state.enabled:",
        f"        recorder.call({arguments}{', 1' if has_alpha(op) else ''}, result)",
    ]


def _long_text(op: Op, names: list[str]) -> str:
    name = op.public.rpartition(".")[2]
    return f"{_head(op, names, name, out=True)}\n    return general({', '.join(names)}, out=out)\n"


SHORT = {1: _unary_text, 2: _binary_text}


def make_operator(op: Op) -> Callable[..., Any]:
    """The form of a binary row behind Python's operators."""
    path = Path(op)
    text = _binary_text(op, path.names, operator=True)
    function = dispatch.compile_function(f"{op.full_name} operator", text, path.scope(), path.name)
    return dispatch.finish(function, op)


def make_inplace(op: Op) -> Callable[..., Any]:
    """The in-place form of a pointwise row: `name_`."""
    path = Path(op)
    name = f"{path.name}_"
    head = f"def {name}({binder.signature_text(op)}):"
    target, *rest = path.names
    if len(rest) == len(path.names) - 1 == 1 and op.schema.arguments[1].type == "Tensor":
        text = _inplace_binary_text(op, head, target, rest[0])
    elif takes_numbers(op):
        text = _inplace_numbers_text(op, head, path.names)
    else:
        text = f"{head}\n    return inplace({', '.join(path.names)})\n"
    function = dispatch.compile_function(f"{op.full_name} inplace", text, path.scope(), name)
    return dispatch.finish(function, op)


def _inplace_numbers_text(op: Op, head: str, names: list[str]) -> str:
    """Short path: float tensors that need no recording, and numbers."""
    x, count = names[0], leading_tensors(op)
    general = f"inplace({', '.join(names)})"
    if op.promote == "bool":
        return f"{head}\n    return {general}\n"
    views = "".join([f" or {tensor}._root is not None" for tensor in names[:count]])
    wanted = " or ".join([f"{tensor}._requires_grad" for tensor in names[:count]])
    lines = [
        head,
        *_mixed_lines(names, count, general),
        "    if (watch.active or dtype.kind != 'f' or rewritten.count",
        f"            or {x}._inference{views} or not a.flags.c_contiguous",
        f"            or (({wanted} or {x}._creation) and grad_state.enabled)):",
        f"        return {general}",
        "    token = enter_quiet(QUIET)",
        "    try:",
        f"        kernels[dtype]({_mixed_arrays(names, count)}, out=a)",
        "    except ValueError:",
        f"        return {general}",
        "    finally:",
        "        leave_quiet(token)",
        f"    {x}._version_count += 1",
        f"    return {x}",
    ]
    return "\n".join(lines) + "\n"


def _inplace_binary_text(op: Op, head: str, x: str, y: str) -> str:
    """Short path: tensors of one type that need no recording, result of the same shape."""
    lines = [
        head,
        *(_scaling_lines(x, y) if has_alpha(op) else []),
        *_operand_lines(op, x, y, f"inplace({x}, {y})"),
        "    if (watch.active or dtype is not b.dtype or promote_bool or rewritten.count",
        f"            or {x}._inference or {x}._root is not None or {y}._root is not None",
        "            or not a.flags.c_contiguous",
        f"            or (({x}._requires_grad or {y}._requires_grad or {x}._creation)",
        "                and grad_state.enabled)):",
        f"        return inplace({x}, {y})",
        "    token = enter_quiet(QUIET)",
        "    try:",
        "        kernels[dtype](a, b, out=a)",
        "    except ValueError:",
        f"        return inplace({x}, {y})",
        "    finally:",
        "        leave_quiet(token)",
        f"    root = {x}._root",
        "    if root is None:",
        f"        {x}._version_count += 1",
        "    else:",
        "        root._version_count += 1",
        f"    return {x}",
    ]
    text = "\n".join(lines) + "\n"
    return text.replace("promote_bool or ", "True or " if op.promote != "default" else "")
