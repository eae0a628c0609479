"""Tensors of evenly spaced numbers: `arange`, `linspace`, `logspace`; and `eye`."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache, partial
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.allocation import overflowed
from flambeau._core.device import CPU, refuse_pinned
from flambeau._core.settings import users_level
from flambeau._ops.factories.making import LARGEST, OPTIONS, finish, of_out, options
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import refuse, require_known
from flambeau._ops.table.binder import is_integer, plain_type_name, type_name
from flambeau._ops.table.op import composite
from flambeau._ops.table.scalars import checked_number, filling, real
from flambeau._runtime import choice, cpu
from flambeau._runtime.warming import cached
from flambeau._tensor.tensor import Tensor

VECTOR_BYTES = 32
"""Torch fills float ranges by vectors of this size; each starts from a value rounded once."""
NUMBER = (int, float, np.number)
FLOAT64, COMPLEX128 = np.dtype(np.float64), np.dtype(np.complex128)


def _number(value: Any, name: str, position: int, function: str) -> Any:
    """A Python number from a number or a one-element tensor."""
    if value.__class__ is float or value.__class__ is int:
        return value
    if isinstance(value, Tensor):
        return value._data.item() if value._data.dtype.kind != "V" else float(value._data)
    if isinstance(value, NUMBER):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex):
        real(value)
    raise TypeError(f"{function}(): argument '{name}' (position {position}) must be Number, not "
                    f"{plain_type_name(value)}")  # fmt: skip


@composite(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor", method=False
)
def arange(*bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, out: Any = None,
           dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Numbers from `start` (0) up to, but without, `end`, `step` (1) apart.

    Shape [ceil((end - start) / step)].

    int64 if all three are integers, else the default type.

    >>> import flambeau as torch
    >>> torch.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if pin_memory is not False:
        refuse_pinned("arange", pin_memory)
    if len(bounds) == 1:
        start, end = (start, bounds[0]) if end is None else (bounds[0], end)
    elif len(bounds) == 2:
        start, end = bounds
    elif len(bounds) == 3:
        start, end, step = bounds
    elif end is None:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    dtype = of_out("arange", out, dtype, layout, device)
    if dtype is None and type(start) is type(end) is type(step) is int:
        numpy_dtype = options(dt.int64, layout, device)
    else:
        place = 1 if len(bounds) < 2 else 2
        start, end = _number(start, "start", 1, "arange"), _number(end, "end", place, "arange")
        step = _number(step, "step", 3, "arange")
        if dtype is None:
            dtype = _dtype_of_range(start, end, step)
        numpy_dtype = options(dtype, layout, device)
    data = _range(start, end, step, numpy_dtype)
    if out is not None:
        _warn_of_another_count(out._data, data.size)
    return finish(data, requires_grad, out, counted=True)


def _warn_of_another_count(out: np.ndarray, count: int) -> None:
    if out.size in (0, count):
        return
    warnings.warn(
        f"The number of elements in the out tensor of shape {list(out.shape)} is {out.size} which "
        f"does not match the computed number of elements {count}. Note that this may occur as a "
        "result of rounding error. The out tensor will be resized to a tensor of shape "
        f"({count},).",
        UserWarning,
        stacklevel=3,
    )


def _dtype_of_range(*numbers: Any) -> dt.dtype:
    if float in map(type, numbers):
        return dt.default_dtype()
    return dt.int64


def _range(start: Any, end: Any, step: Any, numpy_dtype: Any) -> np.ndarray:
    kind = numpy_dtype.kind
    if numpy_dtype == np.int64:
        if step and not int(step):
            raise ValueError("step must be nonzero")
        start, end, step = int(start), int(end), int(step)
    elif kind not in "iu" and (kind not in "fV" or numpy_dtype.itemsize == 1):
        name = dt.from_numpy_dtype(numpy_dtype).scalar_name
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{name}'")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    for bound in (start, end):
        if not math.isfinite(bound):
            raise RuntimeError(f"unsupported range: {_shown(start)} -> {_shown(end)}")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = numpy_dtype == np.int64
    length = -((start - end) // step) if whole else math.ceil((end - start) / step)
    if length * numpy_dtype.itemsize > LARGEST:
        for number in (start, end, step):
            real(number)
        raise RuntimeError("invalid size, possible overflow?")
    if whole:
        return np.arange(start, end, step, dtype=numpy_dtype)
    if kind in "iu":  # as many as of floats, but whole steps
        return (int(start) + int(step) * np.arange(length)).astype(numpy_dtype)
    return _float_range(start, length, step, numpy_dtype)


def _shown(number: float) -> str:
    return f"{number:g}"


def _float_range(start: float, length: int, step: float, numpy_dtype: Any) -> np.ndarray:
    """`start + step * i`, rounded as torch's loop does: see VECTOR_BYTES."""
    working = np.float32 if numpy_dtype.itemsize == 2 else np.float64
    exact: np.ndarray = np.arange(length, dtype=working)
    exact *= float(step)
    exact += float(start)
    result = exact.astype(numpy_dtype)
    lanes = VECTOR_BYTES // numpy_dtype.itemsize
    whole = length // (2 * lanes) * (2 * lanes)
    if whole and not (float(start).is_integer() and float(step).is_integer()):
        vectors = result[:whole].reshape(-1, lanes)
        first = vectors[:, :1].astype(FLOAT64)
        offsets = np.arange(lanes, dtype=FLOAT64)
        offsets *= float(working(step))
        np.add(first, offsets, out=vectors, casting="unsafe")
    return result


UNPINNED = OPTIONS.replace("bool? pin_memory=False, ", "")


@composite(
    f"range.step(Scalar start, Scalar end, Scalar step=1, {UNPINNED}) -> Tensor", method=False
)
def range(start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None,
          layout: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:  # fmt: skip
    """As `arange`, but with `end`, always in the default type, and not on the default device.

    Shape [floor((end - start) / step) + 1].

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     x = torch.range(1, 3)
    >>> x
    tensor([1., 2., 3.])
    """
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        UserWarning,
        stacklevel=users_level(2),
    )
    if end is None:
        start, end = 0, start
    for bound in (start, end, step):
        if isinstance(bound, (int, complex)):
            real(bound)
    numpy_dtype = options(
        of_out("range", out, dtype, layout, device), layout, CPU if device is None else device
    )
    if numpy_dtype.kind in "bcW":
        name = dt.from_numpy_dtype(numpy_dtype).scalar_name
        raise NotImplementedError(f"\"range_cpu\" not implemented for '{name}'")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {_shown(start)} -> {_shown(end)}")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    length = math.floor((end - start) / step) + 1
    data = (start + step * np.arange(length, dtype=np.float64)).astype(numpy_dtype)
    return finish(data, requires_grad, out, counted=True)


# ---- linspace and logspace


def _bounds(start: Any, end: Any, function: str) -> tuple[Any, Any]:
    """Both ends as numbers."""
    both = isinstance(start, Tensor) and isinstance(end, Tensor)
    if both and (start._data.ndim or end._data.ndim):
        raise RuntimeError(
            f"{function} only supports 0-dimensional start and end tensors, but got start with "
            f"{start._data.ndim} dimension(s) and end with {end._data.ndim} dimension(s)."
        )
    return _bound(start, "start", function), _bound(end, "end", function)


def _bound(value: Any, name: str, function: str) -> Any:
    if value.__class__ is float or value.__class__ is int:
        return value
    if isinstance(value, Tensor) and value._data.ndim:
        raise RuntimeError(
            f"{function} only supports 0-dimensional start and end tensors, but got {name} with "
            f"{value._data.ndim} dimension(s)."
        )
    if isinstance(value, complex):
        return value
    return _number(value, name, 1 if name == "start" else 2, function)


def spaced(start: Any, end: Any, steps: int, numpy_dtype: Any) -> np.ndarray:
    """Evenly spaced numbers, counted from the nearer end so that both ends are exact.

    They are rounded as PyTorch rounds them: half types after every step, others once, since a
    product and a sum are one instruction.
    """
    if steps < 2:  # noqa: PLR2004
        return np.full(steps, start, COMPLEX128 if numpy_dtype.kind in "cW" else FLOAT64)
    if numpy_dtype.kind in "iu":
        start, end = int(start), int(end)
    if numpy_dtype.kind == "c":
        return _spaced_parts(complex(start), complex(end), steps, numpy_dtype.type(0).real.dtype)
    is_half = numpy_dtype in dt.NUMPY_HALVES
    narrow = is_half or numpy_dtype.type is np.float32
    number: Any = numpy_dtype.type if narrow else np.float64
    first, last = number(start), number(end)
    step = (last - first) / number(steps - 1)
    if narrow and not is_half and choice.Learning.thread and choice.learns():
        return launcher("factories.launch").spaced(steps, first, step, last)  # type: ignore[no-any-return]
    counted = _from_ends(steps)
    values: np.ndarray
    if is_half:
        values = counted.astype(numpy_dtype) * step
    else:
        working: Any = np.float64 if narrow else EXACT
        values = counted * working(step)
        first, last = working(first), working(last)
    values[: steps // 2] += first
    values[steps // 2 :] += last
    return values.astype(FLOAT64) if values.dtype == EXACT else values


@partial(cached, alike=True)
def spaced_in(start: Any, end: Any, steps: int, numpy_dtype: Any) -> np.ndarray:
    """The same, in the type for which they are rounded."""
    return spaced(start, end, steps, numpy_dtype).astype(numpy_dtype, copy=False)


def _spaced_parts(start: complex, end: complex, steps: int, part: Any) -> np.ndarray:
    values = np.empty(steps, COMPLEX128)
    values.real = spaced(start.real, end.real, steps, part)
    values.imag = spaced(start.imag, end.imag, steps, part)
    return values


EXACT = np.longdouble
"""Holds products of float64 and of numbers up to 2048, on x86 and where it is a quadruple."""
FEW = 4096


def _from_ends(steps: int) -> np.ndarray:
    """How many steps each number lies behind the first one or, from the middle on, the last one:
    nobody writes to them, and few are remembered."""
    return _few_from_ends(steps) if steps <= FEW else _steps_from_ends(steps)


def _steps_from_ends(steps: int) -> np.ndarray:
    numbers = np.arange(steps, dtype=FLOAT64)
    behind = numbers[steps // 2 :]
    np.negative(steps - 1 - behind, out=behind)  # -0 behind the last one: its sign is kept
    return numbers


_few_from_ends = lru_cache(64)(_steps_from_ends)


def _checked_steps(function: str, steps: Any) -> int:
    if steps is None:
        raise TypeError(f'{function}() missing 1 required positional arguments: "steps"')
    if not is_integer(steps):
        raise TypeError(f"{function}(): argument 'steps' (position 3) must be int, not "
                        f"{type_name(steps)}")  # fmt: skip
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if steps > LARGEST // 8:
        raise overflowed((int(steps),))
    return int(steps)


def _spaced_dtype(function: str, dtype: Any, steps: int, *bounds: Any) -> Any:
    """The type asked for; bools and halves of complex numbers hold no more than one number."""
    if complex in map(type, bounds):
        if dtype is None:
            dtype = dt.default_complex()
        if not dt.as_dtype(dtype).is_complex:
            part = "float" if dt.default_complex() is dt.complex64 else "double"
            raise RuntimeError(
                f"torch.{function}(): inferred dtype c10::complex<{part}> can't be safely cast to "
                f"passed dtype {dt.as_dtype(dtype).scalar_name}"
            )
    if steps > 1 and (dtype is dt.bool_ or dtype is dt.complex32):
        raise refuse(f"{function}_cpu", dtype.numpy_dtype)
    return dtype


@composite(
    f"linspace(Scalar start, Scalar end, int steps, {OPTIONS}) -> Tensor",
    batch="examples",
    shape="zeros",
    method=False,
)
def linspace(start: Any, end: Any, steps: Any = None, *, out: Any = None, dtype: Any = None,
             layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from `start` to `end`, both included.

    Shape [steps].

    >>> import flambeau as torch
    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    start, end = _bounds(start, end, "linspace")
    steps = _checked_steps("linspace", steps)
    if pin_memory is not False:
        refuse_pinned("linspace", pin_memory)
    dtype = _spaced_dtype(
        "linspace", of_out("linspace", out, dtype, layout, device), steps, start, end
    )
    numpy_dtype = options(dtype, layout, device)
    if steps > 1:
        start, end = _within(numpy_dtype, start), _within(numpy_dtype, end)
    elif steps:
        filling(start, numpy_dtype)
    with cpu.quiet():
        data = spaced_in(start, end, steps, numpy_dtype)
    return finish(data, requires_grad, out, counted=True)


def _exponents(start: Any, end: Any, steps: int, numpy_dtype: Any) -> np.ndarray:
    """Evenly spaced numbers in double precision, between ends that are rounded to a type."""
    working = COMPLEX128 if numpy_dtype.kind in "cW" else FLOAT64
    if steps < 2:  # noqa: PLR2004
        return np.full(steps, start, working)
    first, last = start, end
    if numpy_dtype.kind not in "iu":
        first, last = numpy_dtype.type(start), numpy_dtype.type(end)
    step = working.type(last - first) / (steps - 1)
    values: np.ndarray = _from_ends(steps) * step
    values[: steps // 2] += working.type(first)
    values[steps // 2 :] += working.type(last)
    return values


def _within(numpy_dtype: Any, value: Any) -> Any:
    """A bound that a type can hold: as a number of an integer type, of others as it is."""
    if numpy_dtype.kind in "iu":
        return int(checked_number(value, numpy_dtype))
    if value.__class__ is complex or not -EVERY < value < EVERY:
        checked_number(value, numpy_dtype)
    return value


EVERY = 1 << 15
"""Numbers below it fit into every floating-point type."""


@composite(
    f"logspace(Scalar start, Scalar end, int steps, float base=10.0, {OPTIONS}) -> Tensor",
    batch="examples",
    shape="zeros",
    method=False,
)
def logspace(start: Any, end: Any, steps: Any = None, base: float = 10.0, *, out: Any = None,
             dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`base ** linspace(start, end, steps)`.

    Shape [steps].

    >>> import flambeau as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end = _bounds(start, end, "logspace")
    steps = _checked_steps("logspace", steps)
    if pin_memory is not False:
        refuse_pinned("logspace", pin_memory)
    dtype = _spaced_dtype(
        "logspace", of_out("logspace", out, dtype, layout, device), steps, start, end
    )
    numpy_dtype = options(dtype, layout, device)
    if steps > 1:  # a single number is not rounded before the power
        start, end = _within(numpy_dtype, start), _within(numpy_dtype, end)
    with cpu.quiet():
        exponents = _exponents(start, end, steps, numpy_dtype)
        powers = np.power(exponents.dtype.type(base), exponents)
        if steps == 1 and numpy_dtype.kind in "iu":
            checked_number(powers.item(), numpy_dtype)
        data = powers.astype(numpy_dtype)
    return finish(data, requires_grad, out, counted=True)


@composite(f"eye(int n, int? m=None, {OPTIONS}) -> Tensor", bare=True, method=False, several=True)
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix with ones on the diagonal and zeros elsewhere.

    >>> import flambeau as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if pin_memory is not False:
        refuse_pinned("eye", pin_memory)
    columns = n if m is None else m
    for name, size in (("n", n), ("m", columns)):
        if not is_integer(size):
            position = 1 if name == "n" else 2
            raise TypeError(f"eye(): argument '{name}' (position {position}) must be int, not "
                            f"{type(size).__name__}")  # fmt: skip
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    numpy_dtype = options(of_out("eye", out, dtype, layout, device), layout, device)
    require_known("eye", numpy_dtype)
    return finish(np.eye(int(n), int(columns), dtype=numpy_dtype), requires_grad, out)
