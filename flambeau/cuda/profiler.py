"""`torch.cuda.profiler`: what a profiler outside of the program looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from flambeau._runtime.cuda.memory import running
from flambeau.cuda.started import init as _init

__all__ = ["init", "profile", "start", "stop"]


def init(output_file: str, flags: object = None, output_mode: str = "key_value") -> NoReturn:
    """Configure the profiler. Raises NotImplementedError: CUDA has it no more."""
    raise NotImplementedError("cudaProfilerInitialize is no part of CUDA since 12.0")


def start() -> None:
    """The profiler is to look now."""
    _init()
    running().profiler_start()


def stop() -> None:
    """The profiler has seen enough."""
    _init()
    running().profiler_stop()


@contextmanager
def profile() -> Iterator[None]:
    """`with torch.cuda.profiler.profile():` the profiler looks at what happens inside."""
    start()
    try:
        yield
    finally:
        stop()
