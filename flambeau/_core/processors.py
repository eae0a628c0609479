"""How many processors this process may keep busy: by affinity, cores, and its cgroup's quota."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def usable() -> int:
    """Cores that this process may run on (`taskset`), two hardware threads of a core counted as
    one, and no more than its cgroup's quota of processor time is worth (`docker --cpus`)."""
    return max(1, min(cores(allowed()), quota()))


def allowed() -> frozenset[int]:
    """The processors that this process may run on; what the system calls one is a hardware
    thread."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def cores(processors: frozenset[int]) -> int:
    """Of how many cores these processors are threads, where Linux says so."""
    if _text(CPUS / "smt" / "active") != "1":
        return len(processors)
    siblings = {_text(CPUS / f"cpu{number}" / "topology" / "thread_siblings_list") or str(number)
                for number in processors}  # fmt: skip
    return len(siblings)


def quota() -> int:
    """How many processors may be busy all the time before the system makes the process wait, by
    Linux's control groups of both versions; very many if there is no limit."""
    found = [1 << 20]
    for line in _text(OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folders = _upwards(GROUPS, path)
            found += [_worth(*_text(folder / "cpu.max").split()) for folder in folders]
        elif "cpu" in controllers.split(","):
            for folder in _upwards(GROUPS / "cpu", path):
                limits = [_text(folder / f"cpu.cfs_{what}_us") for what in ("quota", "period")]
                found.append(_worth(*limits))
    return min(found)


def _upwards(root: Path, path: str) -> list[Path]:
    """A control group's folder and those that hold it, up to the root: each may have a limit."""
    folder = root / path.strip("/")
    return [folder, *(above for above in folder.parents if above.is_relative_to(root))]


def _worth(limit: str = "", period: str = "") -> int:
    """Processors that `limit` of each `period` amounts to, begun ones counted whole."""
    if not (limit.isdigit() and period.isdigit() and int(period)):
        return 1 << 20  # "max", -1, or nothing there
    return max(1, ceil(int(limit) / int(period)))


def _text(path: Path) -> str:
    """The contents of a small file of the system's; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
