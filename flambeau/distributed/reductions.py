"""Many arrays into one: sums and their like, always in the order of the ranks.

float16 and bfloat16 are computed in float32 and rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._runtime.cpu import quietly
from flambeau.distributed import passes
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.transport.call import Pieces

FUNCTIONS: dict[RedOpType, np.ufunc] = {
    RedOpType.SUM: np.add, RedOpType.AVG: np.add, RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum, RedOpType.MAX: np.maximum, RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or, RedOpType.BXOR: np.bitwise_xor,
}  # fmt: skip
SUMS = frozenset((RedOpType.SUM, RedOpType.AVG))
BITWISE = frozenset((RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR))


def check(operation: RedOpType, element: dt.dtype) -> None:
    """Raise what PyTorch raises if elements of a type cannot be reduced in this way."""
    if operation is RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if element.itemsize == 1 and element.is_floating_point:
        raise RuntimeError("Invalid scalar type")
    is_inexact = element.is_floating_point or element.is_complex
    if operation in BITWISE and is_inexact:
        raise RuntimeError(f"Cannot use ReduceOp.{operation.name} with non-integral dtype")
    if operation is RedOpType.AVG and not is_inexact:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {element.scalar_name}"
        )


class Fold:
    """Reduces what comes from all ranks, and one's own, into an array.

    Args:
        own: this process's elements, one-dimensional. out: the result, which may be `own`.
        rank: this process's. size: how many processes there are.
    """

    def __init__(self, operation: RedOpType, own: np.ndarray, out: np.ndarray, rank: int,
                 size: int) -> None:  # fmt: skip
        self._operation, self._own, self._out, self._rank = operation, own, out, rank
        self._count = size
        self._scratch: np.ndarray | None = None
        self._itemsize = own.dtype.itemsize
        self._is_half = own.dtype in dt.NUMPY_HALVES
        self._is_streamed = own.nbytes * size >= passes.STREAMED
        self.sizes = [own.nbytes] * size
        self.buffers: Pieces = [None] * size

    def take(self, start: int, pieces: Pieces) -> None:
        """Reduce a part of the elements."""
        self.make(start, pieces, None)

    @quietly
    def make(self, start: int, pieces: Pieces, also: np.ndarray | None) -> None:
        """Reduce a part of the elements; `also`: bytes where the results are to lie as well."""
        count = max((piece.size for piece in pieces if piece is not None), default=self._own.nbytes)
        part = slice(start // self._itemsize, (start + count) // self._itemsize)
        own = self._own[part]
        if not own.size:
            return
        values = [own if piece is None else piece.view(own.dtype) for piece in pieces]
        out = self._out[part]
        copy = None if also is None else also[: own.nbytes].view(own.dtype)
        if self._operation in SUMS:
            divisor = self._count if self._operation is RedOpType.AVG and self._count > 1 else 0
            if passes.sum_into(values, out, copy, divisor, self._is_streamed):
                return
        if self._is_half:
            out[...] = self._reduced([each.astype(np.float32) for each in values], None, 0)
        elif copy is not None:
            out[...] = self._reduced(values, copy, 0)
            return
        else:
            before = self._rank if np.may_share_memory(self._own, self._out) else 0
            self._reduced(values, out, before)
        if copy is not None:
            copy[...] = out

    def keep_own(self) -> None:
        """The result is this process's elements."""
        if self._out is not self._own:
            self._out[...] = self._own

    def _reduced(self, values: Sequence[np.ndarray], out: np.ndarray | None,
                 before: int) -> np.ndarray:  # fmt: skip
        """The values reduced, in `out` or in new memory.

        Args:
            before: so many values come before that which lies in `out`; while they are reduced, it
                must not be written.
        """
        function: Any = FUNCTIONS[self._operation]
        total = values[0]
        if len(values) == 1 and out is not None and out is not total:
            out[...] = total
            total = out
        for index, value in enumerate(values[1:], 1):
            if index < before:
                total = function(total, value, out=self._scratch_like(total))
            else:
                total = out = function(total, value, out=out)
        if self._operation is RedOpType.AVG and self._count > 1:
            np.divide(total, self._count, out=total)
        return total

    def _scratch_like(self, array: np.ndarray) -> np.ndarray:
        """Memory for as many elements, the same in all rounds."""
        if self._scratch is None or self._scratch.size < array.size:
            self._scratch = np.empty_like(array)
        return self._scratch[: array.size]


class Copies:
    """Copies what comes into an array for each rank; None: nothing is expected from it."""

    def __init__(self, arrays: Pieces) -> None:
        self.buffers = arrays
        self.sizes = [-1 if array is None else array.size for array in arrays]
        self._is_streamed = sum(self.sizes) >= passes.STREAMED

    def take(self, start: int, pieces: Pieces) -> None:
        """Copy what does not lie there yet."""
        for array, piece in zip(self.buffers, pieces, strict=True):
            if array is not None and piece is not None and piece is not array:
                passes.copy(piece, array[start : start + piece.size], self._is_streamed)

    def keep_own(self) -> None:
        """What is one's own lies there already."""


def nothing(size: int) -> Copies:
    """Where nothing is expected from anybody."""
    return Copies([None] * size)
