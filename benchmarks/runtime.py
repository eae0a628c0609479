"""What stands between Python and a kernel: calls, threads, compiling, loading, memory.

Usage: python benchmarks/runtime.py [calls] [memory] [compile] [load]

Needs no torch. Every figure is the best of many repeats.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau as torch
from flambeau._compiler.native import from_source

EMPTY = """
def nothing(x: pointer(f32), n: i64, task: i64, tasks: i64):
    pass
"""


def best(step: Callable[[], Any], count: int = 100, rounds: int = 30) -> float:
    """The least seconds per step over rounds of `count` steps."""
    least = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            step()
        least = min(least, (time.perf_counter() - start) / count)
    return least


def say(what: str, value: float, unit: str, aim: str = "") -> None:
    """One line of the table."""
    print(f"{what:<58} {value:10.2f} {unit:<4} {aim}")


def calls() -> None:
    """A kernel that does nothing: what the way to it costs."""
    from flambeau._runtime.launch import kernel

    run = kernel(from_source("nothing", EMPTY, {}))
    x = np.zeros(16, np.float32)
    alone = best(lambda: run(x, 16))
    say("call a kernel in this thread", 1e6 * alone, "us")
    for threads in sorted({2, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        together = best(lambda: run.parallel(threads, x, 16))  # noqa: B023
        say(f"hand it to {threads} threads: on top", 1e6 * (together - alone), "us", "aim 1-2")
    torch.set_num_threads(2)
    run.parallel(2, x, 16)
    time.sleep(0.05)
    start = time.process_time()
    time.sleep(0.5)
    say("processor time of idle threads", 200 * (time.process_time() - start), "%", "aim 0")


def memory() -> None:
    """Results into new memory, from the system and from the pool."""
    from flambeau._runtime import allocator

    system = allocator.get_handler()
    allocator.ready()
    pool = allocator.get_handler()
    for megabytes in (0.25, 1, 4, 16, 64):
        a = np.ones(int(megabytes * 2**18), np.float32)
        b = a.copy()
        for name, handler in (("system", system), ("pool", pool)):
            allocator.set_handler(handler)
            count = max(1, int(16 / megabytes))
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            took = best(lambda: np.add(a, b), count, 10)  # noqa: B023
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
            what = f"np.add, {megabytes} MB, memory from the {name}"
            say(what, 1e6 * took, "us", f"{faults / (10 * count):.0f} page faults")
    for size in (16, 100_000):
        for name, handler in (("system", system), ("pool", pool)):
            allocator.set_handler(handler)
            took = best(lambda: np.empty(size, np.uint8), 1000)  # noqa: B023
            say(f"np.empty({size}) and free, {name}", 1e9 * took, "ns")


def kernels() -> list[tuple[Any, dict[str, Any]]]:
    """The kernels behind some usual operators, as they are asked for."""
    from flambeau._runtime import engine

    asked: list[tuple[Any, dict[str, Any]]] = []
    original = engine.symbols

    def listen(native: Any, statics: dict[str, Any], checked: bool) -> Any:
        asked.append((native, dict(statics)))
        return original(native, statics, checked)

    engine.symbols = listen
    x = torch.rand(512, 512)
    for run in (lambda: x + x, lambda: x.exp(), lambda: torch.nn.functional.gelu(x),
                lambda: x.softmax(1), lambda: x.sum(0), lambda: x.sort(1), lambda: x @ x,
                lambda: x.bfloat16() + 1, lambda: torch.rand(100_000)):  # fmt: skip
        run()
    engine.symbols = original
    return asked


def compiling() -> None:
    """Stages of compiling: text, LLVM's passes (ours and -O2's), machine code."""
    from flambeau._runtime import engine, llvm

    print(f"{'kernel':<28}{'lower':>8}{'passes':>8}{'-O2':>8}{'emit':>8}{'link':>8}   ms")
    total = np.zeros(5)
    asked = kernels()
    for native, statics in asked:
        text = llvm.text_of(native, statics, False).text()
        own = None if native.vectorize else llvm.PASSES

        def passes(how: tuple[str, ...] | None, text: str = text) -> tuple[float, Any]:
            parsed = llvm.binding.parse_assembly(text)
            start = time.perf_counter()
            llvm.optimise(parsed, how)
            return time.perf_counter() - start, parsed

        lower = best(lambda: llvm.text_of(native, statics, False).text(), 1, 3)  # noqa: B023
        ours = min(passes(own)[0] for _ in range(3))
        full = min(passes(None)[0] for _ in range(3))
        parsed = passes(own)[1]
        emit = best(lambda: llvm.target().emit_object(parsed), 1, 3)  # noqa: B023
        code = llvm.target().emit_object(parsed)
        link = best(lambda: engine._link("benchmark", code, ("entry",)), 1, 3)  # noqa: B023
        row = 1e3 * np.array([lower, ours, full, emit, link])
        total += row
        print(f"{native.name[:27]:<28}" + "".join(f"{value:8.2f}" for value in row))
    print(f"{'all':<28}" + "".join(f"{value:8.2f}" for value in total))
    say("a kernel, without -O2, on average", (total.sum() - total[2]) / len(asked), "ms",
        "aim 40")  # fmt: skip


LOAD = """
import time
import numpy as np
import flambeau as torch
from flambeau._compiler.native import from_source
text = '''def add{0}(x: pointer(f32), y: pointer(f32), n: i64, W: static):
    for i in range(0, n, W):
        store(y + i, load(x + i, W) + {0}.0)
'''
start = time.perf_counter()
from flambeau._runtime import engine, launch
print(1e3 * (time.perf_counter() - start))
times = []
for number in range(20):
    native = from_source(f"add{number}", text.format(number), {})
    start = time.perf_counter()
    launch.kernel(native, W=8)
    times.append(1e3 * (time.perf_counter() - start))
print(times[0])
print(min(times[1:]))
"""


def loading() -> None:
    """A process without and with kernels on the disk."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):  # the first process compiles
            result = subprocess.run(
                [sys.executable, "-c", LOAD], check=True, capture_output=True, text=True,
                env={**os.environ, "FLAMBEAU_CACHE_DIR": folder},
            )  # fmt: skip
            begin, first, later = map(float, result.stdout.split())
        say("import LLVM and the launcher", begin, "ms")
        say("the first kernel from the disk, with the memory pool", first, "ms")
        say("each further kernel from the disk", later, "ms", "aim 1")


PARTS = {"calls": calls, "memory": memory, "compile": compiling, "load": loading}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        print(f"--- {name}")
        PARTS[name]()
