"""Forks of scripts: beside the caller, so many at once, and as their caller would run them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import flambeau as torch
from flambeau._core import settings
from flambeau.jit.run import futures

PATIENCE = 20  # seconds after which a test that hangs has failed


@pytest.fixture(autouse=True)
def _own_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(futures, "pool", futures.Pool())
    monkeypatch.setattr(settings.Threads, "between", 2)
    monkeypatch.setattr(settings.Threads, "begun", False)
    yield


def test_a_fork_runs_beside_its_caller():
    together = threading.Barrier(2)
    future = futures.forked(together.wait, PATIENCE)
    together.wait(PATIENCE)
    assert future.wait() in (0, 1)


def test_as_many_as_were_allowed():
    together = threading.Barrier(2)
    running, most = [0], [0]
    lock = threading.Lock()

    def count() -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait(PATIENCE)
        with lock:
            running[0] -= 1
        return threading.get_ident()

    found = [futures.forked(count) for _ in range(6)]
    idents = {future.wait() for future in found}
    assert most[0] == 2
    assert futures.pool.threads == 2
    assert len(idents) <= 2
    assert threading.get_ident() not in idents


def test_calls_that_wait_for_calls():
    def fib(n: int) -> int:
        if n < 2:
            return n
        parts = [futures.forked(fib, n - 1), futures.forked(fib, n - 2)]
        return sum(part.wait() for part in parts)

    assert futures.forked(fib, 9).wait() == 34


def test_modes_of_the_caller():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        future = futures.forked(lambda: x * 2)
    assert not future.wait().requires_grad
    assert futures.forked(lambda: x * 2).wait().requires_grad
    with torch.device("cpu:1"):
        inside = futures.forked(torch.get_default_device)
    assert inside.wait().index == 1
    with torch.autocast("cpu", torch.bfloat16):
        inside = futures.forked(lambda: (torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
    assert inside.wait() is torch.bfloat16
    assert torch.is_grad_enabled()


def put(y: torch.Tensor, x: torch.Tensor):
    y.add_(x)


def test_a_script_waits_for_forks_whose_result_nobody_uses():
    def start(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(3)
        future = torch.jit.fork(put, y, x)
        torch.jit.wait(future)
        return y

    with pytest.warns(DeprecationWarning):
        script = torch.jit.script(start)
    for _ in range(3):
        assert script(torch.ones(3)).tolist() == [1, 1, 1]


def test_errors_come_where_the_result_is_waited_for():
    future = futures.forked(lambda: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        future.wait()


def test_the_number_is_set_before():
    futures.forked(int).wait()
    settings.Threads.between = None
    with pytest.raises(RuntimeError, match="after parallel work has started"):
        torch.set_num_interop_threads(3)
