"""A fork waits for what other threads must not leave half done."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from flambeau._core import forks
from flambeau._ops.table import loading
from flambeau._runtime import cache, engine

if not hasattr(os, "fork"):
    pytest.skip("a system without fork", allow_module_level=True)


def exit_code_of_child(is_fine: Any) -> int:
    child = os.fork()
    if child == 0:
        os._exit(0 if is_fine() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_no_child_has_a_lock_that_another_thread_held() -> None:
    lock, begun = threading.Lock(), threading.Event()

    def work() -> None:
        with forks.held_off(), lock:
            begun.set()
            time.sleep(0.3)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(30)
    assert exit_code_of_child(lambda: lock.acquire(blocking=False)) == 0
    thread.join()


def test_a_thread_may_fork_in_its_own_work() -> None:
    with forks.held_off(), forks.held_off():
        before = time.monotonic()
        assert exit_code_of_child(lambda: list(forks.Work.depths.values()) == [2]) == 0
        assert time.monotonic() - before < forks.PATIENCE
    assert threading.get_ident() not in forks.Work.depths


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_waits_for_so_long_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work may itself wait for the thread that forks."""
    monkeypatch.setattr(forks, "PATIENCE", 0.1)
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with forks.held_off():
            begun.set()
            go_on.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(30)
    assert exit_code_of_child(lambda: not forks.Work.depths) == 0
    go_on.set()
    thread.join()


def test_imports_of_rows_and_machine_code_are_such_work(monkeypatch: pytest.MonkeyPatch) -> None:
    depths: list[int] = []

    def note(*arguments: Any) -> Any:
        depths.append(forks.Work.depths.get(threading.get_ident(), 0))
        return {}

    monkeypatch.setattr(loading, "importlib", SimpleNamespace(import_module=note))
    loading.load("softmax")
    assert depths
    monkeypatch.setattr(cache, "read", note)
    monkeypatch.setattr(engine, "_link", note)
    engine.loaded("key", (), lambda: b"")
    assert min(depths) == 1


def test_an_import_of_all_rows_that_was_interrupted_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def interrupted(module: str) -> None:
        asked.append(module)
        if len(asked) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(loading, "_loaded", set())
    monkeypatch.setattr(loading, "_import", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loading.load("no such name")
    loading.load("no such name")
    assert len(asked) > 6
    count = len(asked)
    loading.load("no such name")
    assert len(asked) == count
