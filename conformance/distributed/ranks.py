"""One script under two libraries, in several processes each: what every rank saw is compared.

`python -m conformance.distributed.ranks LIBRARY PROGRAM RANK SIZE FOLDER SEED` is one process.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 600
"""Seconds after which processes that hang are ended; on a machine with much else to do, the start
of four of them alone may take minutes."""
ROOT = Path(__file__).parents[2]
LONG = 1000
"""So many numbers are compared one by one."""


class Record:
    """What one rank saw: lines of a name and a value, or the error instead of it."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.lines = torch, []

    def __call__(self, name: str, function: Callable[[], Any]) -> None:
        try:
            seen = self.shown(function())
        except Exception as error:
            seen = [type(error).__name__, first_line(error)]
        self.lines.append([name, seen])

    def shown(self, value: Any) -> Any:
        if isinstance(value, self.torch.Tensor):
            numbers = value.detach()
            if numbers.is_complex():
                numbers = self.torch.view_as_real(numbers)
            kept = numbers.to(self.torch.float64).numpy() + 0.0  # -0.0 counts as 0.0
            seen = kept.tolist() if kept.size <= LONG else digest(kept)
            return [str(value.dtype), list(value.shape), seen]
        if isinstance(value, list | tuple):
            return [self.shown(each) for each in value]
        if isinstance(value, dict):
            return value
        return value if isinstance(value, int | float | str | bool | None) else repr(value)


def digest(numbers: np.ndarray) -> list[Any]:
    """The first of many numbers, and a word that stands for all: lists of them take minutes."""
    numbers = np.where(np.isnan(numbers), np.nan, numbers)  # one NaN is as good as another
    return [*numbers.reshape(-1)[:20].tolist(), hashlib.sha256(numbers.tobytes()).hexdigest()]


def agree(first: Any, second: Any) -> bool:
    """Whether two things seen are the same; numbers under "close" but for rounding."""
    if first == second:
        return True
    if isinstance(first, dict) and "close" in first and isinstance(second, dict):
        return bool(np.allclose(first["close"], second["close"], rtol=2e-3, atol=5e-4))
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return all(map(agree, first, second))
    return bool(first == second)


def first_line(error: Exception) -> str:
    """The first line of an error, without the place in PyTorch's source."""
    return (str(error).splitlines() or [""])[0]


def run(library: str, program: str, size: int, seed: int = 0) -> list[list[Any]]:
    """What each rank saw."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [_start(library, program, rank, size, folder, seed) for rank in range(size)]
        errors = []
        try:
            for process in processes:
                errors.append(process.communicate(timeout=LIMIT)[1])
        finally:
            for process in processes:
                process.kill()
                process.wait()
        assert all(process.returncode == 0 for process in processes), "\n".join(errors)
        texts = [Path(folder, f"rank{rank}.json").read_text("utf-8") for rank in range(size)]
    return [json.loads(text) for text in texts]


def _start(library: str, program: str, rank: int, size: int, folder: str,
           seed: int) -> subprocess.Popen[str]:  # fmt: skip
    words = [library, program, str(rank), str(size), folder, str(seed)]
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "conformance.distributed.ranks", *words],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


MODULES = "programs forms drawn checkpoints training meshes placed divided sharded".split()
"""Where programs are looked for."""


def _find(program: str) -> Any:
    found = [importlib.import_module(f"conformance.distributed.{name}") for name in MODULES]
    return next(getattr(module, program) for module in found if hasattr(module, program))


def main(library: str, program: str, rank: str, size: str, folder: str, seed: str) -> None:
    """One process of a program."""
    torch = importlib.import_module(library)
    dist = importlib.import_module(f"{library}.distributed")
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=int(rank), world_size=int(size),
        timeout=timedelta(seconds=LIMIT / 2),
    )  # fmt: skip
    record = Record(torch)
    _find(program)(torch, dist, int(rank), int(size), record, int(seed))
    Path(folder, f"rank{rank}.json").write_text(json.dumps(record.lines), "utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
