"""Signals that wait while something is done."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from flambeau._core import signals

if not hasattr(signal, "pthread_sigmask"):
    pytest.skip("a system without pthread_sigmask", allow_module_level=True)

WAITING = {signal.SIGUSR1, signal.SIGUSR2}


def blocked() -> set[Any]:
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def interrupted_after(how: int) -> Callable[[int, Iterable[Any]], set[Any]]:
    """`pthread_sigmask`, at whose end a handler raises: the signal came while it was called."""
    change = signal.pthread_sigmask

    def changed(asked: int, which: Iterable[Any]) -> set[Any]:
        which = set(which)
        found = change(asked, which)
        if asked == how and (which or how == signal.SIG_SETMASK):
            raise KeyboardInterrupt
        return found

    return changed


def test_signals_wait_within_the_block_alone() -> None:
    before = blocked()
    with signals.blocked(WAITING):
        assert blocked() == before | WAITING
        with pytest.raises(ZeroDivisionError), signals.blocked({signal.SIGUSR1}):
            raise ZeroDivisionError
        assert blocked() == before | WAITING
    assert blocked() == before


@pytest.mark.parametrize("how", [signal.SIG_BLOCK, signal.SIG_SETMASK])
def test_no_signal_stays_blocked_where_a_handler_raises(
    how: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = blocked()
    try:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(signal, "pthread_sigmask", interrupted_after(how))
            with signals.blocked(WAITING):
                pass
        assert blocked() == before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
