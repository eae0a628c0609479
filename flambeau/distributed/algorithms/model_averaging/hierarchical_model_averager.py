"""Averages within small groups often, within large ones more rarely."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from flambeau.distributed.algorithms.model_averaging import averagers, utils
from flambeau.distributed.world import new_subgroups


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages parameters within groups of several sizes, each with a period of its own.

    In a step that several periods divide, the longest counts.

    Args:
        period_group_size_dict: the size of a group for each period, in the order of both; the last
            group has all processes.
        warmup_steps: steps without averages in the beginning.
        process_group: the processes; None for all.

    Raises:
        ValueError: there are no periods, a number is too small, or the last group is not that of
            all.

    Example:
        >>> from collections import OrderedDict
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=4)
        >>> averager = HierarchicalModelAverager(OrderedDict([(2, 2), (8, 4)]))
        >>> [group.size() for group in averager.period_process_group_dict.values()]
        [2, 4]
        >>> dist.destroy_process_group()
    """

    def __init__(self, period_group_size_dict: OrderedDict[int, int] | None = None,
                 warmup_steps: int = 0, process_group: Any = None) -> None:  # fmt: skip
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError(
                "The minimum period in arg ``period_group_size_dict`` must be a positive value."
            )
        if self._periods[-1] == 1:
            warnings.warn(
                f"When the maximum period in arg ``period_group_size_dict``{averagers.NOT_NEEDED}",
                stacklevel=2,
            )
        size = self.process_group.size()
        last = period_group_size_dict[self._periods[-1]]
        if last != size:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {last} must be equal to the "
                f"size of arg ``process_group`` {size}."
            )
        averagers.check_warmup(warmup_steps)
        self.period_process_group_dict: OrderedDict[int, Any] = OrderedDict()
        for period, length in period_group_size_dict.items():
            whole = length == size
            group = self.process_group if whole else new_subgroups(length, process_group)[0]
            self.period_process_group_dict[period] = group
        self.warmup_steps = warmup_steps

    def _group_of_step(self) -> Any:
        """The group that averages in this step; None: none does."""
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, if it is their step."""
        if self.step >= self.warmup_steps:
            group = self._group_of_step()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
