"""Processes that die, stop, leave or call something else: the others get an error that says so."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.processes import ROOT, Processes, run

OVER = [pytest.param({}, id="shared memory"),
        pytest.param({"FLAMBEAU_DISTRIBUTED_SHARED_MEMORY": "0"}, id="sockets")]  # fmt: skip
WAITS = """
dist.barrier()
tell("ready")
if RANK == SIZE - 1:
    time.sleep(1000)
tell(error_of(lambda: CALL))
time.sleep(1000)  # so that what this one does is not what the others see
"""
CALLS = ["dist.all_reduce(torch.ones(3))", "dist.all_reduce(torch.ones(300_000))", "dist.barrier()",
         "dist.recv(torch.ones(3), SIZE - 1)"]  # fmt: skip
LATE = 300
"""Seconds that nobody should need, half of the timeout; how long it takes is measured by
benchmarks/distributed_faults.py."""


@pytest.mark.parametrize("environment", OVER)
@pytest.mark.parametrize("call", CALLS)
def test_a_rank_is_killed(call: str, environment: dict[str, str]):
    with Processes(WAITS.replace("CALL", call), 3, **environment) as processes:
        for rank in range(3):
            assert processes.line(rank) == "ready"
        processes.signal(2, signal.SIGKILL)
        name = call.partition("(")[0].removeprefix("dist.")
        for rank in range(2):
            text, seconds = processes.line(rank)
            assert text.startswith(f"{name}: Connection closed by peer: rank 2 has died"), text
            assert seconds < LATE


@pytest.mark.parametrize("environment", OVER)
def test_a_rank_is_stopped(environment: dict[str, str]):
    if not Path("/proc/self/stat").exists():
        pytest.skip("the system does not tell which processes are stopped")
    with Processes(WAITS.replace("CALL", CALLS[0]), 2, **environment) as processes:
        for rank in range(2):
            assert processes.line(rank) == "ready"
        processes.signal(1, signal.SIGSTOP)
        text, seconds = processes.line(0)
        assert text.startswith("all_reduce: Connection closed by peer: rank 1 is stopped"), text
        assert seconds < LATE


@pytest.mark.parametrize("environment", OVER)
def test_a_rank_does_not_come(environment: dict[str, str]):
    impatient = 'dist.group.WORLD._timeout = timedelta(seconds=1)\ntell("ready")'
    text = WAITS.replace("CALL", CALLS[0]).replace('tell("ready")', impatient)
    with Processes(text, 2, **environment) as processes:
        assert processes.line(0) == "ready"
        text, _ = processes.line(0)
        assert text == (
            "Timed out waiting 1000ms for all_reduce operation to complete: rank 1 has not come"
        )


@pytest.mark.parametrize("environment", OVER)
def test_a_rank_leaves(environment: dict[str, str]):
    text = """
if RANK == 0:
    dist.destroy_process_group()
    tell("left")
else:
    tell(error_of(lambda: dist.all_reduce(torch.ones(3))))
"""
    left, (error, _) = run(text, **environment)
    assert left == "left"
    assert error.startswith("all_reduce: Connection closed by peer: rank 0 has left")


@pytest.mark.parametrize("environment", OVER)
def test_calls_that_do_not_match(environment: dict[str, str]):
    text = """
call = (lambda: dist.all_reduce(torch.ones(3))) if RANK else (lambda: dist.barrier())
told = error_of(call)
tell(told[0])
again = error_of(lambda: dist.barrier())
assert again[0] == told[0], again
"""
    first, second = run(text, **environment)
    assert first.startswith("barrier: rank 1 called something else at the same time")
    assert second.startswith("all_reduce: rank 0 called something else")


def test_an_error_of_a_work():
    text = """
work = None
if RANK == 0:
    work = dist.all_reduce(torch.ones(3), async_op=True)
else:
    dist.destroy_process_group()
    tell(None)
    sys.exit()
failed = error_of(work.wait)[0]
tell([failed, str(work.exception()), work.is_completed(), work.is_success()])
"""
    (failed, exception, completed, success), _ = run(text)
    assert failed.startswith("all_reduce: Connection closed by peer: rank 1")
    assert exception.startswith(failed)
    assert (completed, success) == (True, False)


def test_ending_without_destroying():
    """A rank may end once it has what it needs; the others still get what it sent."""
    text = """
from flambeau.distributed import world
x = torch.ones(200_000)
if RANK == 0:
    dist.send(x * 3, 1)
    dist.broadcast(x, 0)
    tell(0)
    sys.exit()
while 0 not in world.State.mesh.inbox.gone:
    time.sleep(0.001)
dist.recv(x, 0)
y = torch.zeros(200_000)
dist.broadcast(y, 0)
tell([x.sum().item(), y.sum().item()])
"""
    assert run(text)[1] == [600_000, 200_000]


def test_nothing_is_left_behind():
    """No names of shared memory, no threads, no listening sockets, no descriptors."""
    text = """
import threading
def descriptors():
    return len(os.listdir("/proc/self/fd"))
dist.destroy_process_group()
counts = []
for life in range(4):
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/again{life}", rank=RANK,
                            world_size=SIZE)
    dist.all_reduce(torch.ones(100_000), async_op=True).wait()
    dist.new_group([0, 1])
    dist.destroy_process_group()
    counts.append([descriptors(), threading.active_count()])
tell(counts)
"""
    if not Path("/dev/shm").exists():
        pytest.skip("there is no /dev/shm")
    before = set(Path("/dev/shm").iterdir())
    for counts in run(text):
        assert all(count == counts[0] for count in counts), counts
        assert counts[0][1] == 1
    assert set(Path("/dev/shm").iterdir()) <= before


MEETING = """
import json, sys, time
from datetime import timedelta
from flambeau import distributed as dist
from flambeau.distributed.transport import mesh, segment
rank, folder, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def wait(*args, **kwargs):
    print(json.dumps("ready"), flush=True)
    time.sleep(1000)
if rank == 1 and place == "before it connects":
    mesh.connect = wait
elif rank == 1:
    segment._open = wait
else:
    print(json.dumps("ready"), flush=True)
start = time.monotonic()
try:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2,
                            timeout=timedelta(seconds=600))
except RuntimeError as error:
    print(json.dumps([str(error).splitlines()[0], time.monotonic() - start]), flush=True)
"""


@pytest.mark.parametrize("place", ["before it connects", "before it shares memory"])
def test_a_rank_is_killed_while_processes_meet(place: str, tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", MEETING]
    with contextlib.ExitStack() as stack:
        both = []
        for rank in range(2):
            started = subprocess.Popen([*words, str(rank), str(tmp_path), place], text=True,
                                       stdout=subprocess.PIPE, env=environment)  # fmt: skip
            stack.enter_context(started)
            stack.callback(started.kill)
            both.append(started)
        for process in both:
            assert json.loads(process.stdout.readline()) == "ready"
        both[1].kill()
        both[1].wait()
        error, seconds = json.loads(both[0].stdout.readline())
        assert "rank 1 has died" in error
        assert seconds < LATE
