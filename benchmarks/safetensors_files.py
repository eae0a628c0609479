"""Opening, loading and saving .safetensors files, beside the `safetensors` package with PyTorch.

    python benchmarks/safetensors_files.py [FOLDER]

The folder (default: one in memory where the system has it) holds 1 GB for the time of the run.
Both sides run in this process, in alternating rounds; a figure is the fastest of them. Saving is
timed there, too: on a disk, `fsync`, which only flambeau's atomic saving waits for, would be all
that is measured.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

import flambeau
from flambeau.serialization.safetensors import safe_open
from flambeau.serialization.safetensors import torch as ours

ROUNDS = 7
LARGE = [(f"layers.{i}.weight", (1024, 1024)) for i in range(250)]
SMALL = [(f"layers.{i}.bias", (256,)) for i in range(2000)]

Pair = tuple[Callable[[], Any], Callable[[], Any]]


def fastest(pair: Pair) -> list[float]:
    """The shortest time of each side, in seconds."""
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for side, step in enumerate(pair):
            start = time.perf_counter()
            step()
            times[side].append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def tensors(library: Any, shapes: list[tuple[str, tuple[int, ...]]]) -> dict[str, Any]:
    """Tensors of ones, so that every page exists."""
    return {name: library.ones(shape) for name, shape in shapes}


def one_slice(opener: Any, path: Path) -> Any:
    """Open a file, look at its names, read three numbers in its middle."""
    with opener(path, "pt") as file:
        name = file.keys()[len(file.keys()) // 2]
        return file.get_slice(name)[0, :3].tolist()


def touched(state: dict[str, Any]) -> float:
    """Load and look at one number per page."""
    return sum(float(tensor.view(-1)[::1024].sum()) for tensor in state.values())


def cases(folder: Path) -> dict[str, Pair]:
    """What is timed, by name: the package's step, ours."""
    large, small, sink = (folder / name for name in ("large", "small", "sink"))
    safetensors.torch.save_file(tensors(torch, LARGE), large)
    safetensors.torch.save_file(tensors(torch, SMALL), small)
    their_large, our_large = tensors(torch, LARGE[:60]), tensors(flambeau, LARGE[:60])
    their_small, our_small = tensors(torch, SMALL), tensors(flambeau, SMALL)
    theirs = safetensors.torch
    return {
        "1 GB: open, three numbers": (
            lambda: one_slice(safetensors.safe_open, large),
            lambda: one_slice(safe_open, large),
        ),
        "1 GB: load_file": (lambda: theirs.load_file(large), lambda: ours.load_file(large)),
        "1 GB: load_file, touch every page": (
            lambda: touched(theirs.load_file(large)),
            lambda: touched(ours.load_file(large)),
        ),
        "2000 small tensors: load_file": (
            lambda: theirs.load_file(small),
            lambda: ours.load_file(small),
        ),
        "250 MB: save_file": (
            lambda: theirs.save_file(their_large, sink),
            lambda: ours.save_file(our_large, sink),
        ),
        "2000 small tensors: save_file": (
            lambda: theirs.save_file(their_small, sink),
            lambda: ours.save_file(our_small, sink),
        ),
    }


def main() -> None:
    """Print the table."""
    in_memory = Path("/dev/shm")
    parent = sys.argv[1] if len(sys.argv) > 1 else in_memory if in_memory.is_dir() else None
    print(f"safetensors {safetensors.__version__}, torch {torch.__version__}\n")
    print("| case | safetensors with torch | flambeau | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        for name, pair in cases(Path(folder)).items():
            theirs, mine = fastest(pair)
            cells = f"{1000 * theirs:.2f} ms | {1000 * mine:.2f} ms | {mine / theirs:.2f}"
            print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
