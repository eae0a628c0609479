"""Programs of several processes for tests: each rank is a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LIMIT = 900
"""Seconds after which what hangs is ended; starts alone may take minutes on a busy machine."""
ROOT = Path(__file__).parents[2]
START = """
import json, os, sys, time
from datetime import timedelta
import numpy as np
import flambeau as torch
from flambeau import distributed as dist
RANK, SIZE, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{FOLDER}/meet", rank=RANK, world_size=SIZE,
                        timeout=timedelta(seconds=600))
def tell(value):
    print(json.dumps(value), flush=True)
def error_of(function):
    start = time.monotonic()
    try:
        function()
    except RuntimeError as error:
        return [str(error).splitlines()[0], time.monotonic() - start]
    return ["no error", time.monotonic() - start]
"""


class Processes:
    """The processes of one program; `text` is run in each after `init_process_group`."""

    def __init__(self, text: str, size: int, **environment: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        told = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
        self.all = [
            subprocess.Popen(
                [sys.executable, "-c", START + text, str(rank), str(size), self.folder.name],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=told,
            )
            for rank in range(size)
        ]  # fmt: skip

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.all:
            process.kill()
            process.communicate()
        self.folder.cleanup()

    def line(self, rank: int) -> Any:
        """The next thing that a rank tells."""
        text = self.all[rank].stdout.readline()
        assert text, self.all[rank].stderr.read()
        return json.loads(text)

    def signal(self, rank: int, number: signal.Signals) -> None:
        """Send a signal to a rank."""
        self.all[rank].send_signal(number)

    def results(self) -> list[Any]:
        """The last thing that each rank tells; all have to end well."""
        seen = [process.communicate(timeout=LIMIT) for process in self.all]
        for process, (_, error) in zip(self.all, seen, strict=True):
            assert process.returncode == 0, error
        return [json.loads(out.splitlines()[-1]) for out, _ in seen]


def run(text: str, size: int = 2, **environment: str) -> list[Any]:
    """What each rank tells last."""
    with Processes(text, size, **environment) as processes:
        return processes.results()
