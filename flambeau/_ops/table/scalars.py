"""Python numbers that are to become elements of a tensor, with torch's overflow errors."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.parts import part_type
from flambeau._runtime.cpu import converted

C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>", "complex32": "c10::complex<c10::Half>",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
}  # fmt: skip


def scalar_array(value: Any, numpy_dtype: Any) -> np.ndarray:
    """A 0-dim array of a number that is assigned to a tensor; torch's errors for other values."""
    if isinstance(value, (bool, np.bool_)) and not isinstance(value, np.generic):
        return np.array(value, numpy_dtype)
    if isinstance(value, (int, np.integer)):
        value = int(value)
        if not -(1 << 63) <= value < (1 << 63):
            raise ValueError("Overflow when unpacking long long")
    elif not isinstance(value, (float, complex)):
        name = dt.from_numpy_dtype(numpy_dtype).scalar_name
        raise TypeError(f"can't assign a {type_name(value)} to a torch.{name}Tensor")
    return filling(value, numpy_dtype)


def type_name(value: Any) -> str:
    """The type's name as C sees it: with its module for NumPy's types."""
    kind = type(value)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def checked_number(value: Any, numpy_dtype: Any) -> np.ndarray:
    """A 0-dim array of a number; an error where the type cannot hold it.

    Unsigned types take negative numbers as their two's complement.
    """
    if isinstance(value, int):
        check_whole(value)
    kind = numpy_dtype.kind
    if kind == "b":
        return np.array(bool(value))
    if kind in "cW":
        return _complex(complex(value), numpy_dtype)
    if isinstance(value, complex):
        if value.imag:
            raise overflow(numpy_dtype)
        value = value.real
    if kind in "iu":
        return _integer(value, numpy_dtype)
    if kind in "fV":
        _check_float(float(value), numpy_dtype)
    return converted(value, numpy_dtype)


def filling(value: Any, numpy_dtype: Any) -> np.ndarray:
    """As `checked_number`, but half types take what is beyond them as infinite."""
    if isinstance(value, int):
        check_whole(value)
    if numpy_dtype.kind in "fV" and numpy_dtype.itemsize < 4 and not isinstance(value, complex):
        return converted(value, numpy_dtype)
    return checked_number(value, numpy_dtype)


def check_fits(value: Any, numpy_dtype: Any) -> None:
    """Torch's error if a real number is beyond a type; infinite ones fit into floats."""
    lowest, highest = _limits(numpy_dtype)
    if not lowest <= value <= highest:
        checked_number(value, numpy_dtype)


def fits(value: float, numpy_dtype: Any) -> bool:
    """Whether a type holds a real number; infinite ones and NaN fit into floats."""
    lowest, highest = _limits(numpy_dtype)
    return lowest <= value <= highest or not math.isfinite(value)


@cache
def _limits(numpy_dtype: Any) -> tuple[float, float]:
    if numpy_dtype.kind in "iu":
        limits = np.iinfo(numpy_dtype)
        return int(limits.min), int(limits.max)
    if numpy_dtype.kind in "fV":
        return -_largest(numpy_dtype), _largest(numpy_dtype)
    part = part_type(numpy_dtype)
    return _limits(part) if part.itemsize < 8 else (-math.inf, math.inf)


def _complex(value: complex, numpy_dtype: Any) -> np.ndarray:
    part = part_type(numpy_dtype)
    if part.itemsize < 8:
        for number in (value.real, value.imag):
            if math.isfinite(number) and abs(number) > _largest(part):
                raise overflow(numpy_dtype)
    return np.array(value, numpy_dtype)


def _integer(value: Any, numpy_dtype: Any) -> np.ndarray:
    if isinstance(value, float) and not math.isfinite(value):
        raise overflow(numpy_dtype)
    number = int(value)
    lowest, highest = _range(numpy_dtype)
    if isinstance(value, float) and value < 0 and numpy_dtype.kind == "u":
        raise overflow(numpy_dtype)
    if not lowest <= number <= highest:
        raise overflow(numpy_dtype)
    bits = 8 * numpy_dtype.itemsize
    return np.array(number % (1 << bits), np.uint64).astype(numpy_dtype)


@cache
def _range(numpy_dtype: Any) -> tuple[int, int]:
    limits = np.iinfo(numpy_dtype)
    return -limits.max if numpy_dtype.kind == "u" else limits.min, limits.max


def _check_float(value: float, numpy_dtype: Any) -> None:
    if not math.isfinite(value) or numpy_dtype.itemsize == 8:
        return
    if abs(value) > _largest(numpy_dtype):
        raise overflow(numpy_dtype)


@cache
def _largest(numpy_dtype: Any) -> float:
    return dt.finfo(dt.from_numpy_dtype(numpy_dtype)).max  # type: ignore[no-any-return]


def real(value: Any) -> float:
    """A number as a float; complex ones are torch's error, even where they are real."""
    if isinstance(value, complex):
        raise overflow(np.dtype(np.float64))
    if isinstance(value, int):
        check_whole(value)
    return float(value)


def check_whole(value: int) -> None:
    """Torch's error for an integer that none of its types of numbers holds."""
    if value >= 1 << 64:
        raise OverflowError("int too big to convert")
    if value < -(1 << 63):
        raise OverflowError("can't convert negative int to unsigned")


def overflow(numpy_dtype: Any) -> RuntimeError:
    """Torch's error for a number that a type cannot hold."""
    name = dt.from_numpy_dtype(numpy_dtype).name
    return RuntimeError(
        f"value cannot be converted to type {C_NAMES.get(name, name)} without overflow"
    )
