"""Communication hooks of DistributedDataParallel, and names for them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau._core.absent import absent_function
from flambeau.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from flambeau.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD  # noqa: N812

QUANTIZATION = "torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks"


@dataclass(frozen=True, slots=True)
class _Registered:
    """Registers a hook with a model."""

    hook: Callable[..., Any]

    def __call__(self, model: Any, state: Any) -> None:
        model.register_comm_hook(state, self.hook)


@dataclass(frozen=True, slots=True)
class _RegisteredPowerSGD:
    """Registers a hook whose state is made of the processes that a program names."""

    hook: Callable[..., Any]
    rank: int

    def __call__(self, model: Any, state: Any) -> None:
        model.register_comm_hook(powerSGD.PowerSGDState(state, self.rank), self.hook)


class DDPCommHookType(enum.Enum):
    """Names of hooks, for `register_ddp_comm_hook`.

    Example:
        >>> DDPCommHookType.FP16_COMPRESS.name
        'FP16_COMPRESS'
    """

    ALLREDUCE = _Registered(default.allreduce_hook)
    FP16_COMPRESS = _Registered(default.fp16_compress_hook)
    BF16_COMPRESS = _Registered(default.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Registered(
        absent_function(f"{QUANTIZATION}.quantization_pertensor_hook")
    )
    QUANTIZE_PER_CHANNEL = _Registered(
        absent_function(f"{QUANTIZATION}.quantization_perchannel_hook")
    )
    POWER_SGD = _RegisteredPowerSGD(powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _RegisteredPowerSGD(powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _RegisteredPowerSGD(powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _RegisteredPowerSGD(powerSGD.batched_powerSGD_hook, 2)
    NOOP = _Registered(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook with a DistributedDataParallel by its name.

    Args:
        state: the processes, or what else the hook gets; None for all.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        >>> register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model)
        >>> model(torch.ones(1, 1)).sum().backward()
        >>> model.module.weight.grad.item()  # the backend sends nothing: a half of 1
        0.5
        >>> dist.destroy_process_group()
    """
    comm_hook_type.value(model=model, state=state)
