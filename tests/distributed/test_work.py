"""Communications run one after another: in the thread of a group, or where one waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from flambeau.distributed.work import Progress, Work


class WithoutThread(Progress):
    """What nobody waits for does not run: its thread never comes to it."""

    def __init__(self) -> None:
        super().__init__("test")
        self._thread = threading.Thread()

    def close(self) -> None:
        """There is no thread to wait for."""


def started(progress: Progress, jobs: list[Callable[[], None]]) -> list[Work]:
    works = [Work() for _ in jobs]
    for job, work in zip(jobs, works, strict=True):
        progress.start(job, work)
    return works


def test_all_run_in_order():
    progress, seen = Progress("test"), []
    works = started(progress, [lambda n=n: seen.append(n) for n in range(100)])
    works[60].wait()
    assert seen[:61] == list(range(61))
    works[-1].wait()
    assert seen == list(range(100))
    progress.close()


def test_who_waits_runs_what_comes_before():
    seen: list[tuple[int, threading.Thread]] = []
    jobs = [lambda n=n: seen.append((n, threading.current_thread())) for n in range(4)]
    works = started(WithoutThread(), jobs)
    works[2].wait()
    assert seen == [(n, threading.current_thread()) for n in range(3)]
    assert [work.is_completed() for work in works] == [True, True, True, False]


def test_who_waits_for_a_time_runs_nothing():
    seen: list[int] = []
    (work,) = started(WithoutThread(), [lambda: seen.append(1)])
    with pytest.raises(RuntimeError, match="Operation timed out"):
        work.wait(timedelta(milliseconds=1))
    assert seen == []


def test_what_runs_elsewhere_is_waited_for():
    progress, seen = Progress("test"), []
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go_on.wait()
        seen.append("slow")

    works = started(progress, [slow, lambda: seen.append("next")])
    begun.wait()
    progress.help(works[1])  # nothing can be done here
    assert seen == []
    go_on.set()
    works[1].wait()
    assert seen == ["slow", "next"]
    progress.close()


def test_an_error_is_raised_where_its_work_is_waited_for():
    def fail() -> None:
        raise RuntimeError("it fails")

    seen: list[int] = []
    failing, after = started(WithoutThread(), [fail, lambda: seen.append(1)])
    after.wait()
    assert seen == [1]
    with pytest.raises(RuntimeError, match="it fails"):
        failing.wait()


def test_an_interruption():
    def interrupt() -> None:
        raise KeyboardInterrupt

    progress = WithoutThread()
    (work,) = started(progress, [interrupt])
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    with pytest.raises(RuntimeError, match="was interrupted"):
        work.wait()
    (following,) = started(progress, [lambda: None])
    assert following.wait()
