"""Communications that run, and the thread in which those of a group run one after another."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flambeau.futures import Future


class Work:
    """A communication that runs: what `async_op=True`, `isend` and `irecv` return."""

    __module__ = "torch.distributed"

    def __init__(self, outputs: Any = None) -> None:
        self._outputs = outputs
        self._finished = threading.Event()
        self._error: Exception | None = None
        self._future: Future[Any] | None = None
        self._guard = threading.Lock()
        self._source = -1
        self._progress: Progress | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done.

        Raises:
            RuntimeError: it failed, or was not done in time.
        """
        if self._progress is not None and not timeout and not self._finished.is_set():
            self._progress.help(self)
        seconds = timeout.total_seconds() if timeout else None
        if not self._finished.wait(seconds or None):
            raise RuntimeError(f"Operation timed out! It took more than {timeout}.")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is done, well or not."""
        return self._finished.is_set()

    def is_success(self) -> bool:
        """Whether it is done, and well."""
        return self._finished.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """What went wrong, if it is known yet."""
        return self._error

    def result(self) -> Any:
        """The outputs: tensors in a list."""
        return self._outputs

    def synchronize(self) -> None:
        """Wait until it is done."""
        self.wait()

    def source_rank(self) -> int:
        """The rank that a received message came from."""
        return self._source

    def get_future(self) -> Future[Any]:
        """A Future of the outputs."""
        with self._guard:
            if self._future is None:
                self._future = Future()
                if self._finished.is_set():
                    self._settle(self._future)
            return self._future

    def _settle(self, future: Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._outputs)
        else:
            future.set_exception(self._error)

    def _finish(self, error: Exception | None = None) -> None:
        with self._guard:
            self._error = error
            self._finished.set()
            future = self._future
        if future is not None:
            self._settle(future)


class Progress:
    """Runs communications one after another: in a thread of its own, or at once if none waits."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callable[[], None], Work]] = deque()
        self._unfinished = 0
        self._thread: threading.Thread | None = None
        self._ended = False

    def run(self, function: Callable[[], None], work: Work) -> None:
        """Run a communication and wait for it."""
        with self._changed:
            is_free = self._unfinished == 0
            self._unfinished += is_free
        if not is_free:
            self.start(function, work)
            work.wait()
            return
        self._run(function, work)
        if work._error is not None:
            raise work._error

    def start(self, function: Callable[[], None], work: Work) -> None:
        """Let a communication run when those before it are done."""
        work._progress = self
        with self._changed:
            self._unfinished += 1
            self._waiting.append((function, work))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def help(self, work: Work) -> None:
        """Run here what waits before a work, and the work: who waits for it has nothing else to do.

        It saves a thread that has to wake up. What runs in the thread already is not waited for.
        """
        while not work.is_completed():
            with self._changed:
                if not self._waiting or not self._is_ready():
                    return
                function, first = self._waiting.popleft()
            self._run(function, first)

    def is_here(self) -> bool:
        """Whether the caller runs in the thread."""
        return threading.current_thread() is self._thread

    def _run(self, function: Callable[[], None], work: Work) -> None:
        error: Exception | None = None
        try:
            function()
        except Exception as failed:  # it is raised where the work is waited for
            error = failed
        except BaseException:
            error = RuntimeError("a communication was interrupted")
            raise
        finally:
            with self._changed:
                self._unfinished -= 1
                self._changed.notify_all()
            work._finish(error)

    def _serve(self) -> None:
        while True:
            with self._changed:
                ready = self._changed.wait_for(self._is_ready)
                if not ready or not self._waiting:
                    return
                function, work = self._waiting.popleft()
            self._run(function, work)

    def _is_ready(self) -> bool:
        """Whether there is something to run, and nothing runs in another thread."""
        if self._ended and not self._waiting:
            return True
        return bool(self._waiting) and self._unfinished == len(self._waiting)

    def close(self) -> None:
        """End the thread once nothing waits."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5)
