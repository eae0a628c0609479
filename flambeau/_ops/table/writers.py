"""The kind `writer`: rows that overwrite parts of their first tensor.

One function that writes to an ndarray gives both forms: in place it gets the tensor's own memory,
out of place a copy of it. It checks everything before it writes: an error changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._ops.table.op import Body, Op, kernel
from flambeau._ops.table.outputs import EXACT
from flambeau._runtime import cpu


def row_major_copy(data: np.ndarray) -> np.ndarray:
    """A row-major copy."""
    return data.copy("C")


def writer(schema: str, *, row_major: bool = False, **options: Any) -> Callable[[Body], Op]:
    """Register a row whose function writes to its first argument, an ndarray; `row_major`: the
    result out of place is so, whatever the layout of the tensor.
    """
    copy = row_major_copy if row_major else cpu.copy
    if options.get("out"):
        options.setdefault("out_type", EXACT)

    def row(write: Body) -> Op:
        def body(data: np.ndarray, *rest: Any) -> np.ndarray:
            result = copy(data)
            write(result, *rest)
            return result

        body.__doc__ = write.__doc__
        op = kernel(schema, **{"inplace": True, **options})(body)
        op.write = write
        return op

    return row
