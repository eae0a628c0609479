"""Errors on their way from a worker to the loader's process."""

from __future__ import annotations

import pickle
import signal
import traceback
from dataclasses import dataclass
from typing import Any


class KeyErrorText(str):
    """Text that a KeyError shows as it is, not quoted on one line."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Failure:
    """An exception in a worker: its type, its traceback as text, where it was raised."""

    kind: Any
    name: str
    trace: str
    where: str
    at: str

    @classmethod
    def of(cls, error: BaseException, where: str, at: str = "") -> Failure:
        """What can be sent of an exception that was just caught."""
        trace = "".join(traceback.format_exception(error))
        name = type(error).__name__
        kind: Any = type(error)
        if not isinstance(error, Exception):  # such as SystemExit, which would end the program
            kind = RuntimeError
        try:
            if pickle.loads(pickle.dumps(kind)) is not kind:  # noqa: S301
                kind = RuntimeError
        except Exception:  # a type that is defined in a function, say
            kind = RuntimeError
        return cls(kind, name, trace, where, at)

    def error(self) -> BaseException:
        """The same kind of exception, with the worker's traceback as its message; RuntimeError
        where the type can't be made from a message."""
        text = f"Caught {self.name} {self.where}.\nOriginal {self.trace}"
        if self.at:
            text += f"It was raised {self.at}.\n"
        if issubclass(self.kind, KeyError):
            text = KeyErrorText(text)
        try:
            if getattr(self.kind, "message", None):
                found = self.kind(message=text)
            else:
                found = self.kind(text)
        except Exception:
            return RuntimeError(text)
        return found if isinstance(found, BaseException) else RuntimeError(text)


CAUSES = {
    "SIGKILL": "often the system's answer when memory runs out: fewer workers, smaller batches or "
    "less prefetch_factor need less",
    "SIGBUS": "often for want of shared memory: see the size of /dev/shm",
    "SIGSEGV": "a crash in compiled code that the dataset uses",
    "SIGABRT": "compiled code that the dataset uses gave up",
    "SIGTERM": "somebody asked it to end",
}
"""What usually lies behind a signal."""


def death(pid: int | None, exitcode: int | None) -> RuntimeError:
    """The error for a worker process that is gone."""
    text = f"DataLoader worker (pid(s) {pid}) exited unexpectedly"
    if exitcode is None:
        return RuntimeError(text)
    if exitcode >= 0:
        return RuntimeError(f"{text} with exit code {exitcode}")
    try:
        name = signal.Signals(-exitcode).name
    except ValueError:
        name = f"signal {-exitcode}"
    cause = CAUSES.get(name, "")
    return RuntimeError(f"{text}: killed by {name}{', ' + cause if cause else ''}")
