"""A hook that shows what communication costs."""

from __future__ import annotations

from typing import Any

from flambeau.distributed.data_parallel.buckets import GradBucket
from flambeau.futures import Future


def noop_hook(_: Any, bucket: GradBucket) -> Future[Any]:
    """Leave the gradients of each process as they are: nothing is sent.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        >>> model.register_comm_hook(None, noop_hook)
        >>> model(torch.ones(1, 1)).sum().backward()
        >>> model.module.weight.grad.item()
        1.0
        >>> dist.destroy_process_group()
    """
    future: Future[Any] = Future()
    future.set_result(bucket.buffer())
    return future
