"""`ShardingFilter`: the part of a pipe that belongs to one of several readers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):  # noqa: N801
    """Who shares: processes of a group, workers of a loader, or both alike."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th item, for the reader of a number; all, until `apply_sharding` says which."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(self, num_of_instances: int, instance_id: int,
                       sharding_group: Any = SHARDING_PRIORITIES.DEFAULT) -> None:  # fmt: skip
        """Keep the items of one of so many readers.

        Raises:
            ValueError: there is no reader of that number.
            RuntimeError: this was said already, for all or by kinds of readers.
        """
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than "
                             f"num_of_instances({num_of_instances})")  # fmt: skip
        said = {sharding_group, *self.groups}
        if len(said) > 1 and SHARDING_PRIORITIES.DEFAULT in said:
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self._update_num_of_instances()

    def _update_num_of_instances(self) -> None:
        wanted = self.sharding_group_filter
        chosen = [self.groups[key] for key in sorted(self.groups, reverse=True)
                  if wanted is None or key == wanted]  # fmt: skip
        self.num_of_instances, self.instance_id = 1, 0
        for count, number in chosen:
            self.instance_id += self.num_of_instances * number
            self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for place, item in enumerate(self.source_datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        count = len(self.source_datapipe)  # type: ignore[arg-type]
        rest = count % self.num_of_instances
        return count // self.num_of_instances + (1 if self.instance_id < rest else 0)
