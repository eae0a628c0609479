"""`DistributedDataParallel`: one model in many processes, whose gradients are averaged."""

from __future__ import annotations

from flambeau.distributed.data_parallel.buckets import GradBucket
from flambeau.distributed.data_parallel.module import DistributedDataParallel

__all__ = ["DistributedDataParallel", "GradBucket"]
