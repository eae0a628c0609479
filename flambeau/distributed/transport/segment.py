"""Memory that the processes of a group share on one machine.

It is an anonymous file: it has no name that could be left behind, and is gone with the last process
that maps it. The first process of the group makes it; the others open it through `/proc`, and know
it by a nonce that stands at its start. If one of them cannot, none uses it.
"""

from __future__ import annotations

import mmap
import os
import sys
from datetime import timedelta

import numpy as np

from flambeau._runtime.shared_memory import anonymous_file
from flambeau.distributed import secret
from flambeau.distributed.stores import Store
from flambeau.distributed.transport import peers

LINE = 256
"""Bytes for the counters and labels of a process."""
PAGE = 4096
OFF = "FLAMBEAU_DISTRIBUTED_SHARED_MEMORY"
"""In the environment: 0 switches shared memory off."""


def share(store: Store, rank: int, size: int, slot: int, timeout: timedelta) -> np.ndarray | None:
    """The memory of a group, bytes, or None where not all of its processes can share it.

    Args:
        slot: bytes for the data of one process in one round; there are two slots for each.
    """
    total = PAGE + _whole_pages(LINE * size) + 2 * slot * size
    descriptor = -1
    if rank == 0 and sys.platform == "linux" and os.environ.get(OFF) != "0":
        descriptor = anonymous_file(total, "flambeau-group")
    try:
        memory = _make(store, descriptor, total) if rank == 0 else _open(store, total, timeout)
        store.set(f"shared/{rank}", "no" if memory is None else "yes")
        answers = [store.get(f"shared/{other}") for other in range(size)]
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


def _open(store: Store, total: int, timeout: timedelta) -> np.ndarray | None:
    store.wait(["segment"], timeout)
    told = store.get("segment").decode().split()
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
