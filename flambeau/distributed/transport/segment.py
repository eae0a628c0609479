"""Memory that the processes of a group share on one machine.

It is an anonymous file: it has no name that could be left behind, and is gone with the last process
that maps it. The first process of the group makes it; the others open it through `/proc`, and know
it by a nonce that stands at its start. If one of them cannot, none uses it.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta

import numpy as np

from flambeau._runtime.shared_memory import anonymous_file
from flambeau.distributed import secret
from flambeau.distributed.errors import DistStoreError
from flambeau.distributed.stores import Store
from flambeau.distributed.transport import peers

LINE = 256
"""Bytes for the counters and labels of a process."""
PAGE = 4096
LOOK = 0.2
"""Seconds between looks at those that are waited for."""
OFF = "FLAMBEAU_DISTRIBUTED_SHARED_MEMORY"
"""In the environment: 0 switches shared memory off."""


def share(store: Store, rank: int, size: int, slot: int, timeout: timedelta,
          check: Callable[[], None]) -> np.ndarray | None:  # fmt: skip
    """The memory of a group, bytes, or None where not all of its processes can share it.

    Args:
        slot: bytes for the data of one process in one round; there are two slots for each.
        check: called while a process is waited for; it raises if one is gone.
    """
    total = PAGE + _whole_pages(LINE * size) + 2 * slot * size
    descriptor = -1
    if rank == 0 and sys.platform == "linux" and os.environ.get(OFF) != "0":
        descriptor = anonymous_file(total, "flambeau-group")
    try:
        if rank == 0:
            memory = _make(store, descriptor, total)
        else:
            memory = _open(_awaited(store, "segment", timeout, check), total)
        store.set(f"shared/{rank}", "no" if memory is None else "yes")
        keys = [f"shared/{other}" for other in range(size)]
        answers = [_awaited(store, key, timeout, check) for key in keys]
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return memory if all(answer == b"yes" for answer in answers) else None


def _whole_pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _make(store: Store, descriptor: int, total: int) -> np.ndarray | None:
    if descriptor < 0:
        store.set("segment", "none")
        return None
    memory = _mapped(descriptor, total)
    nonce = secret.nonce()
    memory[: len(nonce)] = np.frombuffer(nonce, np.uint8)
    store.set("segment", f"{peers.machine()} {os.getpid()} {descriptor} {nonce.hex()}")
    return memory


def _awaited(store: Store, key: str, timeout: timedelta, check: Callable[[], None]) -> bytes:
    """What a process tells; while it tells nothing, others may be found to be gone."""
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        left = deadline - time.monotonic()
        try:
            store.wait([key], timedelta(seconds=max(min(left, LOOK), 0.001)))
            return store.get(key)
        except DistStoreError:
            check()
            if left <= LOOK:
                raise


def _open(answer: bytes, total: int) -> np.ndarray | None:
    told = answer.decode().split()
    if told == ["none"] or told[0] != peers.machine() or os.environ.get(OFF) == "0":
        return None
    machine, pid, number, nonce = told
    try:
        descriptor = os.open(f"/proc/{int(pid)}/fd/{int(number)}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_size != total:
            return None
        memory = _mapped(descriptor, total)
    finally:
        os.close(descriptor)
    return memory if memory[: secret.NONCE].tobytes().hex() == nonce else None


def _mapped(descriptor: int, total: int) -> np.ndarray:
    return np.frombuffer(mmap.mmap(descriptor, total), np.uint8)
