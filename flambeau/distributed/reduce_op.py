"""Ways to make one value of many."""

from __future__ import annotations

import enum


class RedOpType(enum.IntEnum):
    """Ways to make one value of many."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """A way to make one value of many: `ReduceOp.SUM` and others."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM


NOT_OF_COMPLEX = frozenset(
    (RedOpType.MAX, RedOpType.MIN, RedOpType.PRODUCT, RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)
)


def supports_complex(reduceOp: RedOpType) -> bool:  # noqa: N803  its name in PyTorch
    """Whether complex numbers can be reduced in this way.

    Example:
        >>> import flambeau.distributed as dist
        >>> dist.supports_complex(dist.ReduceOp.SUM), dist.supports_complex(dist.ReduceOp.MAX)
        (True, False)
    """
    return reduceOp not in NOT_OF_COMPLEX
