"""Every form of our kernels assembled by ptxas, as a table: registers, spills, narrow accesses, PTX
instructions of an element. Needs no GPU.

    python scripts/gpu_check/assembly.py [--arch sm_80 --arch sm_90a] [--out FILE]

Instructions are counted as they stand: those of a thread over the elements that it computes, with
those for what is left at the end of an array among them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "_ops" / "cuda" / "kernel_forms.py"
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
SHOWN = "sm_90a"
SPILLS = 0


def forms(arch: str) -> dict[str, Any]:
    """What became of each kernel for an architecture."""
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(PROGRAM), arch]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def summary(arch: str, found: dict[str, Any]) -> str:
    """A line of the first table."""
    made = {name: it for name, it in found.items() if "failed" not in it}
    spilled = [name for name, it in made.items() if it["spilled"] > SPILLS]
    generic = [name for name, it in made.items() if it["generic"]]
    most = max(it["registers"] for it in made.values())
    return (f"| {arch} | {len(found)} | {len(found) - len(made)} | {len(spilled)} | {most} | "
            f"{len(generic)} |")  # fmt: skip


def line(name: str, it: dict[str, Any]) -> str:
    """A line of the second."""
    title, kernel = name.rsplit(": ", 1)
    if "failed" in it:
        return f"| {title} | {kernel} | failed | | | | |"
    each = it["instructions"] / (it["each"] + 1)
    return (f"| {title} | {kernel} | {it['registers']} | {it['spilled']} | {it['wide']} | "
            f"{it['narrow']} | {each:.0f} |")  # fmt: skip


def page(found: dict[str, dict[str, Any]]) -> str:
    """Both tables."""
    lines = ["# Kernels for GPUs, assembled", "",
             "Made by `scripts/gpu_check/assembly.py` (PTX by LLVM, then ptxas); it needs no GPU.",
             "", "| architecture | kernels | failed | with spills | most registers | with accesses "
             "of unknown memory |", "|---|---|---|---|---|---|"]  # fmt: skip
    lines += [summary(arch, of_arch) for arch, of_arch in found.items()]
    shown = SHOWN if SHOWN in found else next(iter(found))
    lines += ["", f"For {shown}; instructions are PTX's, of an element:", "",
              "| form | kernel | registers | spilled | wide | narrow | instructions |",
              "|---|---|---|---|---|---|---|"]  # fmt: skip
    return "\n".join(lines + [line(name, it) for name, it in found[shown].items()]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", action="append", default=[])
    parser.add_argument("--out", default="")
    given = parser.parse_args()
    text = page({arch: forms(arch) for arch in given.arch or ARCHITECTURES})
    if given.out:
        Path(given.out).write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
