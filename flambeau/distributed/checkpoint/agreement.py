"""Steps that all processes take together: each does its part, one puts the parts together."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau.distributed import objects
from flambeau.distributed.checkpoint.api import CheckpointException, Failure
from flambeau.distributed.world import is_initialized, the_group


@dataclass(frozen=True)
class _Failed:
    """What a process gives instead of its part."""

    error: BaseException
    place: traceback.StackSummary


def _outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:  # it is told to all
        place = traceback.extract_tb(error.__traceback__)
        return _Failed(_portable(error), place)


def _portable(error: Exception) -> Exception:
    """An error that can be sent to other processes."""
    plain = error.with_traceback(None)
    plain.__cause__ = plain.__context__ = None
    try:
        pickle.loads(pickle.dumps(plain))
    except Exception:  # an exception with a constructor of its own
        return RuntimeError(f"{type(error).__name__}: {error}")
    return plain


def _raise_failures(step: str, outcomes: list[Any]) -> None:
    failures: dict[int, Failure] = {
        rank: (each.error, each.place)
        for rank, each in enumerate(outcomes)
        if isinstance(each, _Failed)
    }
    if failures:
        raise CheckpointException(step, failures)


class Ranks:
    """The processes that save or load together; this one alone, with `no_dist`.

    Args:
        group: the processes; None for all.
        no_dist: whether this process works alone.
    """

    def __init__(self, group: Any, no_dist: bool) -> None:
        self._group = None if no_dist or not is_initialized() else the_group(group)
        self.rank = self._group.rank() if self._group is not None else 0
        self.is_coordinator = self.rank == 0

    def give_all(self, step: str, part: Callable[[], Any],
                 together: Callable[[list[Any]], Any]) -> Any:  # fmt: skip
        """The result of `together`, which rank 0 makes of the parts, in every process.

        Raises:
            CheckpointException: a part failed, or putting them together did; in all processes.
        """
        outcomes = self._gather(_outcome(part))
        _raise_failures(step, outcomes)
        result = _outcome(lambda: together(outcomes)) if self.is_coordinator else None
        result = self._from_coordinator(result)
        _raise_failures(step, [result])
        return result

    def give_each(self, step: str, part: Callable[[], Any],
                  together: Callable[[list[Any]], list[Any]]) -> Any:  # fmt: skip
        """As `give_all`; each process gets its own of the results."""
        return self.give_all(step, part, together)[self.rank]

    def _gather(self, outcome: Any) -> list[Any]:
        if self._group is None:
            return [outcome]
        outcomes: list[Any] = [None] * self._group.size()
        objects.all_gather_object(outcomes, outcome, self._group)
        return outcomes

    def _from_coordinator(self, result: Any) -> Any:
        if self._group is None:
            return result
        listed = [result]
        objects.broadcast_object_list(listed, group=self._group, group_src=0)
        return listed[0]
