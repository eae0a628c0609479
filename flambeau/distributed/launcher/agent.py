"""One agent runs on each machine; they meet in a store, start together and fail together."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

from flambeau.distributed import secret
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError
from flambeau.distributed.errors import DistError, DistNetworkError
from flambeau.distributed.launcher.workers import Failure, Workers
from flambeau.distributed.rendezvous import AGENT_STORE
from flambeau.distributed.stores import PrefixStore, Store, TCPStore

JOIN = timedelta(seconds=600)
LEAVE = timedelta(seconds=30)
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


@dataclass(frozen=True)
class Job:
    """What is to be run, and how.

    command: of one process. nodes: machines. processes: on this machine. node: the rank of this
    machine; -1: in the order in which they come. host, port: where the agents meet.
    """

    name: str
    command: Sequence[str]
    nodes: int
    processes: int
    node: int
    host: str
    port: int
    identity: str
    max_restarts: int
    interval: float
    grace: float
    role: str


class Interrupted(BaseException):
    """A signal that ends the job."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the launcher got {signal.Signals(number).name}")


def launch(job: Job) -> None:
    """Run a job to its end.

    Raises:
        ChildFailedError: a process failed, and no restarts were left.
        DistError: the agents did not find one another.
    """
    if job.nodes == 1:
        os.environ[secret.VARIABLE] = secret.hand_to_children()
    with _signals():
        store = _meet(job)
        agents = PrefixStore(f"torchrun/{job.identity}", store)
        node = job.node if job.node >= 0 else agents.add("nodes", 1) - 1
        for attempt in range(job.max_restarts + 1):
            failures = _attempt(job, PrefixStore(str(attempt), agents), store, node, attempt)
            if failures is None:
                break
            sys.stderr.write(_told(job, failures, attempt))
        _take_leave(job, agents, node)
    if failures:
        raise ChildFailedError(job.name, failures)
    if failures is not None:
        raise ChildFailedError(job.name, [])


def _meet(job: Job) -> TCPStore:
    """The agents' store: on the machine of rank 0, or of who can listen there."""
    if job.node > 0:
        return TCPStore(job.host, job.port, None, False, JOIN)
    try:
        return TCPStore(job.host, job.port, None, True, JOIN, wait_for_workers=False)
    except DistNetworkError:
        if job.node == 0 or job.nodes == 1:
            raise
        return TCPStore(job.host, job.port, None, False, JOIN)


def _attempt(job: Job, agents: Store, store: TCPStore, node: int,
             attempt: int) -> list[Failure] | None:  # fmt: skip
    """Start all processes and wait: None if all ended well, else what failed on this machine."""
    agents.set(f"processes/{node}", str(job.processes))
    keys = [f"processes/{each}" for each in range(job.nodes)]
    agents.wait(keys, JOIN)
    counts = [int(count) for count in agents.multi_get(keys)]
    environments = _environments(job, store, node, counts, attempt)
    workers = Workers(job.command, environments)
    grace = job.grace
    try:
        return _watch(job, agents, workers)
    except BaseException:
        grace = min(grace, 5.0)
        with contextlib.suppress(DistError):
            agents.set("failed", str(node))
        raise
    finally:
        workers.end(grace)


def _watch(job: Job, agents: Store, workers: Workers) -> list[Failure] | None:
    told = False
    while True:
        failures = workers.failures()
        if failures:
            agents.set("failed", "yes")
            return failures
        if workers.are_done() and not told:
            agents.add("done", 1)
            told = True
        if told and agents.add("done", 0) == job.nodes:
            return None
        if job.nodes > 1 and agents.check(["failed"]):
            return []
        time.sleep(job.interval)


def _environments(job: Job, store: TCPStore, node: int, counts: list[int],
                  attempt: int) -> list[dict[str, str]]:  # fmt: skip
    """What each process is told."""
    first, world = sum(counts[:node]), sum(counts)
    shared = {
        "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": job.processes, "ROLE_WORLD_SIZE": world,
        "GROUP_WORLD_SIZE": job.nodes, "GROUP_RANK": node, "ROLE_NAME": job.role,
        "MASTER_ADDR": job.host, "MASTER_PORT": store.port, AGENT_STORE: True,
        "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": job.max_restarts,
        "TORCHELASTIC_RUN_ID": job.identity,
        "TORCHELASTIC_SIGNALS_TO_HANDLE": ",".join(SIGNALS),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1" if job.processes > 1 else ""),
    }  # fmt: skip
    made = []
    for local in range(job.processes):
        own = {"LOCAL_RANK": local, "RANK": first + local, "ROLE_RANK": first + local}
        told = {name: str(value) for name, value in {**shared, **own}.items()}
        made.append({name: value for name, value in told.items() if value})
    return made


def _take_leave(job: Job, agents: Store, node: int) -> None:
    """The agent that has the store stays until the others have gone."""
    with contextlib.suppress(DistError):
        agents.add("left", 1)
        deadline = time.monotonic() + LEAVE.total_seconds()
        while agents.add("left", 0) < job.nodes and time.monotonic() < deadline:
            time.sleep(0.02)


def _told(job: Job, failures: list[Failure], attempt: int) -> str:
    what = f"rank {failures[0].rank} failed" if failures else "another machine's process failed"
    left = job.max_restarts - attempt
    return f"torchrun: {what}; {left} of {job.max_restarts} restarts left\n"


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Signals that end the launcher end its children first."""

    def interrupt(number: int, frame: Any) -> NoReturn:
        raise Interrupted(number)

    before = {}
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def new_identity() -> str:
    """A name for a job that nobody named."""
    return str(uuid.uuid4())
