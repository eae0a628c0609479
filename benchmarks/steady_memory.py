"""Memory stays flat over 100,000 small training steps, and large ones leave nothing behind.

Usage: python benchmarks/steady_memory.py [steps]

Prints the process's memory and the pool's counts every tenth of the way; ends with an error where
the second half takes more than 2 MB on top of the first.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import flambeau as torch


def resident() -> float:
    """Megabytes of memory that the process has (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(steps: int) -> int:
    """Train a small model for a while; now and then a batch is large enough for kernels."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    small, large = torch.randn(8, 16), torch.randn(2048, 16)
    seen = []
    begin = time.perf_counter()
    for step in range(1, steps + 1):
        x = large if step % 100 == 0 else small
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // 10) == 0:
            seen.append(resident())
            reserved = torch.cpu.memory_reserved() / 2**20
            rate = 1e6 * (time.perf_counter() - begin) / step
            print(f"{step:>8} steps  {seen[-1]:7.1f} MB  pool {reserved:5.1f} MB  "
                  f"loss {loss.item():.5f}  {rate:.0f} us a step", flush=True)  # fmt: skip
    grown = seen[-1] - seen[len(seen) // 2 - 1]
    print(f"grown in the second half: {grown:.2f} MB")
    return int(grown > 2)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
