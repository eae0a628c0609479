"""Helpers that libraries take from `torch.distributed.utils`."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from flambeau._core.absent import absent_function
from flambeau._core.missing import missing
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives
from flambeau.distributed.world import the_group

_to_kwargs = absent_function("torch.distributed.utils._to_kwargs")


def _sync_module_states(
    module: Any, process_group: Any, broadcast_bucket_size: int, src: int,
    params_and_buffers_to_ignore: Container[str], broadcast_buffers: bool = True,
) -> None:  # fmt: skip
    """Give all processes of a group the parameters, and buffers, that a model has in one of them.

    Args:
        broadcast_bucket_size: without meaning here.
        src: that process, by its rank in the group.
        params_and_buffers_to_ignore: names of those that each keeps.
        broadcast_buffers: whether buffers are given, too.
    """
    named: list[tuple[str, Any]] = list(module.named_parameters())
    if broadcast_buffers:
        named += module.named_buffers()
    team = the_group(process_group)
    with no_grad():
        for name, tensor in named:
            if name not in params_and_buffers_to_ignore:
                collectives.broadcast(tensor.detach(), group=team, group_src=src)


def _verify_param_shape_across_processes(
    process_group: Any, tensors: Iterable[Any], logger: Any = None
) -> None:
    """Raise RuntimeError if tensors of the processes differ in number, shape or type."""
    from flambeau.distributed.data_parallel.module import _check_same_model

    _check_same_model(list(tensors), the_group(process_group))


def __getattr__(name: str) -> Any:
    return missing("torch.distributed.utils", name)
