"""Runs every item; the package says how."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.gpu_check.driver.allocator import (
    allocator_under_random_programs,
    out_of_memory,
    private_pools,
)
from scripts.gpu_check.driver.beside_pytorch import like_pytorch
from scripts.gpu_check.driver.costs import (
    costs,
    costs_of_pytorch,
    costs_of_tensors,
    graph_costs,
    start_up,
)
from scripts.gpu_check.driver.functions import (
    copies,
    devices,
    graphs,
    kernels,
    pinned_memory,
    streams_and_events,
)
from scripts.gpu_check.driver.results import RESULTS, Places, item

ITEMS = (
    devices, copies, pinned_memory, kernels, streams_and_events, graphs,
    allocator_under_random_programs, out_of_memory, private_pools, like_pytorch, costs,
    graph_costs, costs_of_tensors, costs_of_pytorch, start_up,
)  # fmt: skip  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="The driver and what stands on it")
    parser.add_argument("--out", type=Path, default=Path())
    Places.out = parser.parse_args().out
    for function in ITEMS:
        item(function)
    failed = [name for name, found in RESULTS.items() if not found["ok"]]
    print(f"{len(RESULTS) - len(failed)} of {len(RESULTS)} hold; failed: {failed}")


if __name__ == "__main__":
    main()
