"""Change single bytes of checkpoints, at random, and load each: every change must be found.

    python fuzz/flip_bytes.py --flips 10000 [FILE ...]

Without files, checkpoints of a small model and of its optimizer are made. Files of PyTorch may be
given too. Each change replaces one byte by another; `load` must raise.
"""

from __future__ import annotations

import argparse
import io
import pickle
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import flambeau
from flambeau import nn, optim
from flambeau.serialization import load, save


def checkpoints() -> dict[str, bytes]:
    """A model, its optimizer after one step, and a tensor alone."""
    flambeau.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.Linear(30, 5))
    optimizer = optim.Adam(model.parameters())
    model(flambeau.randn(4, 20)).sum().backward()
    optimizer.step()
    values = {
        "model": model.state_dict(),
        "optimizer": {"optimizer": optimizer.state_dict(), "epoch": 3},
        "tensor": flambeau.arange(5),
    }
    result = {}
    for name, value in values.items():
        sink = io.BytesIO()
        save(value, sink)
        result[name] = sink.getvalue()
    return result


def changed(content: bytes, generator: random.Random) -> tuple[int, bytes]:
    """A copy with one byte replaced by another, and where."""
    place = generator.randrange(len(content))
    copy = bytearray(content)
    copy[place] ^= generator.randrange(1, 256)
    return place, bytes(copy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = {str(path): path.read_bytes() for path in options.files} or checkpoints()
    for content in files.values():
        load(io.BytesIO(content), map_location="cpu")
    generator = random.Random(options.seed)
    errors: Counter[str] = Counter()
    start = time.perf_counter()
    for step in range(options.flips):
        name = list(files)[step % len(files)]
        place, damaged = changed(files[name], generator)
        try:
            load(io.BytesIO(damaged), map_location="cpu")
        except (RuntimeError, pickle.UnpicklingError) as error:
            errors[type(error).__name__] += 1
        else:
            sys.exit(f"{name}: byte {place} was changed (seed {options.seed}), nobody saw it")
    seconds = time.perf_counter() - start
    print(f"{options.flips} changes of a byte, all found in {seconds:.0f} s: {dict(errors)}")


if __name__ == "__main__":
    main()
