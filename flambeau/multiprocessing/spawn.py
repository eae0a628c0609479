"""`spawn`: several processes run one function; the first error of one ends all."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

NO_METHOD = (
    "This method only supports start_method=spawn (got: {}).\nTo use a different start_method use:"
    "\n\t\t torch.multiprocessing.start_processes(...)"
)


class ProcessException(Exception):
    """A process ended otherwise than by the end of its function."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """Its function raised: the message ends with the traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """It was killed, or ended itself, with an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None) -> None:  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        parts = self.msg, self.error_index, self.pid, self.exit_code, self.signal_name
        return type(self), parts


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], error_file: str) -> None:
    """What a process does; an error's traceback is left in a file."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent gets it, too
    except Exception:
        Path(error_file).write_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)


class ProcessContext:
    """Processes that run one function, until they are joined."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {each.sentinel: index for index, each in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends; True when all have.

        The first that ends otherwise than well ends the others, which have `grace_period` seconds
        for it, and raises ProcessRaisedException or ProcessExitedException.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            self.processes[index].join()
            if self.processes[index].exitcode:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        raise self._error(failed)

    def _end_all(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = time.monotonic() + (30 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
            process.join()

    def _error(self, index: int) -> ProcessException:
        process, file = self.processes[index], Path(self.error_files[index])
        if file.exists() and file.stat().st_size:
            text = pickle.loads(file.read_bytes())  # noqa: S301  written by our own process
            told = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            return ProcessRaisedException(told, index, process.pid)
        code = process.exitcode
        if code >= 0:
            told = f"process {index} terminated with exit code {code}"
            return ProcessExitedException(told, index, process.pid, code)
        name = signal.Signals(-code).name
        told = f"process {index} terminated with signal {name}"
        return ProcessExitedException(told, index, process.pid, code, name)

    def __del__(self) -> None:
        _remove(self.error_files)


def _remove(files: list[str]) -> None:
    for file in files:
        Path(file).unlink(missing_ok=True)


class SpawnContext(ProcessContext):
    """The older name."""


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> Any:  # fmt: skip
    """Run `fn(i, *args)` in `nprocs` processes, i from 0; wait for them if `join`, else return a
    context to join."""
    context = multiprocessing.get_context(start_method)
    processes: list[Any] = []
    files: list[str] = []
    try:
        for index in range(nprocs):
            descriptor, file = tempfile.mkstemp(prefix="flambeau-multiprocessing-", suffix=".error")
            files.append(file)
            os.close(descriptor)
            made: Any = context.Process(  # type: ignore[attr-defined]
                target=_run, args=(fn, index, args, file), daemon=daemon
            )
            made.start()
            processes.append(made)
    except BaseException:  # what cannot be sent to a process, or Ctrl-C
        _remove(files)
        raise
    running = ProcessContext(processes, files)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> Any:  # fmt: skip
    """`start_processes` whose processes are started anew; another method is warned about."""
    if start_method != "spawn":
        warnings.warn(NO_METHOD.format(start_method), FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
