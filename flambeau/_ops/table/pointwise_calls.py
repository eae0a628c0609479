"""How calls of pointwise rows come into inline caches (`_runtime/inline_cache.py`).

A call is described where its arrays are of one type and lie in rows, and one loop computes it: that
of a ufunc of NumPy, which is called without the ufunc around it, or a compiled kernel's one task.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.numpy_source import Position
from flambeau._core.layout import contiguous_strides
from flambeau._ops.launching.loop_plans import fit
from flambeau._ops.table.elementwise_text import irregular
from flambeau._runtime import cpu
from flambeau._runtime.inline_cache import MOST, Argument, InlineCache, Loop, Result
from flambeau._tensor.tensor import Tensor, wrap

ndarray = np.ndarray
FUNCTIONS, DATA, TYPES = (object.__basicsize__ + offset for offset in (16, 24, 48))
"""Where fields of NumPy's struct of a ufunc stand (a part of its ABI)."""


def learner(kernels: Any, large: Any, limit: int, inplace: bool, tensors: int,
            general: Callable[..., Tensor]) -> Callable[..., None]:  # fmt: skip
    """What describes a row's calls.

    Args:
        kernels, large: the row's functions of arrays by dtype; `large` from `limit` elements on.
        inplace: results are written to the first array.
        tensors: how many arrays are those of tensors; the others are numbers.
        general: the row's function of tensors of any layout.
    """

    def learn(cache: InlineCache, *arrays: Any) -> None:
        first = arrays[0]
        if not all(a.__class__ is ndarray and a.dtype is first.dtype for a in arrays):
            return
        if not fit(arrays) or (inplace and not first.flags.c_contiguous):
            return
        if any(map(_is_irregular, arrays)):
            rounded = first.dtype.kind != "c" and kernels[first.dtype] in ROUNDED_ONCE
            if rounded and not inplace:
                found = general(*[wrap(a) for a in arrays])._data
                positions = [*map(Position, range(len(arrays)))]
                if _keep_ufunc(cache, kernels[first.dtype], arrays, inplace, positions):
                    cache.confirm(arrays, (found,))
            return
        are_large = {a.size >= limit for a in arrays if a.ndim or first.ndim == 0}
        if len(are_large) > 1:
            return
        kernel = (large if are_large.pop() else kernels)[first.dtype]
        if isinstance(kernel, np.ufunc):
            positions = [*map(Position, range(len(arrays)))]
            known = _keep_ufunc(cache, kernel, arrays, inplace, positions)
        elif hasattr(kernel, "ufunc"):
            known = _keep_ufunc(cache, kernel.ufunc[0], arrays, inplace, kernel.ufunc[1])
        elif hasattr(kernel, "fusion"):
            known = kernel.fusion.describe(cache, arrays, inplace, tensors)
        else:
            known = False
        if known and not inplace:
            with cpu.quiet():
                cache.confirm(arrays, (kernel(*arrays, out=...),))

    return learn


_is_irregular = eval(f"lambda array: {irregular('array')}")  # the test of the short way's text


def _keep_ufunc(cache: InlineCache, ufunc: np.ufunc, arrays: tuple[Any, ...],
                inplace: bool, operands: list[Any]) -> bool:  # fmt: skip
    """Whether a call is described; `operands`: positions of arrays, and numbers."""
    found = loop_of(ufunc, arrays[0].dtype)
    if found is None or not all(_leaves_type(o, arrays[0].dtype) for o in operands):
        return False
    code, state, dtype = found
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    if inplace and (dtype is not arrays[0].dtype or arrays[0].shape != shape):
        return False
    count = math.prod(shape)
    if count > MOST:
        return False
    taken = [arrays[o] if isinstance(o, Position) else np.array(o, arrays[0].dtype)
             for o in operands]  # fmt: skip
    strides = [np.broadcast_to(a, shape).strides for a in taken]
    strides.append(row_major(shape, dtype.itemsize))
    dims = collapsed(shape, strides)
    if len(dims) > 1 and (len(dims) > 2 or ufunc not in ROUNDED_ONCE or dtype.kind == "c"):
        return False
    if count == 1:  # as NumPy has it: its loops over complex numbers round by what steps they see
        dims = [(1, [*[a.itemsize for a in taken], dtype.itemsize])]
    (outer, rows), (length, steps) = [(1, [0] * len(strides)), *dims][-2:]
    numbers = [array for o, array in zip(operands, taken, strict=True)
               if not isinstance(o, Position)]  # fmt: skip
    given = [Argument(o) if isinstance(o, Position) else cpu.address(array)
             for o, array in zip(operands, taken, strict=True)]  # fmt: skip
    slots = [*given, Argument(0) if inplace else Result(0)]
    cache.keep(arrays, [0 if inplace else (dtype, shape)], slots, code,
               Loop(state, length, steps, outer, rows), alive=numbers)  # fmt: skip
    return True


def _leaves_type(operand: Any, dtype: np.dtype[Any]) -> bool:
    """Whether an operand is of a type, or a number that becomes one of it beside arrays."""
    if isinstance(operand, Position) or dtype.kind == "f":
        return True
    return dtype.kind in "iu" and operand.__class__ is int and 0 <= operand < 128  # noqa: PLR2004


ROUNDED_ONCE = frozenset((
    np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.equal, np.not_equal,
    np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or,
    np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.negative, np.absolute,
    np.sqrt, np.floor, np.ceil, np.trunc, np.rint, np.logical_not, np.invert, np.isnan,
))  # fmt: skip
"""Ufuncs whose real results are the same whichever loop computes an element: those of operands
with several steps, of which NumPy chooses the inner loop."""


def row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of new memory."""
    return tuple([step * itemsize for step in contiguous_strides(shape)])


def collapsed(shape: tuple[int, ...], strides: Sequence[Sequence[int]]) -> list[Any]:
    """(size, steps of all operands) of each dim; dims that all step through as through one are
    joined, and those of size 1 left out."""
    joined: list[Any] = []
    for size, steps in zip(shape, zip(*strides, strict=True), strict=True):
        if size == 1:
            continue
        if joined and all(
            far == near * size for far, near in zip(joined[-1][1], steps, strict=True)
        ):
            joined[-1] = (joined[-1][0] * size, steps)
        else:
            joined.append((size, steps))
    return joined


@cache
def loop_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[int, int, np.dtype[Any]] | None:
    """(the address of a ufunc's loop over one type, what it is told besides, the type of its
    result); None where NumPy would convert."""
    if ufunc is np.power and dtype.kind in "iu":  # its loop raises errors
        return None
    wanted = dtype.char * ufunc.nin + "->"
    for k, types in enumerate(ufunc.types):
        if types.startswith(wanted) and is_plain(ufunc):
            code = _word(_word(id(ufunc) + FUNCTIONS) + 8 * k)
            data = _word(id(ufunc) + DATA)
            return code, _word(data + 8 * k) if data else 0, np.dtype(types[-1])
    return None


def is_plain(ufunc: np.ufunc) -> bool:
    """Whether a ufunc goes element by element, with one result, and its struct has its types where
    they are looked for."""
    if ufunc.nout != 1 or ufunc.signature is not None:
        return False
    letters = "".join([types.replace("->", "") for types in ufunc.types])
    numbers = bytes([np.dtype(letter).num for letter in letters])
    return ctypes.string_at(_word(id(ufunc) + TYPES), len(numbers)) == numbers


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value
