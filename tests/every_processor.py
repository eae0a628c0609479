"""The tests of kernels as they run on other machines: narrower vectors, more threads, no LLVM.

    python tests/every_processor.py                  every setting, all of these tests
    python tests/every_processor.py --sample 150     what is drawn at random in so many seconds
    python tests/every_processor.py --sample 150 --seed 12   the same draws again

Each setting is a run of pytest in a process of its own, with the variables that the head of the run
shows: so it can be repeated. NumPy and OpenBLAS get no more features of the processor than kernels.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDERS = (
    "_compiler", "_core", "_ops", "_runtime", "_tensor", "jit/optimise", "nn", "optim",
    "utils/data/archives",
)  # fmt: skip
"""Where tests compile kernels."""
THREADS = (1, 2, 16)
FILES_OF_A_DRAW = 12
NO_TESTS = 5  # pytest's exit status where all files are skipped


class Setting(NamedTuple):
    """What a run pretends: the processor, None for no llvmlite, its cores, and the engine."""

    cpu: str | None
    threads: int
    engine: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make it so."""
        found = {"OMP_NUM_THREADS": str(self.threads), "FLAMBEAU_ENGINE": self.engine}
        if self.cpu is None:
            paths = [str(HERE / "without_llvmlite"), os.environ.get("PYTHONPATH", "")]
            return {**found, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        return {**found, "FLAMBEAU_CPU": self.cpu, **of_numpy(self.cpu)}


def of_numpy(cpu: str) -> dict[str, str]:
    """What tells NumPy and OpenBLAS to do with the features of a level."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    core = {
        "baseline": "Nehalem",
        "avx2": "Haswell",
        "avx512": "SkylakeX",
        "avx512bf16": "SkylakeX",
    }.get(cpu)
    known = {
        "baseline": (),
        "avx2": ("X86_V3",),
        "avx512": ("X86_V3", "X86_V4"),
        "avx512bf16": ("X86_V3", "X86_V4"),
    }.get(cpu)
    if core is None or known is None or not __cpu_features__.get("SSE2"):
        return {}
    more = [name for name in __cpu_dispatch__ if __cpu_features__[name] and name not in known]
    without = {"NPY_DISABLE_CPU_FEATURES": " ".join(more)} if more else {}
    return {"OPENBLAS_CORETYPE": core, **without}


def cpus() -> list[str]:
    """The choices of FLAMBEAU_CPU that this processor has; none without llvmlite."""
    sys.path.insert(0, str(ROOT))
    from flambeau._runtime import choice, processor

    if not choice.available():
        return []
    from flambeau._runtime import features

    return [processor.NATIVE, *processor.within(features.host()[2])]


def settings() -> list[Setting]:
    """Every setting of this machine; kernels for small tensors too with two threads."""
    found = [Setting(cpu, threads, "auto") for cpu in cpus() for threads in THREADS]
    found += [Setting(cpu, 2, "llvm") for cpu in cpus()]
    return found + [Setting(None, threads, "auto") for threads in THREADS]


def files_of_kernels() -> list[str]:
    """The tests of kernels, by their paths from the root."""
    found = [path for folder in FOLDERS for path in (HERE / folder).rglob("test_*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def run(setting: Setting, files: list[str]) -> bool:
    """One run of pytest; whether all passed."""
    changed = setting.environment
    shown = " ".join(f"{name}='{value}'" for name, value in changed.items())
    print(f"\n=== {shown} python -m pytest -q {' '.join(files)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *files]
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **changed}, check=False)
    return status.returncode in ((0, NO_TESTS) if setting.cpu is None else (0,))


def drawn(seed: int) -> Iterator[tuple[Setting, list[str]]]:
    """Settings in random order, over and over, each with a few files."""
    chance = random.Random(seed)
    choices, files = settings(), files_of_kernels()
    while True:
        for setting in chance.sample(choices, len(choices)):
            yield setting, sorted(chance.sample(files, min(FILES_OF_A_DRAW, len(files))))


def sample(seconds: float, seed: int) -> list[Setting]:
    """Draws until the time is over; the settings in which something failed."""
    print(f"every processor: --seed {seed}", flush=True)
    end = time.monotonic() + seconds
    failed = []
    for setting, files in drawn(seed):
        if time.monotonic() > end:
            return failed
        if not run(setting, files):
            failed.append(setting)
    return failed


def main() -> int:
    """1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=float, metavar="SECONDS", help="draw for so long")
    parser.add_argument("--seed", type=int, help="draw what this seed draws")
    chosen = parser.parse_args()
    if chosen.sample is None:
        folders = [f"tests/{folder}" for folder in FOLDERS]
        failed = [setting for setting in settings() if not run(setting, folders)]
    else:
        seed = secrets.randbelow(1 << 32) if chosen.seed is None else chosen.seed
        failed = sample(chosen.sample, seed)
    for setting in failed:
        print(f"failed: {setting}")
    print(f"every processor: {len(failed)} failed" if failed else "every processor: all passed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
