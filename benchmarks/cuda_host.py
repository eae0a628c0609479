"""What the host does for operators on a CUDA device, without one: launches return at once.

    python benchmarks/cuda_host.py [--only REGEX] [--steps] [--quick] [--profile] [--launches]
    python benchmarks/cuda_host.py --real [--only REGEX]     # on a GPU, beside PyTorch

The driver is the fake one, but nothing is computed: kernels, libraries and copies are functions of
C that return 0, called as the real ones are. So times mean something, and numbers do not.

Lines: microseconds of an operator (the least of many rounds, of the processor's time); with
`--steps` milliseconds of training steps of scripts/gpu_check/training.py. `--profile` says in which
functions a step's time goes, `--launches` which kernels it launches, and for which rows.
"""

from __future__ import annotations

import argparse
import collections
import cProfile
import ctypes
import gc
import pstats
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import flambeau
from flambeau._core.device import Cuda
from flambeau._runtime import engine
from flambeau._runtime.cuda import driver as drivers
from flambeau._runtime.cuda import fake, launch, trampoline
from flambeau._runtime.cuda.libraries import foreign

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts" / "gpu_check"
NOTHING = "define i32 @nothing() {\n  ret i32 0\n}\n"
INSTANT = ("cublasLtMatmul", "cudnnBackendExecute", "cudnnSetStream")
"""Functions of libraries that are not even emulated."""
LAUNCHED: collections.Counter[Any] = collections.Counter()


def nothing() -> int:
    """The address of a function of C that returns 0."""
    key = engine.key_of((), {}, NOTHING)
    return engine.loaded(key, ("nothing",), lambda: engine.assembled(NOTHING))["nothing"]


class NullDriver(fake.FakeDriver):
    """A driver that does nothing, at once."""

    def put(self, stream: int, run: Any, accesses: Any = ()) -> None:
        """Nothing."""

    def to_host(self, target: int, source: int, nbytes: int, stream: int,
                wait: bool = True) -> None:  # fmt: skip
        """Zeros."""
        ctypes.memset(target, 0, nbytes)

    def to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Nothing."""

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Nothing."""

    def capture_status(self, stream: int) -> int:
        """No graph is ever captured."""
        return drivers.NOT_CAPTURING


def null() -> None:
    """Put that driver, and functions that return 0, in the place of the emulated ones."""
    entry = nothing()
    fake.FakeDriver = NullDriver  # type: ignore[misc]
    drivers.play()
    Cuda.look()
    declared = foreign.Foreign._declared

    def instant(self: Any, source: Any, name: str, types: Any) -> Any:
        if name not in INSTANT:
            return declared(self, source, name, types)
        return ctypes.CFUNCTYPE(ctypes.c_int, *types)(entry)

    foreign.Foreign._declared = instant  # type: ignore[method-assign]

    def launching(self: Any, driver: Any) -> Any:
        names = [p.name for p in self.native.parameters if not p.static]
        call = trampoline.made(driver, entry, self.letters, 0, self.shape.threads)
        if not COUNTING:
            return call

        def counted(stream: int, blocks: int, *arguments: Any) -> None:
            LAUNCHED[described(self, names, blocks, arguments)] += 1
            call(stream, blocks, *arguments)

        return counted

    launch.Kernel._emulated = launching  # type: ignore[method-assign]


COUNTING = "--launches" in sys.argv


def described(kernel: Any, names: list[str], blocks: int, arguments: tuple[Any, ...]) -> str:
    """A launch in words: who asked for it, the kernel, what its arrays are."""
    arrays = [f"{a.dtype.name}{list(a.shape)}" for a in arguments if isinstance(a, np.ndarray)]
    frame, row = sys._getframe(2), ""
    while frame is not None and not row:
        op = frame.f_locals.get("op") or getattr(frame.f_locals.get("path"), "op", None)
        own = frame.f_locals.get("self")
        op = op or getattr(getattr(own, "path", None), "op", None)
        row = getattr(op, "full_name", "")
        frame = frame.f_back
    return f"{row or '?':28s} {kernel.native.name[:28]:28s} {blocks:8d}  {' '.join(arrays)}"


# ---- operators


def operators(torch: Any) -> dict[str, Any]:
    """Calls by name."""
    x = torch.randn(1024, device="cuda")
    y = torch.randn(1024, device="cuda")
    wide = torch.randn(64, 256, device="cuda")
    half = wide.to(torch.bfloat16)
    weight = torch.randn(256, 256, device="cuda")
    bias = torch.randn(256, device="cuda")
    learning = torch.randn(1024, device="cuda", requires_grad=True)
    functional = torch.nn.functional
    cuda = torch.device("cuda")
    event = torch.cuda.Event()
    return {
        "x + y": lambda: x + y,
        "torch.add(x, y)": lambda: torch.add(x, y),
        "x * 2": lambda: x * 2,
        "x.add_(y)": lambda: x.add_(y),
        "x.mul_(0.9)": lambda: x.mul_(0.9),
        "learning + y": lambda: learning + y,
        "relu": lambda: torch.relu(x),
        "gelu": lambda: functional.gelu(wide),
        "empty": lambda: torch.empty(1024, device=cuda),
        "empty_like": lambda: torch.empty_like(x),
        "zeros": lambda: torch.zeros(1024, device=cuda),
        "softmax": lambda: torch.softmax(wide, -1),
        "layer_norm": lambda: functional.layer_norm(wide, (256,), bias, bias),
        "sum": lambda: wide.sum(),
        "sum dim": lambda: wide.sum(-1),
        "matmul": lambda: wide @ weight,
        "linear": lambda: functional.linear(wide, weight, bias),
        "x[1]": lambda: x[1],
        "x[2:8]": lambda: x[2:8],
        "view": lambda: wide.view(256, 64),
        "transpose": lambda: wide.transpose(0, 1),
        "reshape": lambda: wide.reshape(-1),
        "copy_": lambda: x.copy_(y),
        "clone": lambda: x.clone(),
        "to bfloat16": lambda: wide.to(torch.bfloat16),
        "half + half": lambda: half + half,
        "zero_": lambda: x.zero_(),
        "x.device": lambda: x.device,
        "event.record": event.record,
        "synchronize": torch.cuda.synchronize,
    }


def least(call: Any, seconds: float, between: Any = int) -> float:
    """Microseconds of a call: the least average of many short rounds."""
    for _ in range(20):
        call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        between()
        start = time.thread_time()
        for _ in range(50):
            call()
        best = min(best, (time.thread_time() - start) / 50)
    return best * 1e6


# ---- steps


def steps() -> dict[str, Any]:
    """Makers of steps by name."""
    sys.path.insert(0, str(SCRIPTS))
    import training

    found = {
        name: (lambda small, name=name: training.stepper(flambeau, *training.CASES[name], small))
        for name in training.CASES
        if "graph" not in name
    }
    for name in ("SGD", "Adam", "AdamW"):
        found[f"optimizer {name}"] = lambda small, name=name: optimizer_step(name)
    return found


def optimizer_step(name: str) -> Any:
    """A step of an optimizer over 60 parameters."""
    given = [flambeau.nn.Parameter(flambeau.empty(64, 64, device="cuda")) for _ in range(60)]
    for parameter in given:
        parameter.grad = flambeau.empty_like(parameter)
    return getattr(flambeau.optim, name)(given, lr=1e-3).step


def measure_step(name: str, make: Any, options: argparse.Namespace) -> None:
    """Print what the host needs for a step."""
    small = options.quick or ("12x768" in name and not options.launches)
    step = make(small)
    for _ in range(16):
        step()
    gc.collect()
    if options.launches:
        LAUNCHED.clear()
        step()
        print(f"\n{name}: {sum(LAUNCHED.values())} launches")
        for line, count in LAUNCHED.most_common():
            print(f"{count:5d} {line}")
        return
    if options.profile:
        profile = cProfile.Profile(time.thread_time)
        profile.enable()
        for _ in range(options.rounds):
            step()
        profile.disable()
        print(f"\n{name}")
        pstats.Stats(profile).sort_stats(options.sort).print_stats(70)
        return
    best, end = float("inf"), time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        start = time.thread_time()
        step()
        best = min(best, time.thread_time() - start)
    print(f"{name:28s} {best * 1e3:9.3f} ms", flush=True)


def main() -> None:
    """Print the lines that were asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--launches", action="store_true")
    parser.add_argument("--sort", default="tottime")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    if options.real:
        beside_torch(options)
        return
    null()
    if options.steps or options.launches:
        for name, make in steps().items():
            if re.search(options.only, name):
                measure_step(name, make, options)
        return
    for name, call in operators(flambeau).items():
        if re.search(options.only, name):
            print(f"{name:20s} {least(call, options.seconds):8.2f} us", flush=True)


def beside_torch(options: argparse.Namespace) -> None:
    """The host's time of operators on a GPU, here and under PyTorch."""
    import torch

    ours, theirs = operators(flambeau), operators(torch)
    for name in ours:
        if re.search(options.only, name):
            mine = least(ours[name], options.seconds, flambeau.cuda.synchronize)
            other = least(theirs[name], options.seconds, torch.cuda.synchronize)
            print(f"{name:20s} {mine:8.2f} us, PyTorch {other:8.2f}", flush=True)


if __name__ == "__main__":
    main()
