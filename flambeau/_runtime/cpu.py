"""NumPy as the CPU's runtime: new memory, and floating-point flags that stay silent."""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from flambeau._core.layout import contiguous_strides, is_dense

# Operators never warn about overflow or 0/0; the user's own NumPy settings stay untouched. Setting
# the context variable directly costs 0.15 us a call, `with np.errstate` 0.6 us
# (benchmarks/op_overhead.py, "add").
from numpy._core.umath import _extobj_contextvar, _make_extobj  # isort: skip

QUIET: Any = _make_extobj(all="ignore")
Function = TypeVar("Function", bound=Callable[..., Any])
enter_quiet: Any = _extobj_contextvar.set
leave_quiet: Any = _extobj_contextvar.reset


class quiet:
    """A region in which NumPy reports no floating-point errors."""

    __slots__ = ("token",)

    def __enter__(self) -> None:
        self.token = enter_quiet(QUIET)

    def __exit__(self, *exc: object) -> None:
        leave_quiet(self.token)


def quietly(function: Function) -> Function:
    """A function as such a region: 0.3 us a call, as a decorator `np.errstate` takes 1.3 us."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        token = enter_quiet(QUIET)
        try:
            return function(*arguments, **named)
        finally:
            leave_quiet(token)

    return call  # type: ignore[return-value]


def empty_strided(shape: Any, strides: Any, numpy_dtype: np.dtype[Any]) -> np.ndarray:
    """New memory for `shape` with `strides` in elements; contents are undefined."""
    shape, strides = tuple(shape), tuple(strides)
    if strides == contiguous_strides(shape):
        return np.empty(shape, numpy_dtype)
    if 0 in shape:
        return np.ndarray(
            shape, numpy_dtype, np.empty(1, numpy_dtype), 0, _bytes(strides, numpy_dtype.itemsize)
        )
    length = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    owner = np.empty(length, numpy_dtype)
    return np.ndarray(shape, numpy_dtype, owner, 0, _bytes(strides, numpy_dtype.itemsize))


def _bytes(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(stride * itemsize for stride in strides)


def element_strides(data: np.ndarray) -> tuple[int, ...]:
    """Strides of an ndarray in elements.

    NumPy gives new arrays without elements strides of 0; they count as row-major.
    """
    if not data.size and not any(data.strides):
        return contiguous_strides(data.shape)
    itemsize = data.itemsize
    return tuple([step // itemsize for step in data.strides])


def preserved_strides(data: np.ndarray) -> tuple[int, ...] | None:
    """The strides a copy keeps: the source's where it is dense, else by the order of its dims.

    None stands for row-major.
    """
    shape = data.shape
    if data.flags.c_contiguous and 1 not in shape and 0 not in shape:
        return None
    strides = element_strides(data)
    if strides == contiguous_strides(shape):
        return None
    if is_dense(data.shape, strides):
        return strides
    return operand_strides(data.shape, [strides])


def operand_strides(shape: Any, operands: list[Any]) -> tuple[int, ...] | None:
    """Strides of an elementwise result over operands of the given strides (0 where broadcast).

    Dims are put in order by the first operand that tells two dims apart (torch's TensorIterator
    rule); the result is dense in that order. None stands for row-major.
    """
    order = list(reversed(range(len(shape))))  # innermost first
    for i in range(1, len(order)):
        here = i
        for j in range(i - 1, -1, -1):
            verdict = _compare(order[j], order[here], shape, operands)
            if verdict > 0:
                order[j], order[here] = order[here], order[j]
                here = j
            elif verdict < 0:
                break
    if order == list(reversed(range(len(shape)))):
        return None
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def _compare(dim0: int, dim1: int, shape: Any, operands: list[Any]) -> int:
    for strides in operands:
        stride0, stride1 = strides[dim0], strides[dim1]
        if stride0 == 0 or stride1 == 0:
            continue
        if stride0 != stride1:
            return -1 if stride0 < stride1 else 1
        if shape[dim0] > shape[dim1]:
            return 1
    return 0


def copy(data: np.ndarray) -> np.ndarray:
    """A copy that owns its memory and keeps dense strides."""
    if data.__class__ is not np.ndarray:  # it stands for something else, and says how it is copied
        return data.copy()
    strides = preserved_strides(data)
    if strides is None:
        return np.array(data, order="C")
    result = empty_strided(data.shape, strides, data.dtype)
    result[...] = data
    return result


HALF = type(np.dtype(np.float16))
SINGLE = np.dtype(np.float32)


def converted(values: Any, numpy_dtype: Any) -> np.ndarray:
    """New row-major memory with numbers or an array in a type, None for their own.

    What becomes float16 is rounded to float32 first, as in torch, whose halves are made of floats.
    """
    if numpy_dtype.__class__ is HALF:
        return _halves(values, numpy_dtype)
    return np.array(values, numpy_dtype, order="C")


@quietly
def _halves(values: Any, numpy_dtype: Any) -> np.ndarray:
    return np.array(values, SINGLE, order="C").astype(numpy_dtype)  # type: ignore[no-any-return]


def write(target: np.ndarray, source: np.ndarray) -> None:
    """Overwrite an array with values that are broadcast and converted, likewise."""
    if source.dtype is target.dtype:
        put(target, source)
    elif target.dtype.__class__ is HALF:
        _write_halves(target, source)
    else:
        np.copyto(target, source, casting="unsafe")


NEAR, SHORT = 64, 1 << 14
"""The C library copies by an instruction that takes ten times as long where the target lies so few
bytes behind the source, but for whole pages (benchmarks/RESULTS.md, "Copies"). Looking for that is
worth its time from so many bytes on."""
WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def put(target: np.ndarray, source: np.ndarray) -> None:
    """Overwrite an array with another's values, of the same type; shapes are broadcast."""
    if target.nbytes >= SHORT and target.__class__ is source.__class__ is np.ndarray:
        distance = (address(target) - address(source)) % mmap.PAGESIZE
        if 0 < distance < NEAR and target.itemsize in WORDS:
            word = WORDS[target.itemsize]
            np.positive(source.view(word), out=target.view(word))
            return
    np.copyto(target, source)


@quietly
def _write_halves(target: np.ndarray, source: np.ndarray) -> None:
    if source.dtype.itemsize > SINGLE.itemsize:
        source = source.astype(SINGLE)
    np.copyto(target, source, casting="unsafe")


def owner_of(data: np.ndarray) -> np.ndarray:
    """The ndarray that holds the memory under a chain of views."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def over(memory: np.ndarray, shape: Any, numpy_dtype: Any, offset: int, strides: Any) -> Any:
    """An array over another one's memory, of the kind that lies there: `offset` and `strides` in
    bytes, from the first element of `memory`."""
    kind = memory.__class__
    if kind is not np.ndarray:
        kind = kind.views_as  # type: ignore[attr-defined]
    return np.ndarray.__new__(kind, shape, numpy_dtype, memory, offset, strides)


_word_at: Any = ctypes.c_size_t.from_address
_HEADER = object.__basicsize__


def address(data: np.ndarray) -> int:
    """Where the first element lies.

    The first field of NumPy's array struct (part of its stable ABI), read directly: 0.3 us, while
    `__array_interface__` takes 1.9 us (benchmarks/op_overhead.py, "as_strided").
    """
    return _word_at(id(data) + _HEADER).value  # type: ignore[no-any-return]


def _check_address() -> None:
    probe = np.empty(1)
    if address(probe) != probe.__array_interface__["data"][0]:
        raise ImportError("this NumPy keeps the address of an array's memory in an unknown place")


_capsule_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def capsule_pointer(capsule: Any, name: bytes | None) -> int:
    """What a capsule points to."""
    return _capsule_pointer(capsule, name)  # type: ignore[no-any-return]


NEW_FROM_DESCRIPTION = 94
"""The place of PyArray_NewFromDescr in the table of NumPy's C API."""


@functools.cache
def numpy_function(place: int) -> int:
    """The address of a function of NumPy's C API by its place in the table, which its ABI fixes."""
    table = capsule_pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return (ctypes.c_size_t * (place + 1)).from_address(table)[place]


_check_address()
