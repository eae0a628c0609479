"""`torch.distributed.optim`: optimizers of many processes."""

from __future__ import annotations

from flambeau._core.absent import absent_class
from flambeau.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from flambeau.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

DistributedOptimizer = absent_class("torch.distributed.optim.DistributedOptimizer")

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
