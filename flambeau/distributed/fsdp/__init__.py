"""`torch.distributed.fsdp`: `fully_shard`. Of the older `FullyShardedDataParallel` there are names
alone, which refuse by name."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._core.absent import absent_class, absent_function
from flambeau.distributed.absent import FSDP, FSDP_CHOICES, below
from flambeau.distributed.fsdp.fully_shard import (
    FSDPModule,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)
from flambeau.distributed.fsdp.policies import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]


def __getattr__(name: str) -> Any:
    if name in FSDP_CHOICES:
        older = importlib.import_module(f"{__name__}.fully_sharded_data_parallel")
        return getattr(older, name)
    if name not in FSDP.split():
        return below(__name__, name)
    make = absent_class if name[:1].isupper() else absent_function
    made = globals()[name] = make(f"torch.distributed.fsdp.{name}")
    return made
