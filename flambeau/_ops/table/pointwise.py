"""The kind `pointwise`: kernels by dtype, promotion, and the short call path for tensors.

`Kernels` maps a NumPy dtype to the function that computes a row in it. The generated call path
covers tensors of one dtype (and numbers beside a float tensor); everything else takes `compute`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr, primitives, trace
from flambeau._compiler.numpy_source import compile_kernel, single_ufunc
from flambeau._compiler.primitives import PRIMITIVES
from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.layout import channels_last_strides, contiguous_strides, is_dense
from flambeau._core.promotion import FLOAT, category, combine, dtype_of_number, promote_types
from flambeau._ops.table import scalars
from flambeau._ops.table.op import Op
from flambeau._runtime import choice, cpu
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import rewritten

FLOAT32 = np.dtype(np.float32)
LIMIT = choice.limit("pointwise")
"""Elements from which on copies and single additions are compiled loops."""
LETTER = {
    "b": "bool",
    "i": "int",
    "u": "int",
    "f": "float",
    "V": "float",
    "c": "complex",
    "W": "complex",
}
COMPLEX32, COMPLEX64 = dt.complex32.numpy_dtype, dt.complex64.numpy_dtype
ROUNDED = {COMPLEX64: COMPLEX32, FLOAT32: dt.float16.numpy_dtype}
"""What is computed for complex32 in a type, and the type that it is rounded to."""
HALF_UFUNCS = frozenset(
    (np.add, np.subtract, np.multiply, np.divide, np.negative, np.absolute, np.maximum, np.minimum,
     np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.sqrt,
     np.floor, np.ceil, np.trunc, np.rint, np.isnan, np.isinf, np.isfinite, np.signbit,
     np.copysign, np.sign, np.positive, np.nextafter)
)  # fmt: skip
"""Ufuncs whose float16 and bfloat16 loops round once, as float32 arithmetic would."""
VECTORISED = frozenset((np.exp, np.exp2, np.log, np.log2, np.sin, np.cos, np.tanh))
BY_ELEMENT = frozenset(
    (np.expm1, np.log10, np.log1p, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.sinh,
     np.cosh, np.arcsinh, np.arccosh, np.arctanh, np.hypot, np.fmod, np.power, np.logaddexp,
     np.logaddexp2, np.nextafter)
)  # fmt: skip
"""Functions that take NumPy several nanoseconds an element."""


class Kernels(dict[Any, Callable[..., np.ndarray]]):
    """NumPy dtype -> kernel(*arrays, out=...), built when first asked for."""

    def __init__(self, op: Op) -> None:
        super().__init__()
        self.op = op
        self.names = [a.name for a in op.schema.arguments if is_operand(a)]
        self.plans: dict[Any, CallPlan] = {}
        self.tables.append(self)

    tables: list[Kernels] = []

    def __missing__(self, numpy_dtype: Any) -> Callable[..., np.ndarray]:
        kernel = self._build(numpy_dtype)
        self[numpy_dtype] = kernel
        return kernel

    def _build(self, numpy_dtype: Any) -> Callable[..., np.ndarray]:
        element = dt.from_numpy_dtype(numpy_dtype)
        if not supports(self.op, element):
            return self._refusal(element)
        computed = row_dtype(self.op, element)
        if computed is not element:
            return _converting(self, computed.numpy_dtype)
        expression = trace(self.op.body, self.names)
        if element is dt.complex32:
            return _through_complex64(self)
        letter = "f" if element.is_floating_point else numpy_dtype.kind
        kernel = compile_kernel(self.op.full_name, expression, self.names, letter)
        if element in dt.HALVES and kernel not in HALF_UFUNCS:
            return _through_float32(kernel, numpy_dtype)
        return kernel

    def _refusal(self, element: dt.dtype) -> Callable[..., np.ndarray]:
        def refuse(*arrays: Any, out: Any = ...) -> np.ndarray:
            broadcast_shape([a.shape for a in arrays])  # its error comes first
            raise refusal(self.op, element)

        return refuse


def _forget_kernels() -> None:
    for table in Kernels.tables:
        table.clear()
        table.plans.clear()


dt.on_default_change.append(_forget_kernels)


def is_factor(argument: Any) -> bool:
    """Whether a parameter is the `alpha` of add and sub: see `number_operands.scaled`."""
    return argument.name == "alpha" and argument.keyword_only


def is_operand(argument: Any) -> bool:
    """Whether a parameter takes part in the arithmetic: tensors and numbers do."""
    if is_factor(argument):
        return False
    return argument.type in ("Tensor", "Scalar", "float", "int") and not argument.is_list


def supports(op: Op, element: dt.dtype) -> bool:
    """Whether a row is defined for an element type; `dtypes` lists bool, int, float, complex."""
    if element is dt.complex32:
        return op.complex_half
    if "float8" in element.name or element.name in ("uint16", "uint32", "uint64"):
        return op.name in STORAGE_OPS
    if not op.dtypes:
        return True
    words = op.dtypes.split()
    return LETTER[element.numpy_dtype.kind] in words or element.name in words


STORAGE_OPS = frozenset(("eq", "ne"))


def refusal(op: Op, element: dt.dtype) -> Exception:
    """Torch's error for an operator that a type does not have."""
    known = op.refusals.get(LETTER[element.numpy_dtype.kind])
    if known is not None:
        return type(known)(*known.args)
    return NotImplementedError(f"\"{op.label}\" not implemented for '{element.scalar_name}'")


def _converting(table: Kernels, target: Any) -> Callable[..., np.ndarray]:
    """Integers and bools enter a float operator as the default type, bools some others as int64."""

    def kernel(*arrays: np.ndarray, out: Any = ...) -> np.ndarray:
        return table[target](*[a.astype(target) for a in arrays], out=out)

    return kernel


def _through_float32(inner: Callable[..., Any], numpy_dtype: Any) -> Callable[..., np.ndarray]:
    """Half types are computed in float32 and rounded once."""

    def kernel(*arrays: np.ndarray, out: Any = ...) -> np.ndarray:
        raised = [a.astype(FLOAT32) if a.dtype == numpy_dtype else a for a in arrays]
        result = inner(*raised)
        if result.dtype == FLOAT32:
            result = result.astype(numpy_dtype)
        elif result.dtype == COMPLEX64:
            result = result.astype(COMPLEX32)
        if out is ...:
            return np.asarray(result)
        out[...] = result
        return out  # type: ignore[no-any-return]

    return kernel


def _through_complex64(table: Kernels) -> Callable[..., np.ndarray]:
    """complex32 is computed in complex64 and rounded once."""

    def kernel(*arrays: np.ndarray, out: Any = ...) -> np.ndarray:
        raised = [a.astype(COMPLEX64) if a.dtype == COMPLEX32 else a for a in arrays]
        result = np.asarray(table[COMPLEX64](*raised))
        rounded = ROUNDED.get(result.dtype, result.dtype)
        if out is ...:
            return result.astype(rounded)
        out[...] = result
        return out  # type: ignore[no-any-return]

    return kernel


# ---- the long way


def number_of(value: Any) -> Any:
    """A Python number from a number-like argument, or None."""
    if isinstance(value, (int, float, complex)):  # bool and NumPy's float64 are among these
        return value if not isinstance(value, np.generic) else value.item()
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value.item()
    return None


def common_dtype(operands: Any) -> dt.dtype:
    """The promoted type of tensors and numbers (`torch.result_type`)."""
    groups: list[dt.dtype | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Tensor):
            found, group = operand.dtype, (0 if operand._data.ndim else 1)
        else:
            found, group = dtype_of_number(operand), 2
        known = groups[group]
        groups[group] = found if known is None else promote_types(known, found)
    return combine(*groups)


def broadcast_shape(shapes: Any) -> tuple[int, ...]:
    """The common shape, or torch's error that names the first dim that does not fit."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        result = _broadcast_two(result, shape)
    return result


def _broadcast_two(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    if not left or left == right:
        return tuple(right)
    length = max(len(left), len(right))
    a = (1,) * (length - len(left)) + tuple(left)
    b = (1,) * (length - len(right)) + tuple(right)
    sizes = []
    for dim in reversed(range(length)):
        if a[dim] != b[dim] and 1 not in (a[dim], b[dim]):
            raise RuntimeError(
                f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) at "
                f"non-singleton dimension {dim}"
            )
        sizes.append(b[dim] if a[dim] == 1 else a[dim])
    return tuple(reversed(sizes))


def result_strides(arrays: list[np.ndarray], shape: tuple[int, ...],
                   numbers: bool = False) -> Any:  # fmt: skip
    """Strides of an elementwise result; None for row-major.

    Operands of one shape that are all row-major, all channels-last, or all dense with the same
    strides, hand their layout on; otherwise the dims are put in order by the operands' strides. A
    number counts as an operand of another shape, as in torch.
    """
    if not numbers and all(a.shape == shape for a in arrays):
        if all(a.flags.c_contiguous for a in arrays):
            return None
        if len(shape) == 4 and 1 in shape and all(map(_lies_channels_last, arrays)):
            return channels_last_strides(shape)
        strides = cpu.element_strides(arrays[0])
        if len({a.strides for a in arrays}) == 1 and is_dense(shape, strides):
            return strides
    return _strides_by_order(shape, tuple([(a.shape, a.strides) for a in arrays]))


def _lies_channels_last(array: np.ndarray) -> bool:
    """Whether images lie with their channels innermost, whatever the strides of dims of size 1."""
    places = zip(array.shape, array.strides, channels_last_strides(array.shape), strict=True)
    return all(size == 1 or have == want * array.itemsize for size, have, want in places)


@lru_cache(1024)  # training repeats its shapes
def _strides_by_order(shape: tuple[int, ...], layouts: tuple[Any, ...]) -> Any:
    spread = [_broadcast_strides(sizes, old, shape) for sizes, old in layouts]
    return cpu.operand_strides(shape, spread)


def _broadcast_strides(sizes: tuple[int, ...], old: tuple[int, ...],
                       shape: tuple[int, ...]) -> tuple[int, ...]:  # fmt: skip
    missing = len(shape) - len(sizes)
    strides = [0] * missing
    for size, wanted, stride in zip(sizes, shape[missing:], old, strict=True):
        strides.append(0 if size == 1 and wanted != 1 else stride)
    return tuple(strides)


class CallPlan:
    """What types, shapes and strides of operands settle: the type that is computed in, how each
    operand comes to it, and the result's shape, type and layout."""

    __slots__ = ("casts", "compute", "loose", "numbers", "relaid", "result", "shape", "size",
                 "steps", "strides", "supported", "uncast")  # fmt: skip

    def __init__(self, op: Op, operands: Sequence[Any]) -> None:
        self.compute = compute_dtype(op, operands)
        self.supported = supports(op, self.compute)
        self.result = dt.bool_ if op.promote == "bool" else self.compute
        layouts = [operand._data for operand in operands if isinstance(operand, Tensor)]
        self.shape = broadcast_shape([data.shape for data in layouts])
        self.size = prod(self.shape)
        if len(operands) == 1 and layouts[0].dtype != self.compute.numpy_dtype:
            layouts = [converted_layout(layouts[0])]
        strides = None
        if len(self.shape) > 1 and not op.row_major:
            strides = result_strides(layouts, self.shape, len(layouts) < len(operands))
        self.strides = strides  # in elements; None: row-major
        wanted = contiguous_strides(self.shape) if strides is None else strides
        self.steps = tuple([step * self.result.numpy_dtype.itemsize for step in wanted])
        places = range(len(operands))
        self.casts = tuple([self._cast(op, k, operands[k], True) for k in places])
        self.loose = tuple([self._cast(op, k, operands[k], False) for k in places])
        self.uncast = all(cast is None for cast in self.casts)  # a float64 == None
        self.numbers = _number_makers(op, operands)
        self.relaid = False

    def _cast(self, op: Op, place: int, operand: Any, convert: bool) -> Any:
        """The type that an operand is cast to, None if it stays; without `convert` all do that
        have dims."""
        numpy_dtype = self.compute.numpy_dtype
        data = operand._data if isinstance(operand, Tensor) else None
        if data is not None and (data.dtype == numpy_dtype or (data.ndim > 0 and not convert)):
            return None
        if self.compute in dt.HALVES and not op.rounds[place] and (data is None or data.ndim == 0):
            return FLOAT32
        return numpy_dtype

    def arrays(self, operands: Sequence[Any]) -> list[np.ndarray]:
        """The operands in the type that is computed in."""
        if self.uncast:
            return [operand._data for operand in operands]
        return [
            _cast_to(cast, x, number)
            for cast, x, number in zip(self.casts, operands, self.numbers, strict=True)
        ]

    def write(
        self, operands: Sequence[Any], large: Any, out: np.ndarray | None
    ) -> np.ndarray | None:
        """The result of a compiled kernel, in `out` or in new memory with torch's strides; None
        where NumPy has to compute."""
        if self.size < large.limit:
            return None
        fusion = large.fusion(self.compute.numpy_dtype)
        if fusion is None:
            return None
        arrays = [
            _cast_to(cast, x, number)
            for cast, x, number in zip(self.loose, operands, self.numbers, strict=True)
        ]
        if out is None:
            if self.strides is None:
                results = fusion.run(arrays)
                return None if results is None else results[0]  # type: ignore[no-any-return]
            out = self._empty(self.result.numpy_dtype)
        return None if fusion.run(arrays, (out,)) is None else out

    def run(self, operands: Sequence[Any], kernel: Callable[..., np.ndarray]) -> np.ndarray:
        """The result in new memory, with torch's strides."""
        arrays = self.arrays(operands)
        if self.relaid:
            return kernel(*arrays, out=self._empty(self.result.numpy_dtype))
        data = kernel(*arrays, out=...)
        if self.compute in dt.HALVES and data.dtype == FLOAT32:
            data = data.astype(self.result.numpy_dtype)
        if data.base is None and (data.strides == self.steps or not self.size):
            return data
        if not self.shape:
            return data if data.base is None else np.array(data)
        placed = self._empty(data.dtype)
        if data.base is None and data.strides == placed.strides:
            return data
        self.relaid = data.dtype == self.result.numpy_dtype
        placed[...] = data
        return placed

    def _empty(self, numpy_dtype: np.dtype[Any]) -> np.ndarray:
        strides = contiguous_strides(self.shape) if self.strides is None else self.strides
        return cpu.empty_strided(self.shape, strides, numpy_dtype)


NumberMaker = Callable[[Any, Any], np.ndarray]


def _cast_to(cast: Any, operand: Any, number: NumberMaker) -> np.ndarray:
    if cast is None:
        return operand._data  # type: ignore[no-any-return]
    if isinstance(operand, Tensor):
        return operand._data.astype(cast)  # type: ignore[no-any-return]
    return number(operand, cast)


ANY_NUMBER = ("pow",)
"""Operators that take numbers beyond their types; for which they do not, they check."""


def _number_makers(op: Op, operands: Sequence[Any]) -> tuple[NumberMaker, ...]:
    """How the operands that are numbers become arrays: those that stand for a tensor wrap round as
    in C, parameters that are numbers have to fit into the type that is computed in."""
    parameters = [argument for argument in op.schema.arguments if is_operand(argument)]
    if len(parameters) != len(operands) or op.public in ANY_NUMBER:
        return (number_array,) * len(operands)
    return tuple(
        number_array if parameter.is_tensor else scalars.checked_number for parameter in parameters
    )


MOST_PLANS = 512
"""Plans of one row."""


def plan_of(kernels: Kernels, operands: Sequence[Any]) -> CallPlan:
    """The plan of a call. Making one takes ten times as long as finding it
    (benchmarks/op_overhead.py, "add of columns")."""
    key: list[Any] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            data = operand._data
            key += (data.shape, data.strides, data.dtype.num)
        else:
            key.append(operand.__class__)
    layouts = tuple(key)
    found = kernels.plans.get(layouts)
    if found is None:
        if len(kernels.plans) >= MOST_PLANS:
            kernels.plans.clear()
        found = kernels.plans[layouts] = CallPlan(kernels.op, operands)
    return found


def converted_layout(data: np.ndarray) -> np.ndarray:
    """An array laid out as a copy of `data` in another type: torch converts a single operand
    first, and then goes by the copy's layout."""
    strides = cpu.preserved_strides(data)
    return np.empty(data.shape, bool) if strides is None else cpu.empty_strided(
        data.shape, strides, np.dtype(bool))  # fmt: skip


MIN_WHOLE, MAX_WHOLE = -(1 << 63), (1 << 64) - 1


def number_array(value: Any, numpy_dtype: Any) -> np.ndarray:
    """A 0-dim array of a number; integers wrap round as in C."""
    if isinstance(value, complex) and numpy_dtype.kind not in "cW":
        raise scalars.overflow(numpy_dtype)
    if isinstance(value, int) and not MIN_WHOLE <= value <= MAX_WHOLE:
        scalars.check_whole(value)
    if numpy_dtype.kind in "iu" and isinstance(value, int):
        bits = 8 * numpy_dtype.itemsize
        return np.array(value % (1 << bits), np.uint64).astype(numpy_dtype)
    if numpy_dtype.kind in "iu" and isinstance(value, float):
        return scalars.checked_number(value, numpy_dtype)
    return cpu.converted(value, numpy_dtype)


def limit_of(op: Op, names: list[str]) -> int:
    """Elements from which on a compiled kernel computes a row (see `compiled`): the more NumPy has
    to do for an element, the fewer."""
    expression = trace(op.body, names)
    ufunc = single_ufunc(expression, "f")
    if ufunc is None:
        return choice.limit(_chain(expression))
    if ufunc in VECTORISED:
        return choice.limit("pointwise function")
    return choice.limit("pointwise element" if ufunc in BY_ELEMENT else "pointwise")


SPECIAL = "flambeau._ops.special.functions"
"""Where functions live that are many NumPy calls."""
LONG_CHAIN = 5


def _chain(expression: Expr) -> str:
    """The kind of work that an expression of several NumPy calls is."""
    names = primitives(expression)
    if any(PRIMITIVES[name].__module__ == SPECIAL for name in names):
        return "pointwise special"
    return "pointwise long chain" if len(names) >= LONG_CHAIN else "pointwise chain"


def row_dtype(op: Op, element: dt.dtype) -> dt.dtype:
    """The type that a row computes in for operands of one type."""
    if op.promote == "float" and category(element) < FLOAT:
        return dt.default_dtype()
    if op.promote == "int" and element is dt.bool_:
        return dt.int64
    return element


def compute_dtype(op: Op, operands: Sequence[Any]) -> dt.dtype:
    """The type that the kernel works in."""
    if op.promote == "tensors":  # numbers are converted to the tensors' type
        operands = [operand for operand in operands if isinstance(operand, Tensor)]
    return row_dtype(op, common_dtype(operands))


def compute(kernels: Kernels, large: Any, operands: Sequence[Any]) -> Tensor:
    """A pointwise result by the general rules, not recorded."""
    plan = plan_of(kernels, operands)
    if not plan.supported:
        raise refusal(kernels.op, plan.compute)
    data = plan.write(operands, large, None)
    if data is None:
        token = cpu.enter_quiet(cpu.QUIET)
        try:
            data = plan.run(operands, kernels[plan.compute.numpy_dtype])
        finally:
            cpu.leave_quiet(token)
    return wrap(data)


def wants_grad(values: Any) -> bool:
    """Whether a call with these arguments has to be recorded."""
    if not modes.grad.enabled:
        return False
    for value in values:
        kind = value.__class__
        if kind is Tensor or isinstance(value, Tensor):
            if value._requires_grad or (rewritten.count and value.requires_grad):
                return True
        elif kind is int or kind is float:
            continue
        elif isinstance(value, (list, tuple)) and wants_grad(value):
            return True
    return False


def as_tensors(op: Op, values: list[Any], element: dt.dtype) -> list[Any]:
    """Arguments as formulas get them: numbers in place of tensors become 0-dim tensors."""
    converted = []
    if len(values) < len(op.schema.arguments):
        values = [*values, 1]  # alpha: the operand was multiplied by it already
    for argument, value in zip(op.schema.arguments, values, strict=True):
        is_number = argument.is_tensor and not argument.is_list and not isinstance(value, Tensor)
        if is_number and value is not None:
            value = _shared_number(value, element.numpy_dtype)
        converted.append(value)
    return converted


NUMBERS: dict[Any, Tensor] = {}
"""What formulas get of numbers: (number as text, its class, dtype) -> 0-dim tensor."""
MOST_NUMBERS = 4096
SHARED: dict[int, Tensor] = {}
"""All 0-dim tensors that stand for numbers, by their `id`."""


def shared_number(tensor: Tensor) -> Tensor:
    """A tensor that stands for a number from now on."""
    tensor._inference = False  # made in inference mode, it is still used outside
    SHARED[id(tensor)] = tensor
    return tensor


def forget_numbers(table: dict[Any, Tensor]) -> None:
    """Empty a table of numbers."""
    for tensor in table.values():
        SHARED.pop(id(tensor), None)
    table.clear()


def _shared_number(value: Any, numpy_dtype: Any) -> Tensor:
    key = repr(value), type(value), numpy_dtype
    found = NUMBERS.get(key)
    if found is None:
        if len(NUMBERS) >= MOST_NUMBERS:
            forget_numbers(NUMBERS)
        found = NUMBERS[key] = shared_number(wrap(number_array(value, numpy_dtype)))
    return found
