"""Post-local SGD (Lin and others, 2018): gradients of all processes at first, then of some."""

from __future__ import annotations

from typing import Any

from flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from flambeau.distributed.data_parallel.buckets import GradBucket
from flambeau.distributed.world import new_subgroups
from flambeau.futures import Future


class PostLocalSGDState:
    """What the hook keeps from one step to the next.

    Args:
        process_group: the processes that average gradients at first; None for all.
        subgroup: those that average them later; None for those of one machine, which have to be
            named where there are no GPUs.
        start_localSGD_iter: how many steps `process_group` averages.
        post_local_gradient_allreduce: whether `subgroup` averages gradients, or nobody.

    Example:
        >>> state = PostLocalSGDState(None, None, start_localSGD_iter=10)
        >>> state.iter, state.post_local_gradient_allreduce
        (0, True)
    """

    __slots__ = (
        "process_group",
        "subgroup",
        "start_localSGD_iter",
        "post_local_gradient_allreduce",
        "iter",
    )

    def __init__(self, process_group: Any, subgroup: Any, start_localSGD_iter: int,  # noqa: N803
                 post_local_gradient_allreduce: bool = True) -> None:  # fmt: skip
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step of the first kind, when its last bucket is reduced."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(  # noqa: N802  its name in PyTorch
    state: PostLocalSGDState, bucket: GradBucket
) -> Future[Any]:
    """Average the gradients of a bucket over all processes, later over some.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        >>> state = PostLocalSGDState(None, None, 1, post_local_gradient_allreduce=False)
        >>> model.register_comm_hook(state, post_localSGD_hook)
        >>> for _ in range(2):
        ...     model.zero_grad()
        ...     model(torch.ones(1, 1)).sum().backward()
        ...     print(model.module.weight.grad.item())  # the backend sends nothing: a half of 1
        0.5
        1.0
        >>> dist.destroy_process_group()
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        future: Future[Any] = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
