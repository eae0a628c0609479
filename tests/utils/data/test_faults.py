"""What goes wrong with workers: the error that arrives, and that nothing of them is left."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest

from flambeau.utils.data import DataLoader, Dataset, IterableDataset

METHODS = ("fork", "spawn", "forkserver")
SOON = 1.0
"""Seconds within which the loss of a worker has to be noticed."""

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*multi-threaded, use of fork:DeprecationWarning", "ignore:This DataLoader will create"
)


def _left_over() -> tuple[list[str], list[str]]:
    """Shared memory that this process maps or has open; threads of ours."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    shared = [line for line in maps if "memfd:flambeau" in line or "/dev/shm/" in line]
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the folder's own descriptor
            link = str(entry.readlink())
            shared += [link] if "memfd:flambeau" in link else []
    return shared, [t.name for t in threading.enumerate() if t.name.startswith("flambeau")]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = _left_over()
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    assert _left_over() == before


def is_gone(pid: int) -> bool:
    """Whether a process has ended (one that waits for its parent to notice has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for something, but not for ever."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# ---- what can go wrong, by name


class BadSample(Exception):
    """Raised by a sample."""


def _raise() -> None:
    raise BadSample("sample can't be read")


ACTS: dict[str, Callable[[], Any]] = {
    "raise": _raise,
    "sys.exit": lambda: sys.exit(7),
    "os._exit": lambda: os._exit(7),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "unpicklable": lambda: threading.Lock(),
    "hang": lambda: time.sleep(60),
}


class Bad(Dataset[Any]):
    """Numbers, but for one sample."""

    def __init__(self, act: str, at: int = 5) -> None:
        self.act, self.at = act, at

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        return ACTS[self.act]() if index == self.at else index


class BadStream(IterableDataset[Any]):
    """Goes wrong before the first sample."""

    def __iter__(self) -> Iterator[Any]:
        _raise()
        return iter([])


def plain(samples: Any) -> Any:
    """Batches that are lists."""
    return samples


def bad_collate(samples: Any) -> Any:
    """Does not like 5."""
    return _raise() if 5 in samples else samples


def bad_init(worker: int) -> None:
    """Goes wrong in worker 1."""
    if worker == 1:
        _raise()


def loader(source: Any, method: str, **given: Any) -> DataLoader[Any]:
    """Batches of two by two workers of a kind."""
    if method == "thread":
        given["worker_type"] = "thread"
    else:
        given["multiprocessing_context"] = method
    return DataLoader(source, 2, num_workers=2, **{"collate_fn": plain, **given})


def error_of(batches: DataLoader[Any], kind: type[BaseException]) -> str:
    with pytest.raises(kind) as caught:
        list(batches)
    text = str(caught.value)
    caught.value.__traceback__ = None  # which holds the iterator, and that its workers
    return text


# ---- exceptions


@pytest.mark.parametrize("method", [*METHODS, "thread"])
def test_an_exception_arrives_with_everything(method: str) -> None:
    text = error_of(loader(Bad("raise"), method), BadSample)
    kind = "thread" if method == "thread" else "process"
    assert text.startswith(f"Caught BadSample in DataLoader worker {kind} 0.\nOriginal Traceback ")
    assert "in __getitem__" in text
    assert "BadSample: sample can't be read" in text
    assert text.endswith("It was raised for sample 5.\n")


@pytest.mark.parametrize("method", [*METHODS, "thread"])
def test_exceptions_elsewhere(method: str) -> None:
    cases: list[tuple[DataLoader[Any], str, str]] = [
        (loader(Bad("none", -1), method, collate_fn=bad_collate), "bad_collate", "sample [4, 5]"),
        (loader(Bad("none", -1), method, worker_init_fn=bad_init), "bad_init", " 1.\nOriginal"),
        (loader(BadStream(), method), "__iter__", " 0.\nOriginal"),
    ]
    for batches, function, text in cases:
        found = error_of(batches, BadSample)
        assert f"in {function}" in found
        assert text in found


@pytest.mark.parametrize("method", [*METHODS, "thread"])
def test_what_failed_once_fails_again_and_does_not_hang(method: str) -> None:
    batches = iter(loader(Bad("none", -1), method, worker_init_fn=bad_init))
    found = []
    for _ in range(6):
        try:
            found.append(next(batches))
        except BadSample:
            found.append(None)
    assert found == [[0, 1], None, [4, 5], None, [8, 9], None]
    assert next(batches, "end") == "end"
    stream = iter(loader(BadStream(), method))
    for _ in range(2):
        with pytest.raises(BadSample):
            next(stream)
    assert next(stream, "end") == "end"


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_that_cannot_be_pickled(method: str) -> None:
    text = error_of(loader(Bad("unpicklable"), method), TypeError)
    assert "cannot pickle '_thread.lock' object" in text
    assert "when batch 2 was to be sent" in text


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_dataset_that_cannot_be_pickled(method: str) -> None:
    source = Bad("raise")
    source.at = threading.Lock()  # type: ignore[assignment]
    with (
        pytest.warns(UserWarning, match="Got pickle error when attempting to start a worker"),
        pytest.raises(TypeError, match="cannot pickle '_thread.lock' object"),
    ):
        iter(loader(source, method))


class LocksTheDoor:
    """Can be pickled, but not unpickled."""

    def __reduce__(self) -> Any:
        return _raise, ()


def test_a_sample_that_cannot_be_unpickled() -> None:
    batches = iter(loader([1, 2, LocksTheDoor(), 4, 5, 6], "fork"))
    assert next(batches) == [1, 2]
    with pytest.raises(BadSample, match="by unpickling a batch"):
        next(batches)
    assert next(batches) == [5, 6]
    assert next(batches, "end") == "end"


# ---- workers that are lost


LOST = {
    "kill": "killed by SIGKILL, often the system's answer when memory runs out",
    "segfault": "killed by SIGSEGV, a crash in compiled code that the dataset uses",
    "os._exit": "with exit code 7",
    "sys.exit": "with exit code 7",
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("act", LOST)
def test_a_worker_that_ends(act: str, method: str) -> None:
    batches = iter(loader(Bad(act), method))
    pids = batches.crew.pids
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        list(batches)
    assert f"(pid(s) {pids[0]})" in str(caught.value)
    if method != "forkserver" or not LOST[act].startswith("killed"):
        assert LOST[act] in str(caught.value)
    assert all(is_gone(pid) for pid in pids)
    assert next(batches, "end") == "end"


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_that_is_killed_is_noticed_at_once(method: str) -> None:
    batches = iter(loader(Bad("hang", 4), method))
    assert next(batches) == [0, 1]
    assert next(batches) == [2, 3]
    pids = batches.crew.pids
    threading.Timer(0.1, os.kill, (pids[0], signal.SIGKILL)).start()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"{pids[0]}\) exited unexpectedly"):
        next(batches)
    assert time.monotonic() - start < 0.1 + SOON
    assert all(is_gone(pid) for pid in pids)


def test_a_worker_that_is_lost_between_passes() -> None:
    data = loader(Bad("none", -1), "fork", persistent_workers=True)
    assert len(list(data)) == 6
    os.kill(data._iterator.crew.pids[1], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by SIGKILL"):
        list(data)
    assert len(list(data)) == 6  # with new ones
    data._iterator.close()


def test_a_thread_that_wants_to_exit() -> None:
    text = error_of(loader(Bad("sys.exit"), "thread"), RuntimeError)
    assert text.startswith("Caught SystemExit in DataLoader worker thread 0.")


@pytest.mark.parametrize("method", [*METHODS])
def test_a_sample_that_takes_too_long(method: str) -> None:
    batches = iter(loader(Bad("hang"), method, timeout=2))
    pids = batches.crew.pids
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 2 seconds"):
        list(batches)
    assert time.monotonic() - start < 10
    assert all(is_gone(pid) for pid in pids)


class Long(Dataset):
    """Samples that do not fit a pipe."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: Any) -> Any:
        return bytes(3_000_000) if type(index) is int else len(index)


def test_a_worker_that_is_stopped_in_the_middle_of_a_batch() -> None:
    """A part of the message has come, the rest never will."""
    data: Any = DataLoader(Long(), batch_size=None, num_workers=1, timeout=2,
                           multiprocessing_context="fork")  # fmt: skip
    batches = iter(data)
    pids = batches.crew.pids
    assert len(next(batches)) == 3_000_000
    assert wait([batches.crew.receivers[0].connection], 20)  # it is sending the next one
    time.sleep(0.2)
    os.kill(pids[0], signal.SIGSTOP)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 2 seconds"):
        list(batches)
    assert time.monotonic() - start < 10
    assert all(is_gone(pid) for pid in pids)


def test_a_stopped_worker_that_takes_no_task() -> None:
    indices = [list(range(300_000))] * 8
    data: Any = DataLoader(Long(), sampler=indices, batch_size=None, num_workers=1, timeout=2,
                           prefetch_factor=1, multiprocessing_context="fork")  # fmt: skip
    batches = iter(data)
    pids = batches.crew.pids
    os.kill(pids[0], signal.SIGSTOP)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 2 seconds"):
        list(batches)
    assert time.monotonic() - start < 10
    assert all(is_gone(pid) for pid in pids)


def test_a_thread_that_takes_too_long() -> None:
    ended = threading.Event()
    ACTS["wait"] = lambda: ended.wait(20)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        list(loader(Bad("wait"), "thread", timeout=0.2))
    ended.set()
    assert until(lambda: _left_over()[1] == [], 5)


# ---- the end


@pytest.fixture
def small_heap() -> Iterator[None]:
    """A collection of garbage looks at what the test makes, not at what all others have left."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize("method", [*METHODS, "thread"])
@pytest.mark.parametrize("persistent", [False, True])
def test_an_iterator_that_is_dropped(method: str, persistent: bool) -> None:
    data = loader(Bad("none", -1), method, persistent_workers=persistent)
    batches = iter(data)
    assert next(batches) == [0, 1]
    pids = batches.crew.pids if method != "thread" else []
    start = time.monotonic()
    del batches, data
    gc.collect()
    assert time.monotonic() - start < 15
    assert all(is_gone(pid) for pid in pids)


def test_a_pass_that_is_left_early_does_not_show_in_the_next() -> None:
    for method in ("fork", "thread"):
        data = loader(Bad("none", -1), method, persistent_workers=True)
        for _ in range(5):
            assert next(iter(data)) == [0, 1]
        assert list(data) == [[k, k + 1] for k in range(0, 12, 2)]
        data._iterator.close()


def test_loaders_beside_each_other_end_on_their_own() -> None:
    first = iter(loader(Bad("none", -1), "fork"))
    second = iter(loader(Bad("none", -1), "fork"))
    assert next(first) == next(second) == [0, 1]
    pids = first.crew.pids
    start = time.monotonic()
    del first
    assert time.monotonic() - start < 0.9  # less than the grace of a worker that is late
    assert all(is_gone(pid) for pid in pids)
    assert next(second) == [2, 3]


def test_a_forked_process_that_drops_an_iterator_leaves_its_parents_workers_alone() -> None:
    batches = iter(loader(Bad("none", -1), "fork"))
    child = os.fork()
    if not child:
        batches.crew.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert list(batches) == [[k, k + 1] for k in range(0, 12, 2)]


PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs begin with it ignored
import os, sys, time
from flambeau.utils.data import DataLoader

class Slow:
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(float(sys.argv[2]) if index > 3 else 0)
        return index

if __name__ == "__main__":
    kind = {"worker_type": "thread"} if sys.argv[1] == "thread" else {
        "multiprocessing_context": sys.argv[1]}
    batches = iter(DataLoader(Slow(), 2, num_workers=2, **kind))
    print(next(batches).tolist(), *getattr(batches.crew, "pids", []), flush=True)
    for batch in batches:
        pass
"""


@contextlib.contextmanager
def running(folder: Path, method: str, pause: float) -> Iterator[tuple[Any, list[int]]]:
    """A program in the middle of a pass, and its workers."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), method, str(pause)]
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as left_behind, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
        # what is killed leaves its temporary folders
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": left_behind},
    ) as program:  # fmt: skip
        try:
            assert program.stdout is not None
            words = program.stdout.readline().split("]")
            assert words[0] == "[0, 1"
            yield program, [int(pid) for pid in words[1].split()]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


@pytest.mark.parametrize("method", [*METHODS, "thread"])
@pytest.mark.parametrize("pause", [0.01, 30])
def test_ctrl_c_ends_with_one_traceback(method: str, pause: float, tmp_path: Path) -> None:
    with running(tmp_path, method, pause) as (program, pids):
        time.sleep(0.1)
        start = time.monotonic()
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to everybody
        _, errors = program.communicate(timeout=20)
        assert time.monotonic() - start < 15
        assert errors.count("Traceback (most recent call last)") == 1
        assert errors.endswith("KeyboardInterrupt\n")
        assert all(is_gone(pid) for pid in pids)
        assert program.returncode == -signal.SIGINT


INTERRUPTS = """
import os, signal, time
os.killpg(os.getpgrp(), signal.SIGINT)
time.sleep(1)
"""
STARTING = """
import multiprocessing, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ != "__main__" and sys.argv[1] == "spawn":
    import interrupts  # a worker imports its modules
from flambeau.utils.data import DataLoader

if __name__ == "__main__":
    multiprocessing.set_forkserver_preload(["interrupts"])  # the server does
    print(list(DataLoader(range(4), num_workers=1, multiprocessing_context=sys.argv[1])))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_ctrl_c_while_workers_start_has_one_traceback(method: str, tmp_path: Path) -> None:
    (tmp_path / "interrupts.py").write_text(INTERRUPTS)
    script = tmp_path / "program.py"
    script.write_text(STARTING)
    path = os.pathsep.join([str(Path(__file__).parents[3]), str(tmp_path)])
    program = subprocess.run(
        [sys.executable, str(script), method], capture_output=True, text=True, timeout=60,
        start_new_session=True, env={**os.environ, "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert program.stderr.count("Traceback (most recent call last)") == 1, program.stderr
    assert program.stderr.endswith("KeyboardInterrupt\n")
    assert program.returncode == -signal.SIGINT


def test_a_server_of_workers_can_be_interrupted_once_it_runs() -> None:
    code = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
os.kill(os.getpid(), signal.SIGINT)
import flambeau.utils.data.interruptible_server
assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("alive")
os.kill(os.getpid(), signal.SIGINT)
"""
    program = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             timeout=60, check=False)  # fmt: skip
    assert program.stdout == "alive\n"
    assert program.stderr.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pause", [0.01, 60])
def test_workers_end_with_their_parent(method: str, pause: float, tmp_path: Path) -> None:
    with running(tmp_path, method, pause) as (program, pids):
        assert len(pids) == 2
        program.kill()
        assert until(lambda: all(is_gone(pid) for pid in pids), 5)
