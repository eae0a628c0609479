"""Import time and memory of a fresh process, against torch's.

Usage: `python benchmarks/startup.py`
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

PROBE = """
import time, resource
start = time.perf_counter()
import {module}
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def measure(module: str, runs: int = 7) -> tuple[float, float]:
    """Median (seconds, MB) of importing a module; the first run may compile: not counted."""
    samples = []
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(runs + 1):
        command = [sys.executable, "-c", PROBE.format(module=module)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        text = done.stdout
        samples.append([float(part) for part in text.split()])
    return tuple(statistics.median(column) for column in zip(*samples[1:], strict=True))  # type: ignore[return-value]


if __name__ == "__main__":
    print("| import | seconds | RSS, MB |\n|---|---|---|")
    for name in ("numpy", "flambeau", "torch"):
        seconds, memory = measure(name)
        print(f"| {name} | {seconds:.3f} | {memory:.0f} |")
    print("\naims: flambeau ≤ 0.20 s, ≤ 50 MB")
