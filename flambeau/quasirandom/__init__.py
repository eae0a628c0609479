"""`torch.quasirandom`: Sobol' sequences, points that fill a cube more evenly than chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.random.draws import Generator
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.quasirandom.directions import BITS, MOST, directions

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a (scrambled) Sobol' sequence, one after the other.

    Args:
        dimension: how many coordinates a point has, at most 21,201.
        scramble: whether digits are mixed by random lower triangular matrices, and shifted by
            random ones; each seed gives another sequence that is as even.
        seed: of the scrambling; None: it goes on with the default stream.
    """

    MAXBIT = BITS
    MAXDIM = MOST

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                "Supported range of dimensionality "
                f"for SobolEngine is [1, {self.MAXDIM}]"
            )  # fmt: skip
        if type(dimension) is not int:
            raise TypeError(f"dimension must be an int, not {type(dimension).__name__}")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        numbers = directions(dimension)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            numbers, shift = _scrambled(numbers, seed)
        self.sobolstate = wrap(numbers)
        self.shift = wrap(shift)
        self.quasi = wrap(shift.copy())
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Tensor:
        """The next `n` points, a row for each; `dtype` is the default one if not given."""
        wanted = dt.default_dtype() if dtype is None else dtype
        first = self._first_point.to(wanted) if self.num_generated == 0 and n > 0 else None
        rest = self._following(n if first is None else n - 1, wanted)
        result = rest if first is None else ops.cat((first, rest), dim=0)
        self.num_generated += n
        if out is None:
            return result  # type: ignore[no-any-return]
        return out.resize_as_(result).copy_(result)  # type: ignore[no-any-return]

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Tensor:
        """The next `2**m` points, where all points so far are then a power of two; only such
        numbers of points are as even as the sequence can be."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin anew with the first point."""
        self.quasi._data[...] = self.shift._data
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        self._points(n if self.num_generated else n - 1)
        self.num_generated += n
        return self

    def _following(self, n: int, dtype: Any) -> Any:
        if n and dtype not in (dt.float32, dt.float64):
            name = dtype.scalar_name
            raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{name}'")
        points: Any = wrap(self._points(n))
        return points.to(dtype) * 2.0**-self.MAXBIT

    def _points(self, n: int) -> np.ndarray:
        """The next `n` points in units of 2**-30: each differs from the one before by the
        direction numbers at the lowest zero bit of its predecessor's number."""
        last = max(self.num_generated - 1, 0)
        counted = np.arange(last, last + max(n, 0), dtype=np.int64)
        lowest = np.bitwise_count(counted ^ (counted + 1)) - 1
        points = self.sobolstate._data.T[lowest]
        if not len(points):
            return points
        quasi = self.quasi._data
        points[0] ^= quasi
        np.bitwise_xor.accumulate(points, axis=0, out=points)
        quasi[...] = points[-1]
        return points

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _scrambled(numbers: np.ndarray, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Direction numbers after a random linear map of their digits, highest digit first, and a
    random shift."""
    generator = None if seed is None else Generator().manual_seed(seed)
    count = len(numbers)
    shift = ops.randint(2, (count, BITS), generator=generator).numpy()
    matrices = ops.randint(2, (count, BITS, BITS), generator=generator).numpy()
    return _mapped(numbers, matrices), (shift << np.arange(BITS)).sum(axis=1)


def _mapped(numbers: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """The numbers with their digits multiplied by lower triangular matrices of ones and zeros,
    whose diagonal is taken for ones."""
    lowest_last = np.arange(BITS)[::-1]
    weights = np.tril(matrices, -1) | np.eye(BITS, dtype=np.int64)
    rows = (weights << lowest_last).sum(axis=2)  # a row of a matrix as one number
    found = np.zeros_like(numbers)
    for digit, place in enumerate(lowest_last.tolist()):
        common = np.bitwise_count(rows[:, digit, None] & numbers).astype(np.int64)
        found |= (common & 1) << place
    return found
