"""Parameters as one flat vector, and the sums over it in the order in which PyTorch rounds.

L-BFGS without a line search may leave a region and come back; a difference in the last bit then
grows until nothing agrees. So float32 is summed as PyTorch does it on x86: `dot` in the four times
four partial sums of BLAS's sdot, `total` in eight lanes that cascade, and `multiply_add` rounds
once. It is the same to the bit up to some 8,000 elements, where torch begins to use threads.
Other types round as NumPy does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.autograd.history import bump
from flambeau.optim.elementwise import as_real

Vector = np.ndarray
LANES = 8  # of a vector register
AT_ONCE = 4  # registers that are summed side by side


class Flat:
    """Parameters seen as one vector."""

    def __init__(self, parameters: list[Any]) -> None:
        self.parameters = parameters

    def grad(self) -> Vector:
        """The gradients in one vector; zeros where there is none."""
        from flambeau._ops.table.namespace import ops

        grads = [ops.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        dense = [grad.to_dense() if grad.is_sparse else grad for grad in grads]
        found: Vector = ops.cat([as_real(grad).reshape(-1) for grad in dense])._data
        return found

    def move(self, length: Any, direction: Vector) -> None:
        """Add a multiple of a vector to the parameters."""
        offset = 0
        for parameter in map(as_real, self.parameters):
            data = parameter._data
            piece = direction[offset : offset + data.size].reshape(data.shape)
            data[...] = multiply_add(piece, length, data)
            bump(parameter)
            offset += data.size

    def copy(self) -> list[Vector]:
        """The values, to `restore` later."""
        return [parameter._data.copy() for parameter in self.parameters]

    def restore(self, values: list[Vector]) -> None:
        """Set the values."""
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter._data[...] = value
            bump(parameter)


def multiply_add(vector: Vector, factor: Any, other: Vector) -> Vector:
    """vector·factor + other, in float32 rounded once: products of float32 are exact in float64."""
    factor = other.dtype.type(factor)
    if other.dtype != np.float32:
        return vector * factor + other
    return (vector.astype(np.float64) * factor + other).astype(np.float32)


def dot(one: Vector, other: Vector) -> Any:
    """The inner product, as a scalar of the type."""
    if one.dtype != np.float32:
        return one.dtype.type(one.dot(other))
    products = one * other
    sums = np.zeros((4, 4), np.float32)
    rest = products[len(products) // 16 * 16 :]
    for block in products[: len(products) - len(rest)].reshape(-1, 4, 4):
        sums += block
    if len(rest) >= 8:  # noqa: PLR2004
        sums[:2] += rest[:8].reshape(2, 4)
        rest = rest[8:]
    if len(rest) >= 4:  # noqa: PLR2004
        sums[0] += rest[:4]
        rest = rest[4:]
    for product in rest:
        sums[0, 0] += product
    first, second, third, fourth = np.add.reduce(sums, 0)
    return (first + third) + (second + fourth)


def total(values: Vector) -> Any:
    """The sum, as a scalar of the type."""
    if values.dtype != np.float32:
        return values.sum()
    if len(values) < LANES:
        return _rows_total(values.reshape(-1, 1))[0]
    rows = len(values) // LANES
    lanes = _rows_total(values[: rows * LANES].reshape(rows, LANES))
    if len(values) % LANES:
        lanes[0] += np.add.accumulate(values[rows * LANES :])[-1]
    return np.add.accumulate(lanes)[-1]


def _rows_total(rows: np.ndarray) -> np.ndarray:
    """The sum of rows: AT_ONCE of them side by side, what is left over into the first."""
    groups = len(rows) // AT_ONCE
    sums = _cascade(rows[: groups * AT_ONCE].reshape(groups, AT_ONCE * rows.shape[1]))
    sums = sums.reshape(AT_ONCE, -1)
    for row in rows[groups * AT_ONCE :]:
        sums[0] += row
    return np.add.reduce(sums, 0)


def _cascade(rows: np.ndarray) -> np.ndarray:
    """The sum of rows in steps, and of these sums in steps, four levels high."""
    step = 1 << max(4, (max(len(rows), 1) - 1).bit_length() // 4)
    levels = []
    for _ in range(3):
        whole = len(rows) // step * step
        levels.append(np.add.reduce(rows[whole:], 0))
        rows = np.add.reduce(rows[:whole].reshape(-1, step, rows.shape[1]), 1)
    levels.append(np.add.reduce(rows, 0))
    return np.add.reduce(np.array(levels), 0)
