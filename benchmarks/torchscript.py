"""Scripted and traced programs: flambeau beside torch.jit, and loops beside their eager forms.

Usage: python benchmarks/torchscript.py [patterns of case names] [--rounds N] [--threads N]

Each side runs in a process of its own, in alternating rounds, with two threads; both must compute
the same. `torch.jit` is given its warm-up runs; models are frozen where the table says so. The
ratio is torch's time over flambeau's: above 1, flambeau is faster. The last two tables compare
flambeau with itself: a scripted loop with the eager loop and with the form vectorised by hand, and
the first call of a model in a new process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import engine
import scripted_programs as programs
from drawing import Step, drawn
from harness import show

AIMS = {"chain": 2.0, "LSTM": 2.0, "cell": 2.0, "ResNet": 1.0}
HERE = Path(__file__).parent


torch: Any = None
"""The library that is timed in this process."""


def use(library: Any) -> None:
    """Time a library."""
    globals()["torch"] = programs.torch = library


# ---- cases


def backward_of(function: Callable[..., Any], *tensors: Any) -> Step:
    """A step of training: the result, and gradients of all arguments."""
    inputs = [tensor.requires_grad_() for tensor in tensors]
    slope = drawn(torch, *function(*inputs).shape, seed=9)

    def step() -> Any:
        return torch.autograd.grad(function(*inputs), inputs, slope)[0]

    return step


def chain_case(rows: int, train: bool) -> Step:
    """The chain on [rows, 1024]."""
    scripted = torch.jit.script(programs.chain)
    tensors = [drawn(torch, rows, 1024, seed=1), drawn(torch, rows, 1024, seed=2),
               drawn(torch, 1024, seed=3), drawn(torch, 1024, seed=4)]  # fmt: skip
    return backward_of(scripted, *tensors) if train else lambda: scripted(*tensors)


def loop_case(function: Callable[..., Any], batch: int, units: int, train: bool) -> Step:
    """100 steps of a recurrent cell."""
    scripted = torch.jit.script(function)
    sizes = [(100, batch, units), (batch, units), (batch, units), (4 * units, units),
             (4 * units, units)]  # fmt: skip
    sizes += [(4 * units,), (4 * units,)] if function is programs.lstm else [(units,)]
    tensors = [drawn(torch, *size, seed=k) * (0.1 if k > 2 else 1.0)
               for k, size in enumerate(sizes)]  # fmt: skip
    return backward_of(scripted, *tensors) if train else lambda: scripted(*tensors)


def network() -> tuple[Any, Any]:
    """ResNet-18 and an image."""
    import models

    return models.resnet18(torch), drawn(torch, 1, 3, 224, 224, seed=5)


def traced_case() -> Step:
    """ResNet-18, traced and frozen, without gradients."""
    module, image = network()
    frozen = torch.jit.freeze(torch.jit.trace(module, image))

    def step() -> Any:
        with torch.no_grad():
            return frozen(image)

    return step


CASES: dict[str, Callable[[], Step]] = {
    "chain, 64x1024": lambda: chain_case(64, False),
    "chain, 64x1024, training": lambda: chain_case(64, True),
    "chain, 512x1024": lambda: chain_case(512, False),
    "chain, 512x1024, training": lambda: chain_case(512, True),
    "LSTM, 8x64": lambda: loop_case(programs.lstm, 8, 64, False),
    "LSTM, 8x64, training": lambda: loop_case(programs.lstm, 8, 64, True),
    "LSTM, 16x128": lambda: loop_case(programs.lstm, 16, 128, False),
    "LSTM, 16x128, training": lambda: loop_case(programs.lstm, 16, 128, True),
    "peephole LSTM, 16x128": lambda: loop_case(programs.peephole, 16, 128, False),
    "peephole LSTM, 16x128, training": lambda: loop_case(programs.peephole, 16, 128, True),
    "gated cell, 16x128": lambda: loop_case(programs.gated, 16, 128, False),
    "gated cell, 16x128, training": lambda: loop_case(programs.gated, 16, 128, True),
    "minimal GRU cell, 16x128": lambda: loop_case(programs.minimal_gru, 16, 128, False),
    "minimal GRU cell, 16x128, training": lambda: loop_case(programs.minimal_gru, 16, 128, True),
    "ResNet-18, traced, frozen": traced_case,
}


def serve(package: str, threads: int) -> None:
    """As `engine.serve`, for the cases here."""
    import importlib
    import types

    use(importlib.import_module(package))
    torch.set_num_threads(threads)
    group = types.SimpleNamespace(GROUPS={"torchscript": lambda _: CASES})
    sys.modules["workloads"] = group  # type: ignore[assignment]
    engine.serve(package)


class Side(engine.Side):
    """A process that serves one library."""

    def __init__(self, package: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", package, "--threads", str(threads)], text=True,
            cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ),
        )  # fmt: skip


def table(options: argparse.Namespace) -> None:
    """Everything that both libraries compute."""
    wanted = [name for name in CASES
              if not options.words or any(re.search(w, name) for w in options.words)]  # fmt: skip
    if not wanted:
        return
    print("| case | torch.jit | flambeau | torch / flambeau |\n|---|---|---|---|")
    sides = [Side("torch", options.threads), Side("flambeau", options.threads)]
    for name in wanted:
        found = engine.measured(sides, "torchscript", name, options.rounds)
        aim = next(aim for word, aim in AIMS.items() if word in name)
        theirs, ours = found["times"]
        mark = "" if found["ratio"] >= aim else f" (missed: {aim})"
        wrong = "" if found["agree"] else " **results differ**"
        print(f"| {name}{wrong} | {show(theirs)} | {show(ours)} | {found['ratio']:.2f}{mark} |",
              flush=True)  # fmt: skip
    for side in sides:
        side.close()


# ---- flambeau beside itself


def fastest(step: Callable[[], Any], rounds: int) -> float:
    """Seconds of the fastest of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


def gather() -> None:
    """`batch_gather`: the eager loop, the scripted loop, and the form without a loop."""
    import flambeau

    use(flambeau)
    scripted = torch.jit.script(programs.batch_gather)
    tensor, indices = torch.rand(1000, 10), torch.randint(0, 10, (1000, 3))
    for _ in range(5):
        assert torch.equal(scripted(tensor, indices), programs.vectorised_gather(tensor, indices))
    eager = fastest(lambda: programs.batch_gather(tensor, indices), 7)
    loop = fastest(lambda: scripted(tensor, indices), 200)
    flat = fastest(lambda: programs.vectorised_gather(tensor, indices), 200)
    print("\n| batch_gather, 1000x10, 3 indices | time | |\n|---|---|---|")
    print(f"| eager loop | {show(eager)} | |")
    mark = "" if eager / loop >= 50 else " (missed: 50)"
    print(f"| scripted loop | {show(loop)} | {eager / loop:.0f}x faster{mark} |")
    mark = "" if loop / flat <= 2 else " (missed: 2)"
    print(f"| without a loop | {show(flat)} | scripted takes {loop / flat:.2f} of it{mark} |")


FIRST = """
import sys, time
sys.path.insert(0, {here!r})
import flambeau as torch, torchscript
torchscript.use(torch)
torch.set_num_threads({threads})
if {save}:
    module, image = torchscript.network()
    torch.jit.save(torch.jit.freeze(torch.jit.trace(module, image)), {path!r})
image = torchscript.drawn(torch, 1, 3, 224, 224, seed=5)
loaded = torch.jit.load({path!r})
times = []
with torch.no_grad():
    for _ in range(3):
        start = time.perf_counter()
        loaded(image)
        times.append(time.perf_counter() - start)
print(times[0], min(times[1:]))
"""


def first_call(threads: int) -> None:
    """ResNet-18 from an archive in a new process: the first call. Kernels and Python's bytecode are
    on the disk, as they are where the package is installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "resnet18.pt")
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for save in (True, False, False):
            text = FIRST.format(here=str(HERE), threads=threads, save=save, path=path)
            done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                                  check=True, cwd=HERE, env=environment)  # fmt: skip
    first, later = map(float, done.stdout.split())
    mark = "" if first <= 0.3 else " (missed: 300 ms)"
    print(f"\nResNet-18, first call in a new process: {show(first)}{mark}, later {show(later)}")


def main() -> None:
    """All cases, or those with the words of the command line in their names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="regular expressions that choose")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads)
        return
    print("python benchmarks/torchscript.py", json.dumps(sys.argv[1:]), flush=True)
    table(options)
    if not options.words or "gather" in options.words:
        gather()
    if not options.words or "first" in options.words:
        first_call(options.threads)


if __name__ == "__main__":
    main()
