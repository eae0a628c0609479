"""Whether processes on this machine run."""

from __future__ import annotations

import os
from pathlib import Path

STOPPED = {"T": "is stopped", "t": "is stopped by a debugger", "Z": "has died", "X": "has died"}


def machine() -> str:
    """What is the same for processes that share this machine and its numbers of processes."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"unknown-{os.getpid()}"


def trouble(pid: int) -> str | None:
    """What keeps a process from running, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "has died"
    state = text.rpartition(")")[2].split()[0]
    return STOPPED.get(state)
