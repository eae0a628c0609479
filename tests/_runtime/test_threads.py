"""The thread pool: every task runs once, whatever happens around it, and nothing runs when idle."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau._compiler.native import from_source
from flambeau._runtime import pool_kernels as layout
from flambeau._runtime import threads
from flambeau._runtime.launch import kernel

pytest.importorskip("llvmlite")

# counts[task] += 1 and some work, so that threads have time to join
COUNT = """
def count(counts: pointer(i64), work: i64, task: i64, tasks: i64):
    x = f64(1)
    for i in range(work):
        x = x * 0.999
    if x >= 0.0:
        counts[task] = counts[task] + 1
"""
count = from_source("count", COUNT, {})


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run_python(code: str, limit: int = 120) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=limit,
        env=dict(os.environ), check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def ran_once(tasks: int, work: int = 200, times: int = 1) -> bool:
    counts = np.zeros(tasks, np.int64)
    run = kernel(count)
    for _ in range(times):
        run.parallel(tasks, counts, work)
    return bool((counts == times).all())


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 64, 1000])
def test_every_task_runs_once(limit: int, tasks: int):
    torch.set_num_threads(limit)
    assert ran_once(tasks)


def test_the_number_of_threads_goes_up_and_down():
    for limit in (2, 4, 1, 3, 2, 6, 2):
        torch.set_num_threads(limit)
        assert ran_once(16, times=200)
        time.sleep(0.001)
        assert ran_once(16)


def test_pauses_between_jobs():
    """Short of, about and beyond the time after which threads go to sleep."""
    torch.set_num_threads(3)
    for pause in (0.0, 5e-5, threads.SPIN * 1e-9, 1e-3):
        for _ in range(50):
            assert ran_once(8)
            time.sleep(pause)


def test_several_python_threads_launch_at_once():
    torch.set_num_threads(3)
    fine: list[bool] = []

    def work() -> None:
        fine.append(ran_once(9, work=2000, times=300))

    crowd = [threading.Thread(target=work) for _ in range(4)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert fine == [True] * 4


def test_idle_threads_use_no_processor():
    torch.set_num_threads(4)
    assert ran_once(8)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.05


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no processors to choose")
def test_woken_threads_may_run_where_they_could_before():
    """They are kept from the waking thread's processor only until they run."""
    torch.set_num_threads(3)
    assert ran_once(8)
    for _ in range(30):
        time.sleep(0.002)  # they sleep
        assert ran_once(8)
    own = os.sched_getaffinity(0)
    end = time.monotonic() + 20  # on a busy machine it takes a while until each of them runs
    while time.monotonic() < end and any(allowed != own for allowed in affinities()):
        time.sleep(0.05)
    assert affinities() == [own] * len(affinities())


def affinities() -> list[set[int]]:
    """The processors on which each thread of the process may run."""
    return [os.sched_getaffinity(int(task.name)) for task in Path("/proc/self/task").iterdir()]


def test_threads_beyond_the_limit_sleep_while_others_work():
    """Three of the four threads are left out: they do not spin beside the work of one."""
    torch.set_num_threads(4)
    assert ran_once(8)
    torch.set_num_threads(2)
    assert ran_once(8)
    time.sleep(0.01)
    pool = threads.Shared.pool
    assert isinstance(pool, threads.NativePool)
    before = thread_times()
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        assert ran_once(8)
    after = thread_times()
    busy = [task for task in before if after[task] - before[task] > 5]  # in 1/100 s
    assert len(busy) <= 2


def thread_times() -> dict[str, int]:
    """Processor time of the process's threads, in 1/100 s."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        words = (task / "stat").read_text().rpartition(")")[2].split()
        found[task.name] = int(words[11]) + int(words[12])
    return found


def test_no_threads_before_the_first_parallel_work():
    code = """
import os, numpy
from pathlib import Path
count = lambda: len(list(Path("/proc/self/task").iterdir()))
before = count()
import flambeau as torch
torch.set_num_threads(3)
from flambeau._compiler.native import from_source
from flambeau._runtime.launch import kernel
run = kernel(from_source("nothing", "def nothing(x: pointer(f32)):\\n    pass\\n", {}))
x = numpy.zeros(3, numpy.float32)
run(x)
run.parallel(1, x)
print(count() - before)
run.parallel(8, x)
print(count() - before)
run.parallel(8, x)
print(count() - before)
"""
    assert run_python(code) == "0\n2\n2\n"


def test_a_small_job_wakes_no_more_threads_than_it_has_tasks():
    torch.set_num_threads(6)
    assert ran_once(12)
    pool = threads.Shared.pool
    assert isinstance(pool, threads.NativePool)
    words = (ctypes.c_int64 * layout.WORDS).from_address(pool.state)
    end = time.monotonic() + 60
    while (asleep := words[layout.SLEEPING]) < pool.started and time.monotonic() < end:
        time.sleep(0.001)
    assert asleep == pool.started >= 5
    assert ran_once(2)
    assert words[layout.ROUSED] >> 32 == words[layout.NEXT] >> 32
    assert words[layout.ROUSED] & 0xFFFFFFFF == 2  # the first that nobody has thought of


LATE = """
def late(state: pointer(i64), ticket: i64):
    take(state, ticket)
"""


@pytest.mark.parametrize("ticket", [6, 8])
def test_who_comes_late_takes_no_task_of_a_job_that_is_being_written_down(ticket: int):
    """Ticket 6 is over, 8 is being written down: its tasks are known already, its kernel is not."""
    words = np.zeros(layout.WORDS, np.int64)
    words[layout.NEXT], words[layout.TASKS], words[layout.FUNCTION] = 7 << 32, 100, 0
    found = {"offered": layout.offered, "take": layout.take}
    words[layout.FLOATS] = 0x1F80  # as a process begins
    place = np.zeros(layout.PLACE, np.int64)
    words[layout.LIMIT], place[layout.NUMBER] = 4, 1
    answer = np.zeros(1, np.int64)
    offer = from_source("offer", OFFER, found)
    kernel(offer)(words, place, 6, answer)
    assert answer[0] == 0
    kernel(from_source("late", LATE, found))(words, ticket)
    assert words[layout.NEXT] == 7 << 32
    assert words[layout.DONE] == 0


OFFER = """
def offer(state: pointer(i64), place: pointer(i64), seen: i64, answer: pointer(i64)):
    answer[0] = offered(state, place, seen)
"""


def test_signals_stay_with_python():
    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc")
    code = (
        PREPARE
        + """
run.parallel(8, counts, 100)
for task in sorted(Path("/proc/self/task").iterdir()):
    if int(task.name) > os.getpid():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("SigBlk"):
                print(bool(int(line.split()[1], 16) >> 1 & 1))  # SIGINT
"""
    )
    assert run_python(code).splitlines()[-2:] == ["True", "True"]


PREPARE = f"""
import os, sys, threading, time
from pathlib import Path
import numpy as np
import flambeau as torch
from flambeau._compiler.native import from_source
from flambeau._runtime import pool_kernels as layout
from flambeau._runtime import threads
from flambeau._runtime.launch import kernel
torch.set_num_threads(3)
run = kernel(from_source("count", '''{COUNT}''', {{}}))
counts = np.zeros(16, np.int64)
"""


def test_a_child_makes_its_own_pool():
    code = (
        PREPARE
        + """
run.parallel(16, counts, 1000)
for _ in range(10):
    child = os.fork()
    if child == 0:
        run.parallel(16, counts, 1000)
        fine = (counts == 2).all() and len(list(Path("/proc/self/task").iterdir())) == 3
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0
run.parallel(16, counts, 1000)
print((counts == 2).all())
"""
    )
    assert run_python(code) == "True\n"


def test_two_threads_never_get_one_place():
    """Also where a handler raises when the system has just started one: another thread of Python
    may have taken the signal."""
    code = (
        PREPARE
        + """
from flambeau._runtime.threads import NativePool
start, numbers = NativePool._start, []
def interrupted(self, number, spin):
    done = start(self, number, spin)
    numbers.append(number)
    if len(numbers) == 1:
        raise KeyboardInterrupt
    return done
NativePool._start = interrupted
torch.set_num_threads(4)
try:
    run.parallel(8, counts, 100)
except KeyboardInterrupt:
    pass
for _ in range(20):
    run.parallel(8, counts, 100)
print(numbers, counts.tolist()[:8])
"""
    )
    assert run_python(code) == f"[1, 2, 3] {[20] * 8}\n"


def test_a_fork_while_a_job_runs():
    code = (
        PREPARE
        + """
stop = False
def work():
    own = np.zeros(16, np.int64)
    while not stop:
        run.parallel(16, own, 20000)
crowd = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in crowd]
for _ in range(10):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        for _ in range(20):
            run.parallel(16, counts, 1000)
        os._exit(0 if (counts == 20).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
stop = True
[thread.join() for thread in crowd]
print("done")
"""
    )
    assert run_python(code) == "done\n"


def test_the_interpreter_ends_while_threads_spin_and_work():
    code = (
        PREPARE
        + """
def work():
    own = np.zeros(16, np.int64)
    while True:
        run.parallel(16, own, 20000)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.01)
run.parallel(16, counts, 1000)
"""
    )
    for _ in range(3):
        assert run_python(code) == ""


def test_no_more_threads_than_the_system_allows():
    pool = threads.NativePool()

    class Refuses:
        def pthread_mutex_init(self, *arguments: object) -> int:
            return 0

        pthread_cond_init = pthread_mutex_init

        def pthread_create(self, *arguments: object) -> int:
            return 11  # EAGAIN

    pool.library = Refuses()  # type: ignore[assignment]
    run = kernel(count)
    counts = np.zeros(12, np.int64)
    for _ in range(3):
        pool.run(run, (counts, 100), 12, 4)
    assert (counts == 3).all()


@pytest.mark.parametrize("limit", [2, 4])
def test_python_threads_do_the_same(limit: int):
    pool = threads.PythonPool()
    run = kernel(count)
    for tasks in (2, 3, 17):
        counts = np.zeros(tasks, np.int64)
        for _ in range(20):
            pool.run(run, (counts, 100), tasks, limit)
        assert (counts == 20).all()
    pool.executor.shutdown()


def test_under_load():
    """Other processes want the cores too: jobs are late, but nobody waits for ever."""
    burn = "while True: pass"
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(4)]
    try:
        torch.set_num_threads(2)
        start = time.perf_counter()
        assert ran_once(8, work=1000, times=300)
        assert time.perf_counter() - start < 30
    finally:
        for other in others:
            other.kill()
            other.wait()
