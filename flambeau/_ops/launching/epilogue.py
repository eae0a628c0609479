"""What happens to a convolution's sums before they are written."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from flambeau._ops.launching.precision import Array


@dataclass(frozen=True, slots=True, eq=False)
class Epilogue:
    """Plus `residual`, of the result's shape and dtype and row-major; then not below `floor`, not
    above `ceiling`. A nan stays nan."""

    residual: Array | None = None
    floor: float = -inf
    ceiling: float = inf

    def arguments(self, result: Array) -> tuple[Any, ...]:
        """As kernels take it: residual, whether there is one, floor, ceiling."""
        if self.residual is None:
            return result, 0, self.floor, self.ceiling
        return self.residual, 1, self.floor, self.ceiling

    def applied(self, result: Array) -> Array:
        """In place, where no kernel has done it."""
        if self.residual is not None:
            result += self.residual
        if self.floor > -inf:
            np.maximum(result, result.dtype.type(self.floor), out=result)
        if self.ceiling < inf:
            np.minimum(result, result.dtype.type(self.ceiling), out=result)
        return result


NOTHING = Epilogue()
