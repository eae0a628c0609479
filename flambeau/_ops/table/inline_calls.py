"""How calls of rows come into inline caches (`_runtime/inline_cache.py`).

A call of a pointwise row is described where its arrays are of one type and lie in rows, and one
loop computes it: that of a ufunc of NumPy, which is called without the ufunc around it, or a
compiled kernel's one task. Other rows are observed: where their body launches one kernel on its
arguments and its results, and that is all, a call is that launch.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from types import NoneType
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import contiguous_strides, memory_format
from flambeau._ops.table import binder
from flambeau._ops.table.op import Op
from flambeau._runtime import choice, cpu, inline_cache, launch
from flambeau._runtime.inline_cache import Argument, InlineCache, Loop, Result

ndarray = np.ndarray
FUNCTIONS, DATA, TYPES = (object.__basicsize__ + offset for offset in (16, 24, 48))
"""Where fields of NumPy's struct of a ufunc stand (a part of its ABI)."""


def learner(kernels: Any, large: Any, limit: int, inplace: bool = False) -> Callable[..., None]:
    """What describes a row's calls.

    Args:
        kernels, large: the row's functions of arrays by dtype; `large` from `limit` elements on.
        inplace: results are written to the first array.
    """

    def learn(cache: InlineCache, *arrays: Any) -> None:
        first = arrays[0]
        if not all([a.__class__ is ndarray and a.dtype is first.dtype for a in arrays]):
            return
        if not all([_is_regular(a) and a.size for a in arrays]):
            return
        if inplace and not first.flags.c_contiguous:
            return
        are_large = {a.size >= limit for a in arrays if a.ndim or first.ndim == 0}
        if len(are_large) > 1:
            return
        kernel = (large if are_large.pop() else kernels)[first.dtype]
        if isinstance(kernel, np.ufunc):
            _keep_ufunc(cache, kernel, arrays, inplace)
        elif hasattr(kernel, "fusion"):
            _keep_fusion(cache, kernel.fusion, arrays, inplace)

    return learn


def _is_regular(array: np.ndarray) -> bool:
    """Whether the short way takes an array: it lies in rows, that of dims of size 1 included."""
    return array.ndim < 2 or (
        array.flags.c_contiguous and not (array.base is not None and 1 in array.shape)
    )


def _keep_ufunc(cache: InlineCache, ufunc: np.ufunc, arrays: tuple[Any, ...],
                inplace: bool) -> None:  # fmt: skip
    found = loop_of(ufunc, arrays[0].dtype)
    if found is None:
        return
    code, state, dtype = found
    try:
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
    except ValueError:  # the call itself will say so
        return
    if inplace and (dtype is not arrays[0].dtype or arrays[0].shape != shape):
        return
    strides = [np.broadcast_to(a, shape).strides for a in arrays]
    strides.append(row_major(shape, dtype.itemsize))
    dims = collapsed(shape, strides)
    if len(dims) > 2:
        return
    (outer, rows), (count, steps) = [(1, [0] * len(strides)), *dims][-2:]
    slots = [*map(Argument, range(len(arrays))), Argument(0) if inplace else Result(0)]
    cache.keep(arrays, [0 if inplace else (dtype, shape)], slots, code,
               Loop(state, count, steps, outer, rows))  # fmt: skip


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
        if joined and all(far == near * size for far, near in zip(joined[-1][1], steps, strict=True)):
            joined[-1] = (joined[-1][0] * size, steps)
        else:
            joined.append((size, steps))
    return joined or [(1, [0] * len(strides))]


@cache
def loop_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[int, int, np.dtype[Any]] | None:
    """(the address of a ufunc's loop over one type, what it is told besides, the type of its
    result); None where NumPy would convert."""
    wanted = dtype.char * ufunc.nin + "->"
    for k, types in enumerate(ufunc.types):
        if types.startswith(wanted) and ufunc.nout == 1 and is_known(ufunc):
            code = _word(_word(id(ufunc) + FUNCTIONS) + 8 * k)
            data = _word(id(ufunc) + DATA)
            return code, _word(data + 8 * k) if data else 0, np.dtype(types[-1])
    return None


def is_known(ufunc: np.ufunc) -> bool:
    """Whether the struct of a ufunc has its types where they are looked for."""
    letters = "".join([types.replace("->", "") for types in ufunc.types])
    numbers = bytes([np.dtype(letter).num for letter in letters])
    return ctypes.string_at(_word(id(ufunc) + TYPES), len(numbers)) == numbers


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _keep_fusion(cache: InlineCache, fusion: Any, arrays: tuple[Any, ...], inplace: bool) -> None:
    if fusion.fixed:  # the kernel depends on a number
        return
    outs = (arrays[0],) if inplace else None
    plan = fusion.plan(arrays, outs)
    if plan is None or not plan.is_plain:
        return
    slots = [*map(Argument, range(len(arrays))), Argument(0) if inplace else Result(0)]
    result = 0 if inplace else (plan.dtypes[0], plan.shape)
    cache.keep(arrays, [result], [*slots, *plan.words], plan.kernel.address, alive=plan)


# ---- rows that are observed

IMMUTABLE = (int, float, bool, NoneType, str, dt.dtype, memory_format)


def serve(op: Op) -> bool:
    """Whether calls of a row that is not pointwise come into an inline cache."""
    if not (op.inline or op.kind == "rows") or not inline_cache.possible():
        return False
    return not any(a.is_tensor and a.is_list for a in op.schema.arguments)


def texts_of(op: Op) -> list[str]:
    """The text of what is looked up: the arrays of tensors, and other arguments as they are."""
    texts = []
    for argument in op.schema.arguments:
        name = binder.python_name(op, argument)
        absent = f"None if {name} is None else " if argument.optional else ""
        texts.append(f"{absent}{name}._data" if argument.is_tensor else name)
    return texts


class Held:
    """An array where a row's text expects a tensor."""

    def __init__(self, data: np.ndarray) -> None:
        self._data = data


def observer(run: Callable[..., Any], alike: bool) -> Callable[..., None]:
    """What describes calls of a row by what a call launches; `run`: its body, of tensors."""

    def learn(cache: InlineCache, *arguments: Any) -> None:
        arrays = [a for a in arguments if a.__class__ is ndarray]
        if not all([a.__class__ is ndarray or _is_immutable(a) for a in arguments]):
            return
        if not all([a.size for a in arrays]):
            return
        given = [Held(a) if a.__class__ is ndarray else a for a in arguments]
        choice.Learning.alike = alike
        try:
            with cpu.quiet(), launch.observed() as seen:
                found = run(*given)
        except Exception:  # the call itself will say so
            return
        finally:
            choice.Learning.alike = False
        if len(seen.launches) == 1:
            results = found if isinstance(found, tuple) else (found,)
            _keep_launch(cache, arguments, results, seen)

    return learn


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all([item.__class__ is int for item in value])
    return value.__class__ in IMMUTABLE


def _keep_launch(cache: InlineCache, arguments: tuple[Any, ...], results: tuple[Any, ...],
                 seen: launch.Seen) -> None:  # fmt: skip
    """Describe a call that was one launch, if it is nothing else."""
    kernel, tasks, given = seen.launches[0]
    made = [*results, *seen.scratch]
    if tasks != 1 or not all([_is_new(value) for value in results]):
        return
    places: dict[int, Any] = {cpu.address(value): Result(k) for k, value in enumerate(made)}
    for k, value in enumerate(arguments):
        if value.__class__ is ndarray:
            if cpu.address(value) in places:  # which of the two a kernel is given is not known
                return
            places[cpu.address(value)] = Argument(k)
    slots = []
    for letter, word in zip(kernel.letters, given, strict=True):
        if letter == "Q":
            place = places.get(cpu.address(word)) if word.__class__ is ndarray else None
            if place is None:
                return
            slots.append(place)
        elif letter == "d":
            slots.append(struct.unpack("q", struct.pack("d", word))[0])
        else:
            slots.append(int(word))
    if {id(slot) for slot in slots} >= {id(place) for place in places.values()
                                        if isinstance(place, Result)}:  # fmt: skip
        described = [(value.dtype, value.shape) for value in made]
        cache.keep(arguments, described, slots, kernel.address, None, len(results), kernel)


def _is_new(value: Any) -> bool:
    """Whether a result is an array of its own, as one that is made anew would be."""
    return value.__class__ is ndarray and value.flags.c_contiguous and value.size > 0


dt.on_default_change.append(inline_cache.forget)
