"""Programs in processes of their own, in which nothing was done before.

A server, itself a fresh process, imports both libraries and forks for each program: what tests have
set, warned of or started in this process does not reach them, and costs no time.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from conformance.autograd.generated import checking, comparing
from conformance.autograd.generated.observing import Outcome
from conformance.autograd.generated.running import outcome
from conformance.jit.generated.workers import untimed

from .words import SettingsWords

ROOT = Path(__file__).parents[2]
LIMIT = 30
"""Seconds that a program may take."""
LIBRARIES = ("flambeau", "torch")


class Server:
    """The process that forks, for one process that asks."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.owner = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    def ask(self, request: Any) -> Any:
        """What the server answers; it ends if this is interrupted."""
        try:
            pickle.dump(request, self.process.stdin)  # type: ignore[arg-type]
            self.process.stdin.flush()  # type: ignore[union-attr]
            return pickle.load(self.process.stdout)  # type: ignore[arg-type]  # noqa: S301
        except BaseException:
            _servers.remove(self)  # it may be dying when the next program asks
            self.process.kill()
            raise


_servers: list[Server] = []


def in_a_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module returns in a fork of the server."""
    if not _servers or _servers[-1].owner != os.getpid() or _servers[-1].process.poll() is not None:
        with untimed():
            _servers[:] = [Server()]
            _servers[-1].ask((int, ()))
    done, result = _servers[-1].ask((function, arguments))
    if not done:
        raise RuntimeError(result)
    return result


# ---- in the server


def serve() -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # programs may print
    warm_up()
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)  # noqa: S301  # our own parent's
        except EOFError:
            return
        answers.write(_forked(*request))
        answers.flush()


def warm_up() -> None:
    """Import what children would import each for itself; nothing is set, and no threads begin."""
    torch = importlib.import_module("torch")
    torch.use_deterministic_algorithms(False)  # as it is; imports what takes seconds
    flambeau = importlib.import_module("flambeau")
    for name in ("nn", "nn.functional", "_runtime.engine"):
        importlib.import_module(f"flambeau.{name}")
    for name in ("cpu", "cuda", "cudnn", "mkldnn", "mha", "miopen", "nnpack", "opt_einsum"):
        importlib.import_module(f"flambeau.backends.{name}")
    flambeau.initial_seed()
    str(flambeau.ones(2, 2) @ flambeau.ones(2, 2))
    for name in ("rand", "arange", "sum", "index_add", "conj"):
        getattr(flambeau, name)
    flambeau.is_autocast_enabled("cpu")


def _forked(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            _answer(pipe, function, arguments)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    ended = f"the process ended with {os.waitstatus_to_exitcode(status)}"
    return told or pickle.dumps((False, ended))


def _answer(pipe: BinaryIO, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.alarm(LIMIT)  # a child that hangs ends by it
    try:
        told: tuple[bool, Any] = True, function(*arguments)
    except BaseException:  # noqa: BLE001  # told to who asked
        told = False, traceback.format_exc()
    pipe.write(pickle.dumps(told))


# ---- programs


def run(text: str, library: str, language: type[SettingsWords] = SettingsWords) -> Outcome:
    """What comes of a program in a library."""
    return outcome(text, importlib.import_module(library), language=language)


def check(text: str, stage: Callable[[str], object] = str,
          language: type[SettingsWords] = SettingsWords) -> checking.Checked:  # fmt: skip
    """Compare the libraries on a program."""
    stage("running in PyTorch")
    wanted = in_a_child(run, text, "torch", language)
    stage("running here")
    found = comparing.difference(in_a_child(run, text, "flambeau", language), wanted)
    raised = sum(bool(line.error) for line in wanted.lines)
    if found is None:
        return checking.Checked(raised=raised)
    statement = checking.PROGRAMS.statement(text, wanted, found)
    return checking.Checked(found, raised, statement=statement)


if __name__ == "__main__":
    importlib.import_module("conformance.settings.children").serve()
