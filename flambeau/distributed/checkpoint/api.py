"""The error of a step that some of the processes could not take."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

Failure = tuple[BaseException, traceback.StackSummary]
"""What went wrong in one process, and where."""


class CheckpointException(BaseException):
    """A step of saving or loading failed in some processes; it is raised in all of them.

    `failures` says for each rank what went wrong there.
    """

    __module__ = "torch.distributed.checkpoint.api"

    def __init__(self, msg: str, failures: Mapping[int, Failure]) -> None:
        super().__init__(msg, failures)
        self._failures = dict(failures)

    @property
    def failures(self) -> dict[int, Failure]:
        """For each rank that failed, the exception and the place in the program."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, place) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})\n")
            lines += traceback.format_list(place)
            lines += traceback.format_exception_only(type(error), error)
        return "".join(lines)
