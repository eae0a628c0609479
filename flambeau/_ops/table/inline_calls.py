"""How calls of pointwise rows come into inline caches (`_runtime/inline_cache.py`).

A call is described where its arrays are of one type and lie in rows, and one loop computes it: that
of a ufunc of NumPy, which is called without the ufunc around it, or a compiled kernel's one task.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._runtime import inline_cache
from flambeau._runtime.inline_cache import Argument, InlineCache, Result

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
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    count = max([a.size for a in arrays])
    if any(a.shape != shape and a.size != 1 or not a.flags.c_contiguous for a in arrays):
        return
    if inplace and (dtype is not arrays[0].dtype or arrays[0].shape != shape):
        return
    steps = [a.itemsize if a.shape == shape else 0 for a in arrays]
    slots = [*map(Argument, range(len(arrays))), Argument(0) if inplace else Result(0)]
    cache.keep(arrays, [0 if inplace else (dtype, shape)], slots, code, [*steps, dtype.itemsize],
               count, state)  # fmt: skip


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


dt.on_default_change.append(inline_cache.forget)
