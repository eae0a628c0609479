"""Lists of tensors moved towards others: one kernel for all of them instead of a call for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._runtime import choice
from flambeau._runtime.cpu import address
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import bump
from flambeau.optim import fused
from flambeau.optim.formulas import formula, lerp


@formula
def moved(average: Any, current: Any, weight: Any) -> tuple[Any, ...]:
    """average + weight·(current - average)."""
    return (lerp(average, current, weight),)


@choice.guard
def approach(averages: Any, currents: Any, weight: float) -> None:
    """average ← average + weight·(current - average) for tensors of one dtype, without gradients.

    Below some 8,000 elements in all, and where tensors have gaps or half types, by `lerp_`.
    """
    pairs = list(zip(averages, currents, strict=True))
    size = sum([average._data.size for average in averages])
    if choice.compiled("optimizer", size) and all(_fit_together(*pair) for pair in pairs):
        suited = [fits(*pair) for pair in pairs]
        move([pair for pair, suits in zip(pairs, suited, strict=True) if suits], weight)
        pairs = [pair for pair, suits in zip(pairs, suited, strict=True) if not suits]
    for average, current in pairs:
        average.lerp_(current, weight)


def _fit_together(average: Any, current: Any) -> bool:
    """Whether types and shapes agree. Others may be refused, and those behind them stay then."""
    alike = isinstance(current, Tensor) and average.dtype == current.dtype
    return alike and average.shape == current.shape


def fits(average: Any, current: Any) -> bool:
    """Whether the kernel can go through a tensor and the one beside it."""
    if not isinstance(current, Tensor) or average.is_sparse or current.is_sparse:
        return False
    data, other = average._data, current._data
    if (
        data.__class__ is not np.ndarray
        or data.dtype not in fused.PLAIN
        or not data.size
        or not data.flags.c_contiguous
    ):
        return False
    return fused.fits(other, data.dtype, data.shape)


def move(pairs: list[Any], weight: float) -> None:
    """Move first ones of pairs towards the second ones."""
    from flambeau._ops.optimizers.kernels import steps as kernels

    if not pairs:
        return
    dtype = pairs[0][0]._data.dtype
    table = np.zeros((len(pairs) + 1, kernels.HEAD + 2), np.int64)
    table[:-1, 1] = [average._data.size for average, _ in pairs]
    for place in (0, 1):
        table[:-1, kernels.HEAD + place] = [address(pair[place]._data) for pair in pairs]
    for average, _ in pairs:
        bump(average)
    fused.set_blocks(table, kernels.BLOCK)
    blocks = int(table[-1, 0])
    found = fused.typed_kernel(kernels.step, dtype, FORMULA=moved.native, KEPT=(),
                               CONSTANTS=(fused.NUMBER,), MAXIMIZE=False)  # fmt: skip
    found.parallel(fused.tasks_for(blocks), table, np.array([weight], dtype), table.shape[1],
                   blocks)  # fmt: skip
