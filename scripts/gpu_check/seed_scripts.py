"""Scripts that say `import torch`, each in a process of its own, on the device `cuda`.

    python scripts/gpu_check/seed_scripts.py FOLDER --out FILE.json [--at-once 4] [--timeout 100]

Runs every `NN_*.py` of the folder under `flambeau run` with DEVICE=cuda, at the sizes that the
scripts have themselves, and writes for each whether it held, how long it took and, where it did not
hold, its last lines. Exit status: 0 when all held.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 6
"""Lines of a script that failed."""


def tried(script: Path, timeout: float) -> dict[str, Any]:
    """What came of a script."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {"DEVICE": "cuda", "OMP_NUM_THREADS": "2", "MPLBACKEND": "Agg", **os.environ}
    start = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "flambeau", "run", str(script)], check=False, timeout=timeout,
            capture_output=True, text=True, env={**environment, "PYTHONPATH": paths},
        )  # fmt: skip
        held, text = done.returncode == 0, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        held, text = False, f"not done after {timeout:g} s"
    found = {"held": held, "seconds": round(time.monotonic() - start, 1)}
    return found if held else {**found, "lines": text.splitlines()[-SHOWN:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", default=os.devnull)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=100)
    given = parser.parse_args()
    scripts = sorted(given.folder.glob("[0-9][0-9]_*.py"))
    if not scripts:
        sys.exit(f"no scripts in {given.folder}")
    results: dict[str, Any] = {}
    with ThreadPoolExecutor(given.at_once) as pool:
        for script, found in zip(
            scripts, pool.map(lambda s: tried(s, given.timeout), scripts), strict=True
        ):
            results[script.stem] = found
            Path(given.out).write_text(json.dumps(results, indent=1), encoding="utf-8")
            if not found["held"]:
                print(script.stem, *found["lines"], sep="\n    ", flush=True)
    held = sum(found["held"] for found in results.values())
    print(f"{held} of {len(scripts)} scripts held")
    sys.exit(held < len(scripts))


if __name__ == "__main__":
    main()
