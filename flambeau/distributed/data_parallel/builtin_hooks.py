"""The communication hooks that have a number of their own."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any


class BuiltinCommHookType(enum.IntEnum):
    """ALLREDUCE: the average, as without a hook; FP16_COMPRESS: of gradients in float16.

    Example:
        >>> import flambeau.distributed as dist
        >>> dist.BuiltinCommHookType.FP16_COMPRESS.hook.__name__
        'fp16_compress_hook'
    """

    ALLREDUCE = 1
    FP16_COMPRESS = 2

    @property
    def hook(self) -> Callable[..., Any]:
        """The function that averages a bucket."""
        from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks

        return getattr(default_hooks, f"{self.name.lower()}_hook")  # type: ignore[no-any-return]
