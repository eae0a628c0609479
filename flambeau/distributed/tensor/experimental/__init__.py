"""`torch.distributed.tensor.experimental`: `local_map`. Context parallelism is missing."""

from __future__ import annotations

from typing import Any

from flambeau._core.absent import absent_function
from flambeau.distributed.absent import below
from flambeau.distributed.tensor.experimental.local_map import local_map

context_parallel = absent_function("torch.distributed.tensor.experimental.context_parallel")
implicit_replication = absent_function("torch.distributed.tensor.experimental.implicit_replication")

__all__ = ["context_parallel", "implicit_replication", "local_map"]


def __getattr__(name: str) -> Any:
    return below(__name__, name)
