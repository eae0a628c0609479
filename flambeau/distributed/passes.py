"""Sums of what several processes have in one pass over memory, and copies past the caches.

NumPy needs a pass for each process, and brings memory that it only writes into the caches first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY, f32
from flambeau._runtime import choice
from flambeau._runtime.cpu import address, put

VECTORS = 4
"""So many registers are read of each process in one step."""
STREAMED = 1 << 25
"""Results of so many bytes go past the caches, where what is on its way has to stay."""
SUMMED = frozenset(
    "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
)
"""The types that kernels sum."""


def _step(itemsize: int) -> int:
    from flambeau._runtime import features

    return VECTORS * features.vector_bits() // 8 // itemsize


def _skipped(array: np.ndarray, width: int) -> int:
    """How many elements lie before a border of vectors."""
    return min(-address(array) % (width * array.itemsize) // array.itemsize, array.size)


def sum_into(values: Sequence[np.ndarray], out: np.ndarray, also: np.ndarray | None,
             divisor: int, streamed: bool) -> bool:  # fmt: skip
    """The sum of arrays, first to last, in `out` and in `also`, by a kernel if there is one.

    Args:
        out: it may be one of the values. divisor: 0, or what the sum is divided by.
        streamed: whether `out` is written past the caches.
    """
    name = NAMES[out.dtype]
    if name not in SUMMED or not choice.compiled("sum of ranks", out.size):
        return False
    from flambeau._runtime.launch import kernel
    from flambeau.distributed.kernels import sum_sources

    element = OF_NUMPY[name]
    wide = f32 if element.is_float and element.bits == 16 else element
    width = _step(out.itemsize)
    try:
        run = kernel(sum_sources, T=element, A=wide, MEAN=divisor > 0, TWICE=also is not None,
                     STREAM=streamed, W=width)  # fmt: skip
    except choice.KernelMissing:
        return False
    sources = np.array([address(value) for value in values], np.int64)
    run(sources, out, out if also is None else also, len(values), _skipped(out, width), out.size,
        divisor)  # fmt: skip
    return True


def copy(source: np.ndarray, out: np.ndarray, streamed: bool = False) -> None:
    """Copy bytes, past the caches if it is asked for and there is a kernel."""
    if streamed and choice.compiled("copy past caches", out.size):
        from flambeau._runtime.launch import kernel
        from flambeau.distributed.kernels import copy_past_caches

        width = _step(1)
        try:
            run = kernel(copy_past_caches, W=width)
        except choice.KernelMissing:
            pass
        else:
            run(source, out, _skipped(out, width), out.size)
            return
    put(out, source)
