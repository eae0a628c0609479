"""What is switched on once: wholly or not at all, whatever comes between."""

from __future__ import annotations

import threading

import pytest

from flambeau._core.once import Once, Shared


def test_work_that_was_interrupted_is_done_by_the_next_call() -> None:
    steps: list[str] = []

    def work() -> None:
        steps.append("begun")
        if len(steps) == 1:
            raise KeyboardInterrupt
        steps.append("done")

    once = Once(work)
    with pytest.raises(KeyboardInterrupt):
        once()
    once()
    once()
    assert steps == ["begun", "begun", "done"]


def test_calls_from_within_the_work_do_nothing() -> None:
    steps: list[int] = []

    def work() -> None:
        steps.append(len(steps))
        once()

    once = Once(work)
    once()
    assert steps == [0]


def test_other_threads_wait_until_it_is_done() -> None:
    begun, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def work() -> None:
        begun.set()
        go_on.wait(30)
        order.append("done")

    def second() -> None:
        once()
        order.append("after")

    once = Once(work)
    threads = [threading.Thread(target=once), threading.Thread(target=second)]
    threads[0].start()
    begun.wait(30)
    threads[1].start()
    threads[1].join(0.2)
    assert threads[1].is_alive()
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert order == ["done", "after"]


def test_the_last_user_switches_off() -> None:
    told: list[str] = []
    shared = Shared(lambda: told.append("on"), lambda: told.append("off"))
    with shared:
        with shared:
            pass
        assert told == ["on"]
    assert told == ["on", "off"]


def test_a_switch_that_fails_half_way_is_off() -> None:
    told: list[str] = []

    def on() -> None:
        told.append("on")
        if len(told) == 1:
            raise KeyboardInterrupt

    shared = Shared(on, lambda: told.append("off"))
    with pytest.raises(KeyboardInterrupt), shared:
        pass
    assert told == ["on", "off"]
    with shared:
        assert told == ["on", "off", "on"]
    assert told[3:] == ["off"]
