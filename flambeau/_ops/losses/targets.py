"""What losses of class indices share: what targets mean, and checks in torch's words."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.launching.precision import narrow, widen
from flambeau._ops.losses.elementwise import MEAN, NONE

INT64 = np.dtype(np.int64)


class Targets:
    """Class indices flattened beside scores of shape [N, C, S], and the weight of each.

    `indices` has the ignored ones replaced by class 0; `weights` is None where all are 1.
    """

    __slots__ = ("count", "ignored", "indices", "weights")

    def __init__(self, target: np.ndarray, weight: np.ndarray | None, ignore_index: int,
                 classes: int) -> None:  # fmt: skip
        self.indices = target
        self.weights: np.ndarray | None = None
        self.ignored: np.ndarray | None = None
        self.count: Any = target.size
        if ignore_index >= 0 or _out_of_range(target, classes):
            self._ignore(target == ignore_index)
            self._check(target, ignore_index, classes)
        if weight is not None:
            chosen = widen(weight)[self.indices]
            self.weights = chosen if self.weights is None else chosen * self.weights
        if self.weights is not None:
            self.count = self.weights.sum()

    def _ignore(self, ignored: np.ndarray) -> None:
        if ignored.any():
            self.ignored = ignored
            self.indices = np.where(ignored, 0, self.indices)
            self.weights = np.where(ignored, np.float32(0), np.float32(1))

    def _check(self, target: np.ndarray, ignore_index: int, classes: int) -> None:
        indices = self.indices
        if _out_of_range(indices, classes):
            wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
            if not wrong.any():  # there are no classes, and all targets are ignored
                return
            raise IndexError(f"Target {target[wrong].flat[0]} is out of bounds.")


def _out_of_range(indices: np.ndarray, classes: int) -> bool:
    """Whether an index is negative or too large: as unsigned numbers negative ones are large."""
    if not indices.size:
        return False
    unsigned = indices.view(np.uint64) if indices.itemsize == 8 else indices
    return unsigned.item(unsigned.argmax()) >= classes  # type: ignore[no-any-return]


def flat_scores(scores: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores as [N, C] or [N, C, S], and targets as [N] or [N, S]."""
    if scores.ndim == 1:
        return scores.reshape(1, -1), target.reshape(1)
    if scores.ndim == 2:
        return scores, target
    batch, classes = scores.shape[:2]
    spatial = math.prod(scores.shape[2:])
    return scores.reshape(batch, classes, spatial), target.reshape(batch, spatial)


def numbers_to(count: int) -> np.ndarray:
    """0 to count - 1, which nobody writes to; few are remembered."""
    return _few_numbers(count) if count <= FEW else np.arange(count)


FEW = 4096
_few_numbers = lru_cache(64)(np.arange)


def pick(values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The value of each target's class: [N, C(, S)] by [N(, S)]. Without classes all targets are
    ignored ones, whose value is no matter."""
    if not values.shape[1]:
        return np.zeros(indices.shape, values.dtype)
    if values.ndim == 2:
        return values[numbers_to(values.shape[0]), indices]  # type: ignore[no-any-return]
    rows, columns = numbers_to(values.shape[0]), numbers_to(values.shape[2])
    return values[rows[:, None], indices, columns]  # type: ignore[no-any-return]


def put(values: np.ndarray, indices: np.ndarray, amount: Any) -> None:
    """Add an amount at each target's class, in place."""
    if not values.shape[1]:
        return
    if values.ndim == 2:
        values[np.arange(values.shape[0]), indices] += amount
        return
    rows, columns = np.ogrid[: values.shape[0], : values.shape[2]]
    values[rows, indices, columns] += amount


def reduce_losses(
    losses: np.ndarray, targets: Targets, reduction: int, shape: Any, dtype: Any
) -> Any:
    if targets.weights is not None:
        losses = losses * targets.weights
    if targets.ignored is not None:
        losses[targets.ignored] = 0  # whatever the scores there are: 0 * inf is not 0
    if reduction == NONE:
        return narrow(np.ascontiguousarray(losses), dtype).reshape(shape)
    total = np.add.reduce(losses, None)
    if reduction == MEAN:
        count = targets.count
        total = total / (count if count.__class__ is int else losses.dtype.type(count))
    return total if total.dtype == dtype else np.asarray(total, dtype)


def row_factor(grad: np.ndarray, targets: Targets, reduction: int, dtype: Any) -> Any:
    """What the gradient of each position's loss is multiplied by: [N(, S)] or 0-dim."""
    factor = widen(grad).reshape(targets.indices.shape) if reduction == NONE else widen(grad)
    if reduction == MEAN:
        factor = factor / dtype.type(targets.count)
    if targets.weights is not None:
        factor = factor * targets.weights.astype(dtype, copy=False)
    if targets.ignored is not None:
        factor = np.where(targets.ignored, dtype.type(0), factor)  # 0, however few there are
    return factor


# ---- checks in torch's words


def check_targets(input: Any, target: Any, weight: Any) -> None:
    """Shapes and types of scores [N, C, *], class indices [N, *] and class weights [C]."""
    shape, target_shape = input._data.shape, target._data.shape
    is_usual = len(shape) == 2 and target_shape == shape[:1] and weight is None
    if is_usual and target._data.dtype is INT64:
        return
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) != 1 and (not target_shape or shape[0] != target_shape[0]):
        size = target_shape[0] if target_shape else 0
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({size})."
        )
    if len(shape) <= 2:
        if len(target_shape) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if len(shape) == 1 and target_shape not in ((), (1,)):
            raise ValueError("For 1D input, 1D target must have size 1, but got target size: "
                             f"{target_shape[0]}")  # fmt: skip
    else:
        _check_spatial(shape, target_shape)
    if target.dtype not in (dt.int64, dt.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}"
        )
    if weight is not None:
        _check_weight(input, weight)


def _check_spatial(shape: Any, target_shape: Any) -> None:
    wanted = [shape[0], *shape[2:]]
    if list(target_shape) == wanted:
        return
    if len(shape) != 4:
        raise RuntimeError(f"Expected target size {wanted}, got {list(target_shape)}")
    if len(target_shape) != 3:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
            f"{len(target_shape)}"
        )
    raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target_shape)}")


def _check_weight(input: Any, weight: Any) -> None:
    classes = input._data.shape[min(1, input._data.ndim - 1)]
    if weight._data.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(weight._data.shape)}"
        )
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}"
        )
