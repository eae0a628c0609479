"""The processes of one machine."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG."""


@dataclass(frozen=True)
class Failure:
    """How a process ended that did not end well."""

    rank: int
    local_rank: int
    pid: int
    exit_code: int
    message: str
    when: float

    def describe(self) -> str:
        """Its lines in the report."""
        clock = time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.when))
        code = f"{self.exit_code} (pid: {self.pid})"
        if self.exit_code < 0:
            code += f" ({signal.Signals(-self.exit_code).name})"
        return (
            f"  time      : {clock}\n  rank      : {self.rank} (local_rank: {self.local_rank})\n"
            f"  exitcode  : {code}\n  traceback : {self.message}"
        )


class Workers:
    """Processes that run one command, each with an environment of its own."""

    def __init__(self, command: Sequence[str], environments: Sequence[dict[str, str]]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="flambeau-torchrun-")
        self._ranks = [int(environment["RANK"]) for environment in environments]
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for local_rank, environment in enumerate(environments):
                told = {"TORCHELASTIC_ERROR_FILE": str(self._error_file(local_rank))}
                self._processes.append(
                    subprocess.Popen(
                        command, env={**os.environ, **environment, **told},
                        preexec_fn=_ends_with(os.getpid()),  # noqa: PLW1509  two system calls
                    )
                )  # fmt: skip
        except BaseException:
            self.end(5)
            raise

    def failures(self) -> list[Failure]:
        """The processes that have not ended well so far."""
        codes = [process.poll() for process in self._processes]
        return [self._failure(index, code) for index, code in enumerate(codes) if code]

    def are_done(self) -> bool:
        """Whether all have ended."""
        return all(process.poll() is not None for process in self._processes)

    def end(self, grace: float, first: signal.Signals = signal.SIGTERM) -> None:
        """End those that run: they are asked, and after `grace` seconds killed."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(first)
        deadline = time.monotonic() + grace
        for process in self._processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._folder.cleanup()

    def _error_file(self, local_rank: int) -> Path:
        return Path(self._folder.name) / f"{local_rank}.json"

    def _failure(self, local_rank: int, code: int) -> Failure:
        process = self._processes[local_rank]
        message = "<N/A>: torch.distributed.elastic.multiprocessing.errors.record on main tells"
        if code < 0:
            message = f"Signal {-code} ({signal.Signals(-code).name}) received by PID {process.pid}"
        told = self._error_file(local_rank)
        if told.exists():
            message = str(json.loads(told.read_text("utf-8"))["message"]["message"])
        rank = self._ranks[local_rank]
        return Failure(rank, local_rank, process.pid, code, message, time.time())


def _ends_with(parent: int) -> Callable[[], None] | None:
    """What lets a child be killed when its parent dies, where the system can."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)

    def prepare() -> None:
        library.prctl(DIE_WITH_PARENT, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
