"""`torch.distributed.tensor.experimental`; parallel contexts are missing."""

from __future__ import annotations

from typing import Any

from flambeau._core.absent import absent_function
from flambeau.distributed.absent import below
from flambeau.distributed.tensor.experimental.local_map import local_map
from flambeau.distributed.tensor.operators import implicit_replication

context_parallel = absent_function("torch.distributed.tensor.experimental.context_parallel")

__all__ = ["context_parallel", "implicit_replication", "local_map"]


def __getattr__(name: str) -> Any:
    return below(__name__, name)
