"""`torch.futures`: results that come later, and what is said of those that come twice or not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare


def first_line(function: Any, *args: Any) -> Any:
    """What a call gives; of an error, the class and the first line."""
    found = attempt(function, *args)
    return [found.kind, found.text.partition("\n")[0]] if hasattr(found, "kind") else found


def given(t: Any) -> Any:
    future = t.futures.Future()
    before = future.done()
    future.set_result(t.ones(2))
    return [before, future.done(), future.wait(), future.value(), first_line(future.set_result, 1)]


def failed(t: Any) -> Any:
    future = t.futures.Future()
    future.set_exception(ValueError("bad"))
    later = future.then(lambda done: done.wait())
    return [first_line(f) for f in (future.wait, future.value, later.wait)]


def chained(t: Any) -> Any:
    future, seen = t.futures.Future(), []
    twice = future.then(lambda done: done.wait() * 2)
    thrice = twice.then(lambda done: done.wait() + 1)
    broken = future.then(lambda done: 1 / 0)
    future.add_done_callback(lambda done: seen.append(done.wait()))
    before = [twice.done(), thrice.done()]
    future.set_result(3)
    future.add_done_callback(lambda done: seen.append("at once"))
    return [before, twice.wait(), thrice.wait(), first_line(broken.wait), seen]


def several(t: Any) -> Any:
    futures = [t.futures.Future() for _ in range(3)]
    together = t.futures.collect_all(futures)
    for number, future in enumerate(futures):
        future.set_result(number)
    bad = t.futures.Future()
    bad.set_exception(KeyError("nothing"))
    return [
        [future.wait() for future in together.wait()],
        t.futures.wait_all(futures),
        first_line(t.futures.wait_all, [futures[0], bad]),
        t.futures.wait_all([]),
    ]


def from_a_thread(t: Any) -> Any:
    future = t.futures.Future()
    timer = threading.Timer(0.05, future.set_result, [5])
    timer.start()
    return future.wait()


def refused(t: Any) -> Any:
    future = t.futures.Future
    return [
        first_line(future().set_exception, "x"), first_line(future().then, 3),
        first_line(future().add_done_callback, 3), first_line(lambda: future(devices=["cpu"])),
        first_line(lambda: future(devices=[]).done()),
    ]  # fmt: skip


SCENARIOS = [given, failed, chained, several, from_a_thread, refused]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_futures(scenario: Any):
    compare(scenario)
