"""Kill a process at random moments of saving; its file must always be whole.

    python fuzz/kill_while_saving.py --kills 500

A child saves one version after the other under the same name and reports each save that has
returned. The parent kills it with SIGKILL and loads the file: it must hold one whole version, no
older than the last report. At the end one more save must leave nothing but the file.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import flambeau
from flambeau.serialization import load, save

NUMBER = struct.Struct("<q")


def checkpoint(version: int, elements: int) -> dict[str, object]:
    """Content that shows its version everywhere, so that a mixture cannot hide."""
    weights = np.full(elements, version, np.int64)
    return {"version": version, "weights": flambeau.from_numpy(weights), "last": [version] * 100}


def save_forever(path: Path, first: int, elements: int, report: int, legacy: bool) -> None:
    """The child: save versions from `first` on, and write each number once it is saved."""
    version = first
    while True:
        new_format = not (legacy and version % 2)
        save(checkpoint(version, elements), path, _use_new_zipfile_serialization=new_format)
        os.write(report, NUMBER.pack(version))
        version += 1


def kill_once(path: Path, first: int, elements: int, delay: float, legacy: bool) -> int:
    """Start a child, kill it after `delay` seconds; the last version that it reported, or -1."""
    reports, report = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reports)
        save_forever(path, first, elements, report, legacy)
    os.close(report)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    last = -1
    while piece := os.read(reports, NUMBER.size):
        (last,) = NUMBER.unpack(piece)
    os.close(reports)
    return last


def check(path: Path, oldest: int) -> int:
    """The version in the file. AssertionError if it is not whole, or older than `oldest`."""
    found = load(path)
    version = found["version"]
    assert version >= oldest, f"version {version} is older than {oldest}, which was saved"
    assert found["last"] == [version] * 100
    weights = found["weights"].numpy()
    assert (weights == version).all(), "the weights are of different versions"
    return int(version)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--elements", type=int, default=100_000)
    parser.add_argument("--longest", type=float, default=0.05, help="seconds until a kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--legacy", action="store_true", help="every second file in the old format")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    left, saves = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        save(checkpoint(0, options.elements), path)
        version = 0
        for _ in range(options.kills):
            delay = generator.uniform(0, options.longest)
            reported = kill_once(path, version + 1, options.elements, delay, options.legacy)
            left += len(list(Path(folder).iterdir())) > 1
            newest = check(path, max(version, reported))
            saves += newest - version
            version = newest
        save(checkpoint(version + 1, options.elements), path)
        names = sorted(place.name for place in Path(folder).iterdir())
        assert names == ["model.pt"], f"left behind: {names}"
    print(f"{options.kills} kills, {saves} saves: every file whole; {left} kills left a temporary")


if __name__ == "__main__":
    main()
