"""`torch.distributed._tensor.experimental`: the older name of that in `tensor`."""

from flambeau.distributed.tensor.experimental import (
    context_parallel,
    implicit_replication,
    local_map,
)

__all__ = ["context_parallel", "implicit_replication", "local_map"]
