"""Every operator of PyTorch's database on conjugate and negative views: values and gradients.

    python -m conformance.opinfo.bits [--bits conj] [--ops REGEX] [--samples 4] [--jobs 2]

Each tensor of a sample is a view with the bit and the sample's values; results have to have
PyTorch's values and bits, as functions, methods and in place. Printed are the rows of
`opinfo.py` and, for each failure, its reason if it has one; 1 is returned if one has none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("opinfo.py")
KINDS = {
    "conj": ("complex64", "complex128"),
    "neg": ("float64,float32,complex64", "float64,complex128"),
    "conj,neg": ("complex128", "complex128"),
}
"""Bits -> the types in which values are compared, and those of gradients."""
SAMPLED = {"neg": ("float32,complex64", "complex128")}
"""The same for a few samples."""
LEFT = {
    "as_strided_scatter": "PyTorch's gradient passes where values were replaced; its own gradcheck "
    "fails: conformance/test_bits.py",
    "matrix_exp": "single precision, large numbers: ours are nearer to double precision's",
    "polygamma": "single precision beside the poles: PyTorch is 2e-5 off, ours 5e-8",
    "special.polygamma": "the same",
}
"""Rows that may fail, and why."""


def command(bits: str, pattern: str, out: Path, samples: int = 0, jobs: int = 1) -> list[str]:
    """What runs the rows that a pattern matches; all samples if their number is 0."""
    dtypes, learning = SAMPLED.get(bits, KINDS[bits]) if samples else KINDS[bits]
    return [
        sys.executable, str(SCRIPT), "--impl", "flambeau", "--bits", bits, "--dtypes", dtypes,
        "--grad", "--grad-dtypes", learning, "--only", "forward,method,inplace,grad",
        "--limit-samples", str(samples), "--tol-scale", "4", "--timeout", "600",
        "--jobs", str(jobs), "--ops", pattern, "--out", str(out),
    ]  # fmt: skip


def results(out: Path) -> list[dict[str, Any]]:
    """What a run has written."""
    found: list[dict[str, Any]] = json.loads(out.read_text("utf-8"))["results"]
    return found


def failures(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The name of each row that fails in a category, and how."""
    return [
        (row["name"].split()[0], f"{row['name']} {category}: {record['failure']}")
        for row in rows
        for category, record in row["categories"].items()
        if record["status"] not in ("pass", "skipped")
    ]


def main(arguments: list[str]) -> int:
    """Run the rows for each kind of bits; 1 if one fails for no known reason."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bits", choices=KINDS, action="append", help="default: all kinds")
    parser.add_argument("--ops", default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--samples", type=int, default=0, help="at most so many; 0: all")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    words = parser.parse_args(arguments)
    faults = 0
    path = os.pathsep.join([str(SCRIPT.parents[2]), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        for bits in words.bits or KINDS:
            print(f"# {bits}", flush=True)
            out = Path(folder) / "results.json"
            run = command(bits, words.ops, out, words.samples, words.jobs)
            subprocess.run(run, check=True, env={**os.environ, "PYTHONPATH": path})
            for name, told in failures(results(out)):
                print(told, f"({LEFT[name]})" if name in LEFT else "", sep="\n")
                faults += name not in LEFT
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
