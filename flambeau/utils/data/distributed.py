"""The share of one of several processes in the samples of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.utils.data.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index of a common order, beginning with the `rank`-th.

    All processes have equally many: the order is cut (`drop_last`) or goes on from its start.
    With `shuffle` the order is random, from `seed` plus the epoch that `set_epoch` was told.

    Raises:
        ValueError: `rank` is not between 0 and `num_replicas` - 1; or one of them is missing, and
            there is no process group to ask.

    >>> import flambeau as torch
    >>> from flambeau.utils.data import DistributedSampler
    >>> list(DistributedSampler(range(6), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 5]
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = True, seed: int = 0, drop_last: bool = False) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            from flambeau import distributed

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole + (rest > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def _order(self) -> list[int]:
        count = len(self.dataset)
        if not self.shuffle:
            return list(range(count))
        from flambeau._ops.random.draws import Generator

        generator: Any = Generator()
        generator.manual_seed(self.seed + self.epoch)
        order: list[int] = ops.randperm(count, generator=generator).tolist()
        return order

    def __iter__(self) -> Iterator[int]:
        order = self._order()
        while order and len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next, so that its random order is another one."""
        self.epoch = epoch
