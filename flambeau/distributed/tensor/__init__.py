"""`torch.distributed.tensor`: tensors of several processes. How they work: docs/distributed.md."""

from __future__ import annotations

from typing import Any

from flambeau.distributed.absent import below
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard
from flambeau.distributed.tensor.distributing import (
    distribute_module,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from flambeau.distributed.tensor.dtensor import DTensor

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]


def __getattr__(name: str) -> Any:
    return below(__name__, name)
