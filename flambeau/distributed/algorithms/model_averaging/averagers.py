"""Averages of parameters every few steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from flambeau.distributed.algorithms.model_averaging import utils
from flambeau.distributed.world import the_group

NOT_NEEDED = (
    " is 1, no need to use model averaging because the communication cost of all-reducing "
    "parameters will be no less than the cost of all-reducing gradients by "
    "DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel "
    "should be used for this case."
)


def check_warmup(steps: int) -> None:
    """Raise ValueError if a number of steps is negative."""
    if steps < 0:
        raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")


class ModelAverager(ABC):
    """What averages parameters; it counts the steps.

    Args:
        process_group: the processes; None for all.

    Example:
        >>> issubclass(PeriodicModelAverager, ModelAverager)
        True
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = the_group(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, if it is their step, and count it."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every `period` steps, after some without.

    Args:
        period: steps from one average to the next.
        warmup_steps: steps without averages in the beginning.
        process_group: the processes; None for all.

    Raises:
        ValueError: a number is too small.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> weight = torch.nn.Parameter(torch.ones(1))
        >>> weight.sum().backward()
        >>> averager = PeriodicModelAverager(period=2, warmup_steps=1)
        >>> for _ in range(3):
        ...     averager.average_parameters([weight])
        ...     print(weight.item())
        1.0
        0.5
        0.5
        >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        check_warmup(warmup_steps)
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(f"When period{NOT_NEEDED}", stacklevel=2)
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, if it is their step."""
        is_after = self.step >= self.warmup_steps
        if is_after and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
