"""Programs as users write them, run by both libraries: what they print is the same.

Each script of `scripts/` runs with PyTorch and by `flambeau run`. Text is compared exactly, and so
are integers; numbers with a fraction to 1e-4.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.py"))
DEADLINE_S = 120
END = "==== end of script"
ALL_IN_TURN = f"""
import runpy, sys
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")
    print({END!r})
"""
FRACTION = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?\d+e[-+]?\d+")
RELATIVE = 1e-4
ABSOLUTE = 2e-6
"""Sums that cancel leave rounding errors of a few 1e-7 in float32."""


def printed(command: list[str], folder: Path) -> str:
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # PyTorch's threads spin where cores are busy
    done = subprocess.run([sys.executable, *command], cwd=folder, text=True, check=False,
                          capture_output=True, timeout=DEADLINE_S, env=alone)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """What PyTorch prints, in one process for all, because its import takes seconds."""
    folder = tmp_path_factory.mktemp("torch")
    output = printed(["-c", ALL_IN_TURN, *map(str, SCRIPTS)], folder)
    parts = output.split(END + "\n")[:-1]
    return dict(zip(SCRIPTS, parts, strict=True))


def skeleton(line: str) -> str:
    """A line without its fractions, and without the columns that their widths make."""
    return re.sub(r" +", " ", FRACTION.sub("#", line)).replace("[ ", "[")


def same_line(expected: str, found: str) -> bool:
    if expected == found:
        return True
    if skeleton(expected) != skeleton(found):
        return False
    pairs = zip(FRACTION.findall(expected), FRACTION.findall(found), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
               for a, b in pairs)  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_prints_the_same(script: Path, expected: dict[Path, str], tmp_path: Path) -> None:
    found = printed(["-m", "flambeau", "run", str(script)], tmp_path).splitlines()
    wanted = expected[script].splitlines()
    assert len(wanted) == len(found) > 5
    pairs = zip(wanted, found, strict=True)
    assert [pair for pair in pairs if not same_line(*pair)] == []


def test_comparison_notices() -> None:
    assert same_line("loss 0.123456 [ 3, -1.0]", "loss 0.123457 [ 3, -1.0]")
    assert not same_line("loss 0.1234", "loss 0.1236")
    assert not same_line("3 wrong", "4 wrong")
    assert not same_line("shape [2, 3]", "shape [2, 3] ")
