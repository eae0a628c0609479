"""Everything that scripts something, in shadow mode: for once a week, by hand.

    python conformance/under_shadow.py                      # about an hour on two cores
    python conformance/under_shadow.py --only conformance/jit
    python conformance/under_shadow.py --programs FOLDER    # scripts of one's own instead

Every optimised call runs on copies first, optimised and plain (docs/optimiser.md); a difference
raises `OptimisedDifference`, and so fails the test or the program that made the call. Exits with 1
where anything failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITES = ("conformance", "tests/jit", "tests/debug", "tests/test_examples.py")
LOOKS_AT_ITSELF = (
    "tests/jit/archive/test_names.py::test_identity_is_no_address",  # copies have other identities
    "conformance/jit/test_generated.py::test_new_programs",  # compares with the plain form itself
    "conformance/jit/test_generated.py::test_a_fault_is_seen_and_made_small",
    "tests/jit/optimise/test_rules.py::test_sums_beside_what_they_are_made_of",  # sums that cancel
)
DEADLINE_S = 600
SWITCH = "FLAMBEAU_CHECK_OPTIMISED"


def suite(path: str, workers: str) -> bool:
    """Whether a folder or file of tests passes."""
    left_out = [f"--deselect={name}" for name in LOOKS_AT_ITSELF]
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *left_out, path], cwd=ROOT, env=settings(), check=False)
    return done.returncode == 0


def program(path: Path, folder: str) -> bool:
    """Whether a script runs to its end; what it prints is shown only where it does not."""
    command = [sys.executable, "-m", "flambeau", "run", str(path.resolve())]
    try:
        done = subprocess.run(command, cwd=folder, env=settings(), text=True, check=False,
                              timeout=DEADLINE_S, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{path.name}: not ended after {DEADLINE_S} s", flush=True)
        return False
    print(f"{path.name}: {'runs' if done.returncode == 0 else 'FAILED'}", flush=True)
    if done.returncode:
        print(done.stdout[-4000:], flush=True)
    return done.returncode == 0


def settings() -> dict[str, str]:
    return {**os.environ, SWITCH: "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="PATH", help="these tests")
    parser.add_argument("--programs", type=Path, metavar="FOLDER", help="run the scripts in it")
    parser.add_argument("--workers", default="auto", help="processes of pytest")
    options = parser.parse_args()
    started = time.perf_counter()
    failed = []
    if options.programs:
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted(options.programs.glob("*.py")):
                if not program(path, folder):
                    failed.append(path.name)
    else:
        failed = [path for path in options.only or SUITES if not suite(path, options.workers)]
    minutes = (time.perf_counter() - started) / 60
    found = f"failed: {', '.join(failed)}" if failed else "no difference"
    print(f"{minutes:.1f} minutes in shadow mode; {found}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
