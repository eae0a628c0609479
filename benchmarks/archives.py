"""A tar of JPEGs read by two workers, beside decoding alone.

    python benchmarks/archives.py [words of case names]

600 JPEGs of 256x256 pixels, of about 25 kB, in one tar. Sides: flambeau's TarDataset with
processes and with threads; torch with what people write themselves, an IterableDataset that goes
through the tar in each worker and leaves out the others' samples; and the ceiling: two processes
that decode the same bytes from memory as TarDataset does, and hand over nothing. Each side has
a process of its own and they take turns; the figure is the fastest round.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from data_loading import Side, epoch
from PIL import Image

COUNT, PIXELS, WORKERS, BATCH, ROUNDS = 600, 256, 2, 32, 7
REPEATS = 3
"""Of decoding in a new process, whose first touch of its memory costs time."""


def archive() -> str:
    """The tar; made once."""
    path = Path(tempfile.gettempdir()) / f"flambeau-bench-{COUNT}x{PIXELS}.tar"
    if path.exists():
        return str(path)
    random = np.random.default_rng(0)
    part = path.with_suffix(f".{os.getpid()}")
    with tarfile.open(part, "w") as tar:
        for k in range(COUNT):
            rough = Image.fromarray(random.integers(0, 256, (32, 32, 3), dtype=np.uint8))
            out = io.BytesIO()
            rough.resize((PIXELS, PIXELS), Image.Resampling.BICUBIC).save(out, "JPEG", quality=90)
            for name, data in ((f"{k:05}.jpg", out.getvalue()), (f"{k:05}.cls", b"%d" % (k % 10))):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    part.replace(path)
    return str(path)


def decoded(data: bytes) -> Any:
    """Pixels [3, H, W], as people do it."""
    pixels = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def by_hand(torch: Any) -> Any:
    """The usual IterableDataset over a tar."""

    class Images(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Iterator[Any]:
            info = torch.utils.data.get_worker_info()
            with tarfile.open(archive()) as tar:
                members = iter(tar)
                for k, (image, label) in enumerate(zip(members, members, strict=True)):
                    if k % info.num_workers == info.id:
                        pixels = decoded(tar.extractfile(image).read())  # type: ignore[union-attr]
                        number = int(tar.extractfile(label).read())  # type: ignore[union-attr]
                        yield torch.from_numpy(pixels), number

    return torch.utils.data.DataLoader(
        Images(), BATCH, num_workers=WORKERS, persistent_workers=True
    )


def from_tar(torch: Any, kind: str) -> Any:
    dataset = torch.utils.data.TarDataset(archive(), ("jpg", "cls"))
    return torch.utils.data.DataLoader(
        dataset, BATCH, num_workers=WORKERS, persistent_workers=True, worker_type=kind
    )


def decode_all(pieces: list[bytes]) -> None:
    """In processes, each with its share."""
    from flambeau.utils.data.archives.decoding import image

    image(pieces[0])  # the children have what is imported by then
    children = []
    for number in range(WORKERS):
        child = os.fork()
        if not child:
            for data in REPEATS * pieces[number::WORKERS]:
                image(data)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def decoding() -> Callable[[], float]:
    """Seconds for decoding alone."""
    with tarfile.open(archive()) as tar:
        pieces = [tar.extractfile(m).read() for m in tar if m.name.endswith("jpg")]  # type: ignore[union-attr]

    def once() -> float:
        start = time.perf_counter()
        decode_all(pieces)
        return (time.perf_counter() - start) / REPEATS

    return once


CASES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "torch, an IterableDataset by hand": ("torch", by_hand),
    "flambeau, the same": ("flambeau", by_hand),
    "flambeau, TarDataset, 2 processes": ("flambeau", lambda t: from_tar(t, "process")),
    "flambeau, TarDataset, 2 threads": ("flambeau", lambda t: from_tar(t, "thread")),
}
CEILING = "decoding alone, 2 processes"


def serve(case: str) -> None:
    """The seconds of a round for each line."""
    if case == CEILING:
        once = decoding()
    else:
        library, build = CASES[case]
        torch = importlib.import_module(library)
        torch.set_num_threads(1)
        loader = build(torch)

        def once() -> float:
            return epoch(loader)

    once()
    for _ in sys.stdin:
        print(json.dumps(once()), flush=True)


def main(words: list[str]) -> None:
    """Print the table."""
    archive()
    names = [CEILING, *[n for n in CASES if not words or any(word in n for word in words)]]
    sides = {name: Side(name, __file__) for name in names}
    rounds = [[sides[name].ask("epoch") for name in names] for _ in range(ROUNDS)]
    times = dict(zip(names, map(min, zip(*rounds, strict=True)), strict=True))
    theirs = times.get("torch, an IterableDataset by hand")
    print("| case | images per second | of the ceiling | over torch |\n|---|---|---|---|")
    for name, seconds in times.items():
        ratio = f"{theirs / seconds:.2f}" if theirs else ""
        cells = name, f"{COUNT / seconds:,.0f}", f"{times[CEILING] / seconds:.0%}", ratio
        print(f"| {' | '.join(cells)} |")
    for side in sides.values():
        side.process.communicate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main(sys.argv[1:])
