"""A barrier in which rank 0 asks after each of the others."""

from __future__ import annotations

import time
from datetime import timedelta

import numpy as np

from flambeau.distributed.errors import DistBackendError
from flambeau.distributed.group import ProcessGroup

TAG = -1
"""Tags of users are not negative."""


def monitored_barrier(group: ProcessGroup, timeout: timedelta | None, wait_all: bool) -> None:
    """Rank 0 hears from all, then tells all; see `collectives.monitored_barrier`."""
    patience = timeout or group._timeout
    deadline = group.deadline(patience)
    if group.rank() != 0:
        _report(group, deadline)
        return
    late = _missing(group, deadline, wait_all)
    if late:
        milliseconds = round(patience.total_seconds() * 1000)
        ranks = f"Rank{'s' if len(late) > 1 else ''} {', '.join(map(str, late))}"
        raise RuntimeError(
            f"[Rank 0]: {ranks} failed to pass monitoredBarrier in {milliseconds} ms"
        )
    for rank in range(1, group.size()):
        group._messages.send(rank, TAG, np.zeros(1, np.uint8), deadline)


def _missing(group: ProcessGroup, deadline: float, wait_all: bool) -> list[int]:
    comings = [
        (rank, group._messages.receive(rank, TAG, np.zeros(1, np.uint8)))
        for rank in range(1, group.size())
    ]
    late: list[int] = []
    for rank, coming in comings:
        try:
            coming.wait(deadline if wait_all or not late else time.monotonic())
        except DistBackendError:
            late.append(rank)
    return late if wait_all else late[:1]


def _report(group: ProcessGroup, deadline: float) -> None:
    coming = group._messages.receive(0, TAG, np.zeros(1, np.uint8))
    try:
        group._messages.send(0, TAG, np.zeros(1, np.uint8), deadline)
        coming.wait(deadline)
    except DistBackendError as error:
        raise RuntimeError(
            f"Rank {group.rank()} successfully reached monitoredBarrier, but received errors while "
            "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
        ) from error
