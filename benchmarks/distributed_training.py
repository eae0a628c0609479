"""Training by DistributedDataParallel in processes of one machine, beside PyTorch's over gloo.

    python benchmarks/distributed_training.py                       the models in 2 processes
    python benchmarks/distributed_training.py --processes 1 2 4     the cost of scaling, too
    python benchmarks/distributed_training.py --models gpt --json FILE

Every process has a batch of its own and trains its model in three ways, which take turns:

    plain    no process hears of another
    DDP      DistributedDataParallel
    after    the same buckets are averaged when backward is over

A time is that of one step of the slowest rank, the shortest of all turns. The ratio is our samples
a second over PyTorch's; overlap is the part of the reduction that backward hides,
(after - DDP) / (after - plain). With one core for each process it says what it should; where
processes wait for cores, the reduction takes its time from backward. `cost` is the part of a step
that DDP adds to a plain one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("flambeau", "torch")
WAYS = ("plain", "DDP", "after")
COLUMNS = "model processes library plain DDP after overlap cost samples/s ratio".split()
WARM_UP = 10
"""Steps of each way that are not counted."""
SEEN = 0.01
"""The part of a step that a reduction has to take for its overlap to be told."""


@dataclass(frozen=True)
class Sizes:
    """How many samples a process has in a step, and how large the models are."""

    mlp: int = 128
    cnn: int = 64
    gpt: int = 12
    width: int = 128
    layers: int = 4


SIZES = Sizes()
SMALL = Sizes(mlp=8, cnn=2, gpt=1, width=32, layers=1)
VOCABULARY, BLOCK, HEADS = 65, 64, 4


def drawn(torch: Any, *shape: int, seed: int) -> Any:
    """Normal numbers, the same under each library."""
    numbers = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(numbers)


def labels(torch: Any, high: int, *shape: int, seed: int) -> Any:
    """Whole numbers below `high`, the same under each library."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, high, shape))


@dataclass
class Training:
    """A model and what a process trains it with."""

    model: Any
    loss: Callable[[Any, Any], Any]
    optimizer: Callable[[Any], Any]
    inputs: Any
    targets: Any


def mlp(torch: Any, sizes: Sizes, rank: int) -> Training:
    """784-512-512-10."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                          nn.Linear(512, 10))  # fmt: skip
    return Training(
        model, nn.CrossEntropyLoss(), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
        drawn(torch, sizes.mlp, 784, seed=rank), labels(torch, 10, sizes.mlp, seed=rank),
    )  # fmt: skip


def cnn(torch: Any, sizes: Sizes, rank: int) -> Training:
    """Two convolutions and two layers, for digits of 28 by 28."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    return Training(
        model, nn.CrossEntropyLoss(), lambda p: torch.optim.Adadelta(p, lr=0.1),
        drawn(torch, sizes.cnn, 1, 28, 28, seed=rank), labels(torch, 10, sizes.cnn, seed=rank),
    )  # fmt: skip


def gpt(torch: Any, sizes: Sizes, rank: int) -> Training:
    """A model of characters: pre-norm blocks with causal attention, tied ends."""
    nn, functional, width = torch.nn, torch.nn.functional, sizes.width

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                     nn.Linear(4 * width, width))  # fmt: skip

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            parts = self.qkv(self.first(x)).split(width, dim=2)
            q, k, v = (part.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                       for part in parts)  # fmt: skip
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.second(x))

    class Model(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(BLOCK, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(sizes.layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
            self.letters.weight = self.head.weight

        def forward(self, text: Any) -> Any:
            x = self.letters(text) + self.places(torch.arange(text.shape[1]))
            return self.head(self.norm(self.blocks(x)))

    text = labels(torch, VOCABULARY, sizes.gpt, BLOCK + 1, seed=rank)
    return Training(
        Model(), lambda out, y: functional.cross_entropy(out.view(-1, VOCABULARY), y.reshape(-1)),
        lambda p: torch.optim.AdamW(p, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1),
        text[:, :-1].contiguous(), text[:, 1:].contiguous(),
    )  # fmt: skip


MODELS = {"mlp": mlp, "cnn": cnn, "gpt": gpt}


def start_alike(torch: Any, model: Any) -> None:
    """The same numbers under each library."""
    with torch.no_grad():
        for seed, (_, parameter) in enumerate(sorted(model.named_parameters())):
            scale = 0.5 / float(np.sqrt(np.prod(parameter.shape[1:]) or 1))
            parameter.copy_(drawn(torch, *parameter.shape, seed=1000 + seed) * scale)


class ReducedAfter:
    """A model whose gradients are averaged, in buckets, by `reduce`."""

    def __init__(self, torch: Any, model: Any, megabytes: float) -> None:
        self._torch, self._dist, self.model = torch, torch.distributed, model
        first, limit = min(1.0, megabytes) * (1 << 20), megabytes * (1 << 20)
        self._buckets: list[list[Any]] = [[]]
        self._buffers: list[Any] = []
        for parameter in reversed(list(model.parameters())):
            self._buckets[-1].append(parameter)
            limit_here = first if len(self._buckets) == 1 else limit
            if sum(each.nbytes for each in self._buckets[-1]) >= limit_here:
                self._buckets.append([])
        self._buckets = [bucket for bucket in self._buckets if bucket]
        for bucket in self._buckets:
            self._buffers.append(torch.empty(sum(each.numel() for each in bucket)))

    def reduce(self) -> None:
        """Copy the gradients together, average, copy them back."""
        size = self._dist.get_world_size()
        for bucket, buffer in zip(self._buckets, self._buffers, strict=True):
            parts = buffer.split([each.numel() for each in bucket])
            for parameter, part in zip(bucket, parts, strict=True):
                part.copy_(parameter.grad.view(-1))
            buffer.div_(size)
            self._dist.all_reduce(buffer)
            for parameter, part in zip(bucket, parts, strict=True):
                parameter.grad.copy_(part.view(parameter.shape))


def steps_of(torch: Any, name: str, sizes: Sizes, rank: int,
             chosen: argparse.Namespace) -> dict[str, Callable[[], Any]]:  # fmt: skip
    """A step of training in each way, which returns its loss."""

    def step_of(way: str) -> Callable[[], Any]:
        training = MODELS[name](torch, sizes, rank)
        start_alike(torch, training.model)
        call, after = training.model, None
        if way == "DDP":
            call = torch.nn.parallel.DistributedDataParallel(
                training.model, bucket_cap_mb=chosen.bucket_megabytes,
                gradient_as_bucket_view=chosen.gradients_as_views,
            )  # fmt: skip
        elif way == "after":
            after = ReducedAfter(torch, training.model, chosen.bucket_megabytes)
        optimizer = training.optimizer(training.model.parameters())

        def step() -> Any:
            optimizer.zero_grad()
            loss = training.loss(call(training.inputs), training.targets)
            loss.backward()
            if after is not None:
                after.reduce()
            optimizer.step()
            return loss.detach()

        return step

    return {way: step_of(way) for way in WAYS}


def rank_of(library: str, rank: int, size: int, meeting: str, chosen: argparse.Namespace) -> None:
    """One process: prints seconds of a step and the last loss of each way as JSON."""
    torch: Any = importlib.import_module(library)
    dist: Any = importlib.import_module(f"{library}.distributed")
    torch.set_num_threads(chosen.threads)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    sizes = SMALL if chosen.small else SIZES
    steps = steps_of(torch, chosen.models[0], sizes, rank, chosen)
    losses = {way: [float(step()) for _ in range(WARM_UP)][-1] for way, step in steps.items()}
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(chosen.turns):
        for way, step in steps.items():
            dist.barrier()
            start = time.perf_counter()
            for _ in range(chosen.steps):
                step()
            dist.barrier()
            times[way].append((time.perf_counter() - start) / chosen.steps)
    dist.destroy_process_group()
    sys.stdout.write(json.dumps({"times": times, "losses": losses}))


@dataclass
class Row:
    """What was found out about a model in so many processes under a library; times in seconds."""

    model: str
    processes: int
    library: str
    plain: float
    ddp: float
    after: float
    samples_a_second: float
    overlap: float | None
    cost: float


def measured(library: str, name: str, size: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """One start of the processes: the slowest rank's shortest time of each way, and its losses."""
    words = [sys.executable, __file__, "--models", name, "--steps", str(chosen.steps),
             "--turns", str(chosen.turns), "--threads", str(chosen.threads),
             "--bucket-megabytes", str(chosen.bucket_megabytes)]  # fmt: skip
    words += ["--small"] * chosen.small + ["--gradients-as-views"] * chosen.gradients_as_views
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(chosen.threads)}
    with tempfile.TemporaryDirectory() as folder:
        children = [
            subprocess.Popen([*words, "--rank", library, str(rank), str(size), f"{folder}/meeting"],
                             stdout=subprocess.PIPE, text=True, env=environment)
            for rank in range(size)
        ]  # fmt: skip
        texts = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise SystemExit(f"{name} under {library} in {size} processes failed")
    found = [json.loads(text) for text in texts]
    times = {way: min(map(max, zip(*(each["times"][way] for each in found), strict=True)))
             for way in WAYS}  # fmt: skip
    return {"times": times, "losses": [each["losses"] for each in found]}


def check(losses: dict[str, list[dict[str, float]]]) -> None:
    """Raise AssertionError where libraries, or the two ways to average, train differently."""
    for ours, theirs in zip(losses["flambeau"], losses["torch"], strict=True):
        for way in WAYS:
            assert abs(ours[way] - theirs[way]) <= 1e-3 * abs(theirs[way]), (way, ours, theirs)
        assert abs(ours["DDP"] - ours["after"]) <= 1e-3 * abs(ours["DDP"]), ours


def row_of(name: str, size: int, library: str, times: dict[str, float], sizes: Sizes) -> Row:
    """Samples a second, overlap and cost from times."""
    plain, ddp, after = (times[way] for way in WAYS)
    reduction = after - plain
    return Row(
        model=name, processes=size, library=library, plain=plain, ddp=ddp, after=after,
        samples_a_second=size * getattr(sizes, name) / ddp,
        overlap=(after - ddp) / reduction if reduction > SEEN * plain else None,
        cost=ddp / plain - 1,
    )  # fmt: skip


def progress(text: str) -> None:
    """A line about what runs, on the screen alone."""
    print(text, file=sys.stderr, flush=True)


def compared(name: str, size: int, chosen: argparse.Namespace) -> list[Row]:
    """Both libraries in turns."""
    best: dict[str, dict[str, float]] = {}
    losses: dict[str, list[dict[str, float]]] = {}
    for turn in range(chosen.rounds):
        for library in LIBRARIES:
            progress(f"{name}, {size} processes, round {turn + 1} of {chosen.rounds}: {library}")
            found = measured(library, name, size, chosen)
            before = best.get(library, found["times"])
            best[library] = {way: min(before[way], found["times"][way]) for way in WAYS}
            losses[library] = found["losses"]
    check(losses)
    sizes = SMALL if chosen.small else SIZES
    return [row_of(name, size, library, best[library], sizes) for library in LIBRARIES]


def show(rows: Sequence[Row]) -> None:
    """A line of the table for each library."""
    ours, theirs = rows
    for row in rows:
        ratio = f"{ours.samples_a_second / theirs.samples_a_second:.2f}" if row is ours else ""
        overlap = "-" if row.overlap is None else f"{row.overlap:.0%}"
        milliseconds = [f"{seconds * 1e3:.2f}" for seconds in (row.plain, row.ddp, row.after)]
        cells = [row.model, row.processes, row.library, *milliseconds, overlap, f"{row.cost:+.1%}",
                 f"{row.samples_a_second:.0f}", ratio]  # fmt: skip
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def options() -> argparse.ArgumentParser:
    """What can be chosen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--processes", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=3, help="starts of each library, in turns")
    parser.add_argument("--turns", type=int, default=5, help="turns of the ways in a start")
    parser.add_argument("--steps", type=int, default=20, help="steps in a turn")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--bucket-megabytes", type=float, default=25)
    parser.add_argument("--gradients-as-views", action="store_true")
    parser.add_argument("--small", action="store_true", help="small models, to see that it works")
    parser.add_argument("--json", metavar="FILE", help="write what was found there, too")
    parser.add_argument("--rank", nargs=4, help=argparse.SUPPRESS)
    return parser


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    chosen = options().parse_args(words)
    if chosen.rank:
        library, rank, size, meeting = chosen.rank
        rank_of(library, int(rank), int(size), meeting, chosen)
        return
    print(f"{os.cpu_count()} cores; times in ms\n")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    rows: list[Row] = []
    for name in chosen.models:
        for size in chosen.processes:
            found = compared(name, size, chosen)
            show(found)
            rows += found
            if chosen.json:
                Path(chosen.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
