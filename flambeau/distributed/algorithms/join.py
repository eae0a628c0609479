"""Inputs that end earlier in some processes than in others.

Who has no inputs left goes on to take part in the collectives of the others, with nothing of its
own, until all have ended. Before each iteration everybody counts those that have inputs.
"""

from __future__ import annotations

import abc
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.distributed import collectives

EARLY = "Detected at least one rank that exhausted inputs. Throwing across all ranks."


class JoinHook:
    """What a process does for one `Joinable` when its own inputs have ended."""

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when all have ended; `is_last_joiner`: whether this one ended last."""


class Joinable(abc.ABC):
    """Something whose iterations have collectives: DistributedDataParallel, an optimizer."""

    _join: Join | None = None
    _is_first_joinable = False

    @abc.abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook; `kwargs` are those that `Join` was given."""

    @property
    @abc.abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors that the context reduces."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class Join:
    """A region in which processes may have different numbers of inputs.

    Args:
        joinables: whose collectives are to be met. The first is asked to count in each iteration.
        enable: whether the region does anything; without, inputs have to be even.
        throw_on_early_termination: whether all processes raise an error when the first one ends.
        kwargs: for `join_hook` of each.

    Raises:
        RuntimeError: inputs have ended, and `throw_on_early_termination`.
    """

    def __init__(self, joinables: Sequence[Any], enable: bool = True,
                 throw_on_early_termination: bool = False, **kwargs: Any) -> None:  # fmt: skip
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = list(joinables)
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        groups = {id(joinable.join_process_group) for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._group = joinables[0].join_process_group

    def __enter__(self) -> Join:
        if self._enable:
            for joinable in self._joinables:
                joinable._join = self
            self._joinables[0]._is_first_joinable = True
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:  # fmt: skip
        for joinable in self._joinables:
            joinable._join, joinable._is_first_joinable = None, False
        if not self._enable or kind is not None:
            return
        if self._throw and self._count_those_with_inputs(0) > 0:
            self._tell_of_the_end()
        is_last, rounds = True, 0
        while self._count_those_with_inputs(0) > 0:
            for hook in self._hooks:
                hook.main_hook()
            is_last, rounds = False, rounds + 1
            if rounds == 1000:
                warnings.warn("one process has 1000 inputs less than another", stacklevel=2)
        self._post(is_last)

    def _post(self, is_last: bool) -> None:
        for hook in self._hooks:
            hook.post_hook(is_last)

    def _tell_of_the_end(self) -> None:
        ended: Any = ops.ones(1)
        collectives.all_reduce(ended, group=self._group)
        raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")

    def _count_those_with_inputs(self, own: int) -> int:
        count: Any = ops.full((1,), float(own))
        collectives.all_reduce(count, group=self._group)
        return int(count)

    @staticmethod
    def notify_join_context(joinable: Any) -> int | None:
        """Called by a joinable before the collectives of an iteration: the number of processes that
        have inputs; None where it is not the first joinable of a context.
        """
        join = joinable._join
        if join is None or not joinable._is_first_joinable:
            return None
        count: int = join._count_those_with_inputs(1)
        if join._throw:
            join._raise_if_any_has_ended()
        return count

    def _raise_if_any_has_ended(self) -> None:
        ended: Any = ops.zeros(1)
        collectives.all_reduce(ended, group=self._group)
        if int(ended):
            raise RuntimeError(EARLY)
