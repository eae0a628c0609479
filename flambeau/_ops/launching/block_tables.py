"""Tables of many arrays that a kernel goes through block by block: see `_ops/optimizers`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.settings import get_num_threads


def tasks_for(blocks: int) -> int:
    """Into how many tasks the work on so many blocks is parted."""
    return min(max(blocks // 4, 1), 4 * get_num_threads())


def typed_kernel(native: Any, dtype: np.dtype[Any], **statics: Any) -> Any:
    """A kernel for elements of a type and full vectors of them."""
    from flambeau._compiler.types import OF_NUMPY
    from flambeau._runtime.features import vector_bits
    from flambeau._runtime.launch import kernel

    element = OF_NUMPY[dtype.name]
    return kernel(native, **statics, T=element, W=vector_bits() // element.bits)


def set_blocks(table: np.ndarray, block: int) -> None:
    """Number the blocks of a table from its column of sizes; the last row tells their count."""
    table[0, 0] = 0
    table[1:, 0] = np.cumsum(-(-table[:-1, 1] // block))
