"""How many processors are worth a thread: affinity, cores, control groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau._core import processors

TWELVE = frozenset(range(12))


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the system's files stand."""
    monkeypatch.setattr(processors, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(processors, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(processors, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(processors, "allowed", lambda: TWELVE)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="ascii")


def test_nothing_is_known(system: Path):
    assert processors.usable() == 12


def test_hardware_threads_of_a_core_count_once(system: Path):
    write(system / "cpu" / "smt" / "active", "1")
    for number in range(12):
        name = system / "cpu" / f"cpu{number}" / "topology" / "thread_siblings_list"
        write(name, f"{number % 6},{number % 6 + 6}")
    assert processors.usable() == 6
    assert processors.cores(frozenset({0, 6})) == 1
    assert processors.cores(frozenset({0, 1, 7})) == 2
    write(system / "cpu" / "smt" / "active", "0")
    assert processors.usable() == 12


@pytest.mark.parametrize(("limit", "count"), [
    ("200000 100000", 2), ("250000 100000", 3), ("10000 100000", 1), ("max 100000", 12),
    ("9000000 100000", 12), ("", 12),
])  # fmt: skip
def test_the_quota_of_a_control_group(system: Path, limit: str, count: int):
    write(system / "own", "0::/")
    write(system / "cgroup" / "cpu.max", limit)
    assert processors.usable() == count


def test_the_least_quota_of_all_groups_above(system: Path):
    write(system / "own", "0::/user/job")
    write(system / "cgroup" / "user" / "job" / "cpu.max", "800000 100000")
    assert processors.usable() == 8
    write(system / "cgroup" / "user" / "cpu.max", "300000 100000")
    assert processors.usable() == 3


def test_the_quota_of_the_first_version(system: Path):
    write(system / "own", "4:memory:/x\n3:cpu,cpuacct:/job\n0::/")
    write(system / "cgroup" / "cpu" / "job" / "cpu.cfs_quota_us", "500000")
    write(system / "cgroup" / "cpu" / "job" / "cpu.cfs_period_us", "100000")
    assert processors.usable() == 5
    write(system / "cgroup" / "cpu" / "job" / "cpu.cfs_quota_us", "-1")
    assert processors.usable() == 12


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processors to choose")
def test_affinity_is_the_default_number_of_threads():
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import flambeau
print(flambeau.get_num_threads(), flambeau.get_num_interop_threads())
"""
    plain = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    found = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True,
                           check=True, timeout=120)  # fmt: skip
    assert found.stdout == "1 1\n"
