"""Runs programs of libraries under flambeau and under PyTorch, and compares what they print.

    python programs/run.py --flambeau VENV --torch VENV [NAME ...]

Each environment has the libraries of `requirements.txt`; the first has `flambeau provide-torch`,
the second PyTorch. Words have to be the same, numbers within 1e-4 (relative). The exit code is 1 if
a program fails or differs.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).with_name("cases")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?![\w.])")
TOLERANCE = 1e-4
SECONDS = 600


def printed(environment: Path, program: Path) -> tuple[str, str]:
    """What a program prints, or "" and the last line of its complaint."""
    command = [str(environment / "bin" / "python"), str(program)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    settings.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            command, env=settings, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return "", f"not finished within {SECONDS} s"
    if done.returncode == 0:
        return done.stdout, ""
    return "", (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def agree(ours: str, theirs: str) -> bool:
    """Whether two texts say the same, but for rounding."""
    if NUMBER.split(ours) != NUMBER.split(theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    return all(_close(a, b) for a, b in pairs)


def _close(a: str, b: str) -> bool:
    if a == b:
        return True
    if "." not in a + b and "e" not in a + b:
        return False  # ids and counts are the same or they are not
    return math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=1e-6)


def verdict(program: Path, ours: Path, theirs: Path) -> str:
    """One line about a program: "same", or what is wrong."""
    expected, reason = printed(theirs, program)
    if reason:
        return f"fails under PyTorch: {reason}"
    found, reason = printed(ours, program)
    if reason:
        return f"fails: {reason}"
    if agree(found, expected):
        return "same"
    lines = zip(found.splitlines(), expected.splitlines(), strict=False)
    first = next((pair for pair in lines if not agree(*pair)), ("another number of lines", ""))
    return f"differs: {first[0][:200]!r}, PyTorch: {first[1][:200]!r}"


def main() -> int:
    """Carry out the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flambeau", type=Path, required=True, metavar="VENV")
    parser.add_argument("--torch", type=Path, required=True, metavar="VENV")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    programs = [
        p for p in sorted(CASES.glob("*.py")) if not options.names or p.stem in options.names
    ]
    failed = 0
    for program in programs:
        told = verdict(program, options.flambeau, options.torch)
        failed += told != "same"
        print(f"{program.stem}: {told}", flush=True)
    print(f"{len(programs) - failed} of {len(programs)} programs give PyTorch's numbers")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
