"""`torchrun`: what processes are told, exit codes, restarts, and that nothing outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flambeau.distributed.transport.peers import trouble

ROOT = Path(__file__).parents[2]
SUMS = r"""
import sys, torch, torch.distributed as dist
dist.init_process_group()
x = torch.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(x)
sys.stdout.write(f"{dist.get_rank()} {x.tolist()} {sys.argv[1:]}\n")  # one write
dist.destroy_process_group()
"""
FAILS = r"""
import os, sys, time
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise ValueError("the words of rank 1")
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        time.sleep(1000)
    sys.stdout.write("restarted\n")  # one write
main()
"""


def start(tmp_path: Path, text: str, *options: str) -> subprocess.Popen[str]:
    script = tmp_path / "program.py"
    script.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "flambeau.distributed.run", "--standalone", *options]
    return subprocess.Popen(
        [*command, str(script), "--epochs", "3"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def test_sums(tmp_path: Path):
    process = start(tmp_path, SUMS, "--nproc-per-node=2")
    out, error = process.communicate(timeout=600)
    assert process.returncode == 0, error
    expected = [f"{rank} [3.0, 3.0, 3.0] ['--epochs', '3']" for rank in range(2)]
    assert sorted(out.splitlines()) == expected


def test_a_rank_fails(tmp_path: Path):
    process = start(tmp_path, FAILS, "--nproc-per-node=2")
    _, error = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "program.py FAILED" in error
    assert "rank      : 1 (local_rank: 1)" in error
    assert "ValueError: the words of rank 1" in error


def test_all_are_started_again(tmp_path: Path):
    process = start(tmp_path, FAILS, "--nproc-per-node=2", "--max-restarts=1")
    out, error = process.communicate(timeout=600)
    assert process.returncode == 0, error
    assert out.splitlines() == ["restarted"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with parents")
def test_a_launcher_that_is_ended(tmp_path: Path):
    text = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(1000)\n"
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = start(tmp_path, text, "--nproc-per-node=1")
        child = int(process.stdout.readline())
        process.send_signal(number)
        process.communicate(timeout=600)  # its pipes close when the child has ended, too
        assert process.returncode != 0
        deadline = time.monotonic() + 60  # its files are closed a little before it is gone
        while trouble(child) != "has died":
            assert time.monotonic() < deadline
            time.sleep(0.01)
