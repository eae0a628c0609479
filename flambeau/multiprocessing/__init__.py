"""`torch.multiprocessing`: Python's `multiprocessing`, whose queues and pipes hand tensors on by
shared memory.

A tensor that is sent moves to shared memory, as by `share_memory_()`; the receiver's has the same
memory. `reductions.py` says how, `spawn.py` has `spawn` and what it raises.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403
from pathlib import Path
from typing import Any

from flambeau.multiprocessing.reductions import init_reductions
from flambeau.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
__all__ += multiprocessing.__all__  # type: ignore[attr-defined]

STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The ways in which memory can be shared: by descriptors of files without a name."""
    return {STRATEGY}


def get_sharing_strategy() -> str:
    """The way in which memory is shared."""
    return STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which memory is shared, of which there is one here.

    Raises:
        AssertionError: it is another one.
    """
    known = get_all_sharing_strategies()
    if new_strategy not in known:
        raise AssertionError(f"invalid sharing strategy '{new_strategy}', expected one of {known}")


THREAD = Path("/proc/thread-self/comm")
"""The name of this thread, as Linux keeps it: 15 bytes."""


def _set_thread_name(name: str) -> None:
    """Name this thread for tools that list threads (on Linux)."""
    if THREAD.exists():
        THREAD.write_bytes(name.encode()[:15])


def _get_thread_name() -> str:
    """The name of this thread for such tools."""
    return THREAD.read_text().removesuffix("\n") if THREAD.exists() else ""


init_reductions()


def __getattr__(name: str) -> Any:
    if hasattr(multiprocessing, name):  # submodules, which have no place in its `__all__`
        return getattr(multiprocessing, name)
    from flambeau._core.missing import missing

    return missing(__name__, name)
