"""Copies of a module, one per device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from flambeau._core.device import device
from flambeau.nn.module import Module
from flambeau.nn.parallel import comm

__all__ = ["replicate"]

M = TypeVar("M", bound=Module)


def replicate(network: M, devices: Sequence[Any], detach: bool = False) -> list[M]:
    """A copy of the module for each device; modules without tensors only.

    Raises:
        AssertionError: the module has parameters, which are on the CPU.
        NotImplementedInFlambeau: it has buffers, or parameters with `detach`.
        ValueError: one of the devices is the CPU.
    """
    if not devices:
        return []
    for target in devices:
        check_is_gpu(target)
    if not detach and any(True for _ in network.parameters()):
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    tensors = [*network.parameters(), *network.buffers()]
    if tensors:
        comm.broadcast_coalesced(tensors, devices)
    return [_replica(network, {}) for _ in devices]


def check_is_gpu(target: Any) -> None:
    """Raise ValueError for the CPU."""
    if isinstance(target, (str, device)) and device(target).type == "cpu":
        raise ValueError(f"Expected a non cpu device, but got: {target}")


def _replica(module: Any, memo: dict[int, Any]) -> Any:
    """A module with copies of its children and the same attributes."""
    known = memo.get(id(module))
    if known is not None:
        return known
    replica = memo[id(module)] = module._replicate_for_data_parallel()
    for name, child in module._modules.items():
        replica._modules[name] = None if child is None else _replica(child, memo)
    return replica
