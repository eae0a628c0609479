"""Results that come later. Programs run in one thread: a fork is carried out where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """What `fork` gives: `wait` hands out the result, or raises what went wrong."""

    def __init__(self) -> None:
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def set_result(self, result: T) -> None:
        """Give the result; it can be given once."""
        self._finish(result, None)

    def set_exception(self, error: BaseException) -> None:
        """Give the error that `wait` raises."""
        self._finish(None, error)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        if self._done:
            raise RuntimeError(
                "Future can only be marked completed once. (Have you called set_result twice?)"
            )
        self._result, self._error, self._done = result, error, True
        for callback in self._callbacks:
            callback(self)

    def wait(self) -> T:
        """The result."""
        if not self._done:
            raise RuntimeError("the result of a Future is waited for that nothing computes")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[no-any-return]

    value = wait

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A Future of what a function makes of this one when it is done."""
        made: Future[Any] = Future()

        def run(self: Future[T]) -> None:
            try:
                made.set_result(callback(self))
            except Exception as error:  # what a callback raises belongs to its Future
                made.set_exception(error)

        self.add_done_callback(run)
        return made

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call a function when the Future is done; at once if it is."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)


def forked(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """A call as a Future."""
    made: Future[Any] = Future()
    try:
        made.set_result(function(*args))
    except Exception as error:  # raised where the result is waited for
        made.set_exception(error)
    return made
