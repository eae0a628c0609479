"""The average of parameters over the processes of a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives
from flambeau.distributed.world import is_outside, the_group


def average_parameters(params: Iterator[Any], process_group: Any) -> None:
    """Replace parameters by their averages over a group; all travel as one.

    Args:
        process_group: the processes; None for all.

    Raises:
        ValueError: there are no parameters.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> average_parameters(iter([weight]), None)  # the backend sends nothing: a half of 1
        >>> weight.tolist()
        [0.5, 0.5]
        >>> dist.destroy_process_group()
    """
    if is_outside(process_group):
        return
    team = the_group(process_group)
    listed = list(params)
    if not listed:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    with no_grad():
        joined: Any = ops.cat([each.reshape(-1) for each in listed])
        joined.div_(team.size())
        collectives.all_reduce(joined, group=team)
        parts = joined.split([each.numel() for each in listed])
        for each, part in zip(listed, parts, strict=True):
            each.copy_(part.view(each.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """The parameters that have gradients.

    Args:
        params: parameters, or groups of an optimizer.

    Raises:
        NotImplementedError: something else.

    Example:
        >>> import flambeau as torch
        >>> weight, still = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
        >>> weight.sum().backward()
        >>> [each.numel() for each in get_params_to_average([weight, still])]
        [2]
    """
    found: list[Any] = []
    for each in params:
        if isinstance(each, Tensor):
            members: list[Any] = [each]
        elif isinstance(each, dict):
            members = each["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
        found += [member for member in members if member.grad is not None]
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """`average_parameters` of those that have gradients.

    Args:
        params: parameters, or groups of an optimizer.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> weight.sum().backward()
        >>> average_parameters_or_parameter_groups([{"params": [weight]}], None)
        >>> weight.tolist()
        [0.5, 0.5]
        >>> dist.destroy_process_group()
    """
    average_parameters(iter(get_params_to_average(params)), process_group)
