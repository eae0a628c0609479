"""`torch.futures`: results that come later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from flambeau._core.device import check_available, device

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that somebody will give: `wait` hands it out, or raises what went wrong.

    devices: those that values may lie on; only devices with an index are named.

    >>> import flambeau as torch
    >>> future = torch.futures.Future()
    >>> future.set_result(5)
    >>> future.wait()
    5
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        for place in map(device, devices or ()):
            if place.index is None:
                raise ValueError(f"Expected devices to have indices, got {place}")
            check_available(place)
        self._settled = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._work: Callable[[], Any] | None = None
        """What computes the result, if nobody does so yet: who waits may do it."""

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def set_result(self, result: T) -> None:
        """Give the result; it can be given once."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give the error that `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._settled:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._settled.notify_all()
        for callback in callbacks:
            callback(self)

    def wait(self) -> T:
        """The result, as soon as it is there."""
        if not self._done:
            if self._work is not None:
                self._work()
            with self._settled:
                self._settled.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The result, which must be there."""
        if not self._done:
            raise RuntimeError("the Future has no value yet: wait for it")
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A Future of what a function makes of this one when it is done."""
        _check_callable("then", callback, "torch._C.Future")
        made: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                made.set_result(callback(done))
            except Exception as error:  # what a callback raises belongs to its Future
                told = f"Got the following error when running the callback: {_told(error)}"
                made.set_exception(RuntimeError(told))

        self._when_done(run)
        return made

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function when the Future is done; at once if it is. What it raises is lost."""
        _check_callable("add_done_callback", callback, "None")

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception as error:  # it has nobody to raise it to
                print(f"Got the following error when running the callback: {_told(error)}")

        self._when_done(run)

    def _when_done(self, callback: Callable[[Future[T]], Any]) -> None:
        with self._settled:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _check_callable(name: str, callback: Any, result: str) -> None:
    if not callable(callback):
        raise TypeError(
            f"{name}(): incompatible function arguments. The following argument types are "
            "supported:\n    1. (self: torch._C.Future, arg0: collections.abc.Callable) -> "
            f"{result}\n\nInvoked with: a Future, {callback!r}"
        )


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A Future of these Futures, done when all of them are; its error is the first of theirs."""
    made: Future[list[Future[Any]]] = Future()
    lock = threading.Lock()
    left = [len(futures)]

    def count(_: Any) -> None:
        with lock:
            left[0] -= 1
            if left[0] != 0:
                return
        errors = [future._error for future in futures if future._error is not None]
        made._finish(None if errors else list(futures), errors[0] if errors else None)

    for future in futures:
        future._when_done(count)
    if not futures:
        made.set_result([])
    made._work = lambda: [future.wait() for future in futures]
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The results of Futures, waited for; the first error is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
