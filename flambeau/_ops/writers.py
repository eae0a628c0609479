"""The kind `writer`: rows that overwrite parts of their first tensor.

One function that writes to an ndarray gives both forms: in place it gets the tensor's own memory,
out of place a copy of it. It checks everything before it writes: an error changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._ops.op import Body, Op, kernel
from flambeau._runtime import cpu


def writer(schema: str, **options: Any) -> Callable[[Body], Op]:
    """Register a row whose function writes to its first argument, an ndarray."""

    def row(write: Body) -> Op:
        def body(data: np.ndarray, *rest: Any) -> np.ndarray:
            result = cpu.copy(data)
            write(result, *rest)
            return result

        body.__doc__ = write.__doc__
        op = kernel(schema, **{"inplace": True, **options})(body)
        op.write = write
        return op

    return row
