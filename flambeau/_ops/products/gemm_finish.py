"""What is done to the sums of a product: factors, a bias, another matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._ops.products.gemm_tiles import strides
from flambeau._ops.products.kernels import gemm as kernels


@dataclass(slots=True)  # not frozen: made for every product that has a bias
class Finish:
    """alpha * product + bias + beta * other, rounded to the result's type once.

    `bias` has one element per column, or per row (`bias_of_row`); `other` is [.., M, N] with
    columns that follow each other (rows may lie 0 apart); both have the result's dtype.
    """

    bias: np.ndarray | None = None
    bias_of_row: bool = False
    other: np.ndarray | None = None
    alpha: float = 1.0
    beta: float = 1.0

    @property
    def constants(self) -> tuple[int, bool, bool]:
        """What the kernels are compiled for: BIAS, SCALED and OTHER."""
        bias = kernels.NO_BIAS
        if self.bias is not None:
            bias = kernels.BIAS_OF_ROW if self.bias_of_row else kernels.BIAS_OF_COLUMN
        return bias, self.alpha != 1, self.other is not None


NOTHING = Finish()
FINISH = ("BIAS", "SCALED", "OTHER")


def finish_of(data: np.ndarray, beta: float, alpha: float) -> Finish:
    """What adds `beta * data`, of the result's shape or one number per column, to a product."""
    if beta == 0:
        return Finish(alpha=alpha) if alpha != 1 else NOTHING
    if data.ndim == 1:
        data = np.ascontiguousarray(data)
        if beta == 1:
            return Finish(bias=data, alpha=alpha)
        raise ValueError("a factor of the numbers per column: expand them first")
    if data.ndim > 2 or (data.strides[-1] != data.itemsize and data.shape[-1] > 1):
        data = np.ascontiguousarray(data)
    return Finish(other=data, alpha=alpha, beta=beta)


def extras(finish: Finish, out: np.ndarray) -> tuple[Any, Any, int, int]:
    """bias, other, and how far apart other's matrices and rows lie."""
    bias = out if finish.bias is None else finish.bias
    if finish.other is None:
        return bias, out, 0, 0
    steps = strides(finish.other)
    return bias, finish.other, steps[-3] if len(steps) > 2 else 0, steps[-2]
