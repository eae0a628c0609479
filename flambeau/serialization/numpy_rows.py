"""NumPy's own functions and classes, for users who allow them: what a safe load runs instead.

`add_safe_globals([numpy.ndarray, numpy.dtype, ...])` is common, because many checkpoints hold an
array or two. NumPy's functions trust their arguments: a state of a dtype can turn numbers into
addresses of objects. So the same names run these functions, which take plain arrays of numbers,
bools and texts, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from flambeau.serialization.checks import brief, expect

PLAIN_DTYPE = re.compile("[biufcSU][0-9]{1,9}")
PLAIN_KINDS = frozenset("biufcSU")
BYTE_ORDERS = frozenset("<>|=")
MAX_DIMS = 64


def replacement(value: Any) -> tuple[Callable[..., Any] | None, Callable[..., None] | None] | None:
    """What REDUCE and BUILD do with a global of NumPy's; None for any other value."""
    if isinstance(value, type) and issubclass(value, np.dtype):
        return make_dtype, set_dtype_state
    if value is np.ndarray:
        return None, set_array_state
    function = _functions().get(id(value))
    return None if function is None else (function, None)


def _functions() -> dict[int, Callable[..., Any]]:
    core = np._core  # type: ignore[attr-defined]
    return {
        id(core.multiarray._reconstruct): empty_array,
        id(core.multiarray.scalar): make_scalar,
        id(core.numeric._frombuffer): array_of_buffer,
    }


def make_dtype(*arguments: Any) -> np.dtype:
    """`numpy.dtype("f8", False, True)`; always a new object, since BUILD changes it in place."""
    expect(1 <= len(arguments) <= 3, "a dtype takes one to three arguments")
    name = arguments[0]
    is_plain = type(name) is str and PLAIN_DTYPE.fullmatch(name) is not None
    expect(is_plain, f"{brief(name)} is no plain dtype of NumPy")
    return np.dtype(name, False, True)  # type: ignore[call-overload, no-any-return]


def set_dtype_state(dtype: np.dtype, state: Any) -> None:
    """(3, byte order, None, None, None, itemsize, alignment, flags), without fields."""
    _check_plain(dtype)
    expect(type(state) is tuple and len(state) == 8, "the state of a dtype has eight parts")
    version, order, subdtype, names, fields, itemsize, alignment, _ = state
    is_plain = _is_int(version, 3) and subdtype is None and names is None and fields is None
    expect(is_plain, "only plain dtypes of NumPy can be loaded")
    expect(type(order) is str and order in BYTE_ORDERS, f"{brief(order)} is no byte order")
    own: Any = dtype.__reduce__()[2]  # type: ignore[index, misc]
    is_same = _is_int(itemsize, own[5]) and _is_int(alignment, own[6])
    expect(is_same, "the state of a dtype contradicts its name")
    dtype.__setstate__((3, order, *own[2:]))  # type: ignore[attr-defined]


def _is_int(value: Any, expected: int) -> bool:
    return type(value) is int and value == expected


def empty_array(*arguments: Any) -> np.ndarray:
    """`_reconstruct(ndarray, (0,), b"b")`: an array that BUILD fills."""
    fits = len(arguments) == 3 and arguments[0] is np.ndarray and _is_empty_shape(arguments[1])
    expect(fits, "an array of NumPy begins as _reconstruct(ndarray, (0,), b'b')")
    return np.empty(0, np.int8)


def _is_empty_shape(shape: Any) -> bool:
    return type(shape) is tuple and len(shape) == 1 and _is_int(shape[0], 0)


def set_array_state(array: np.ndarray, state: Any) -> None:
    """(1, shape, dtype, whether Fortran's order, content)."""
    expect(type(state) is tuple and len(state) == 5, "the state of an array has five parts")
    version, shape, dtype, is_fortran, content = state
    expect(_is_int(version, 1) and type(is_fortran) is bool, "the state of an array is damaged")
    _check_content(dtype, shape, content)
    array.__setstate__((1, shape, dtype, is_fortran, content))


def make_scalar(*arguments: Any) -> Any:
    """`scalar(dtype, content)`."""
    expect(len(arguments) == 2, "a scalar of NumPy takes a dtype and its bytes")
    dtype, content = arguments
    _check_content(dtype, (), content)
    return np.frombuffer(content, dtype)[0]


def array_of_buffer(*arguments: Any) -> np.ndarray:
    """`_frombuffer(content, dtype, shape, order)`, which protocol 5 uses."""
    expect(len(arguments) == 4, "an array of NumPy takes content, dtype, shape and order")
    content, dtype, shape, order = arguments
    expect(type(order) is str and order in ("C", "F"), f"{brief(order)} is no order of an array")
    _check_content(dtype, shape, content)
    if prod(shape) == 0:
        return np.empty(shape, dtype, order)
    return np.frombuffer(content, dtype).reshape(shape, order=order)


def _check_plain(dtype: Any) -> None:
    is_plain = isinstance(dtype, np.dtype) and dtype.kind in PLAIN_KINDS
    expect(is_plain and not dtype.hasobject, "only plain dtypes of NumPy can be loaded")


def _check_content(dtype: Any, shape: Any, content: Any) -> None:
    _check_plain(dtype)
    is_shape = type(shape) is tuple and len(shape) <= MAX_DIMS
    is_shape = is_shape and all(type(n) is int and 0 <= n < 2**63 for n in shape)
    expect(is_shape, "an array's shape must be a tuple of at most 64 sizes")
    expect(type(content) in (bytes, bytearray), "the content of an array must be bytes")
    needed = prod(shape) * dtype.itemsize
    fits = needed == len(content)
    expect(fits, f"an array of {brief(needed)} bytes has {len(content)} bytes of content")
