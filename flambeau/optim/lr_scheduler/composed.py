"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from flambeau.optim.lr_scheduler.base import LRScheduler, read, write
from flambeau.optim.lr_scheduler.plateau import ReduceLROnPlateau
from flambeau.optim.optimizer import Optimizer


class _Composed(LRScheduler):
    """Holds schedules of one optimizer; a checkpoint holds the state of each."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[Any], optimizer: Optimizer) -> None:
        """Refuse what is no schedule of `optimizer`, and one that needs a measure at each step."""
        name = type(self).__name__
        for position, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{name} at index {position} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{position} in the given schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {position} has "
                    f"{scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedules."""
        state = super().state_dict()
        del state["_schedulers"]
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state, and hand each schedule its own."""
        state = dict(state_dict)
        for position, saved in enumerate(state.pop("_schedulers")):
            self._schedulers[position].load_state_dict(saved)
        super().load_state_dict(state)


class SequentialLR(_Composed):
    """One schedule after the other; `milestones` are the epochs at which the next one starts.

    Every schedule starts from its own epoch 0. Making one sets the rates of the first schedule.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, 1.0, total_iters=2)
    >>> fall = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, fall], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler, but got no scheduler."
            )
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule has stepped when it was made: undo them all, then start the first one.
        for group in optimizer.param_groups:
            write(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take back the step that each schedule made when it was made."""
        for schedule in _leaves(self if sched is None else sched):
            if hasattr(schedule, "last_epoch"):
                schedule.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch of the schedule whose turn it is."""
        self.last_epoch += 1
        current = self._schedulers[bisect_right(self._milestones, self.last_epoch)]
        begins = self.last_epoch in self._milestones
        current._update_lr(0) if begins else current.step()
        self._last_lr = current.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedules at each step, each on the rates that the one before has left.

    >>> import flambeau as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> halves = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> tenths = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.1)
    >>> both = torch.optim.lr_scheduler.ChainedScheduler([halves, tenths])
    >>> optimizer.step()
    >>> both.step()
    >>> both.get_last_lr()
    [0.05]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = read(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Step every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = read(self.optimizer, "lr")


def _leaves(schedule: LRScheduler) -> Iterator[LRScheduler]:
    """The schedules that are made of no others, in a composed one."""
    if not hasattr(schedule, "_schedulers"):
        yield schedule
        return
    for inner in schedule._schedulers:
        yield from _leaves(inner)
