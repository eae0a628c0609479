"""What calls cost, beside PyTorch."""

from __future__ import annotations

import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import flambeau
from flambeau._runtime.cuda.memory import Block
from scripts.gpu_check.driver.beside_pytorch import torch_with_cuda
from scripts.gpu_check.driver.kernels import K


def micros(call: Any, many: int = 200, rounds: int = 15) -> float:
    """Microseconds of the host for a call: the median over rounds."""
    for _ in range(50):
        call()
    took = []
    for _ in range(rounds):
        K.driver.synchronize()
        start = time.perf_counter()
        for _ in range(many):
            call()
        took.append((time.perf_counter() - start) / many * 1e6)
    K.driver.synchronize()
    return round(statistics.median(took), 3)


def costs() -> dict[str, Any]:
    d = K.driver
    stream = d.new_stream()
    event = d.new_event()
    block = Block(4096, 0)
    at = struct.pack("Q", block.address)
    four = np.zeros(1, np.uint32)
    found = {
        "take + give 4 kB": micros(lambda: Block(4000, 0), 1000),
        "take + give 5 MB": micros(lambda: Block(5 << 20, 0), 1000),
        "take + give 31.9 MB (odd)": micros(lambda: Block(33_450_000, 0), 1000),
        "launch of nothing": micros(
            lambda: d.launch(K.nothing, (1,), 32, 0, stream, at)),
        "record an event": micros(lambda: d.record(event, stream)),
        "wait for an event": micros(lambda: d.wait_event(stream, event)),
        "fill 4 kB": micros(lambda: d.fill(block.address, 0, 4, 1024, stream)),
        "4 bytes to the device": micros(
            lambda: d.to_device(block.address, four.ctypes.data, 4, stream)),
        "4 bytes to the host": micros(
            lambda: d.to_host(four.ctypes.data, block.address, 4, stream), 50),
        "current_stream()": micros(flambeau.cuda.current_stream),
        "memory_allocated()": micros(flambeau.cuda.memory_allocated, 50),
        "use(0)": micros(lambda: d.use(0), 1000),
    }  # fmt: skip
    d.free_stream(stream)
    d.free_event(event)
    return found


def graph_costs() -> dict[str, Any]:
    d = K.driver
    stream = d.new_stream()
    x = Block(4096, 0)

    def hundred() -> None:
        for _ in range(100):
            K.go("add", x.address, 32, 1, stream=stream)

    start = time.perf_counter()
    d.begin_capture(stream)
    hundred()
    graph = d.end_capture(stream)
    captured = time.perf_counter()
    executable = d.instantiate(graph)
    made = time.perf_counter()
    first, last = d.new_event(True), d.new_event(True)
    found: dict[str, Any] = {
        "capture of 100 launches": round((captured - start) * 1e6),
        "instantiate": round((made - captured) * 1e6),
        "host, a replay": micros(lambda: d.launch_graph(executable, stream), 10),
        "host, 100 launches": micros(hundred, 2),
    }
    for name, call in (("GPU, a replay", lambda: d.launch_graph(executable, stream)),
                       ("GPU, 100 launches", hundred)):  # fmt: skip
        took = []
        for _ in range(20):
            d.record(first, stream)
            call()
            d.record(last, stream)
            d.synchronize_event(last)
            took.append(d.elapsed(first, last) * 1e3)
        found[name] = round(statistics.median(took), 1)
    d.free_executable(executable)
    d.free_graph(graph)
    d.free_stream(stream)
    return found


def costs_of_pytorch() -> dict[str, Any]:
    torch = torch_with_cuda()
    if torch is None:
        return {"left out": "no PyTorch with CUDA here"}
    stream = torch.cuda.Stream()
    event = torch.cuda.Event()
    x = torch.zeros(1024, device="cuda")
    found = {
        "take + give 4 kB (torch.empty)": micros(lambda: torch.empty(1000, device="cuda"), 1000),
        "fill 4 kB (zero_)": micros(x.zero_),
        "record an event": micros(lambda: event.record(stream)),
        "wait for an event": micros(lambda: stream.wait_event(event)),
        "current_stream()": micros(torch.cuda.current_stream),
        "memory_allocated()": micros(torch.cuda.memory_allocated, 50),
        "4 bytes to the host (item)": micros(x[0].item, 50),
    }
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(100):
            x.add_(1)
    found["host, a replay"] = micros(graph.replay, 10)
    return found


def costs_of_tensors() -> dict[str, Any]:
    cuda = flambeau.cuda
    stream, event = cuda.Stream(), cuda.Event()
    return {
        "torch.empty 4 kB": micros(lambda: flambeau.empty(1000, device="cuda"), 500),
        "event.record(stream)": micros(lambda: event.record(stream)),
        "stream.wait_event(event)": micros(lambda: stream.wait_event(event)),
    }


def start_up() -> dict[str, Any]:
    """Seconds of a process from its beginning to a first result on the GPU."""
    code = "import flambeau as torch; print((torch.ones(4, device='cuda') + 1).tolist())"
    took = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              cwd=Path(__file__).parents[3], check=False)  # fmt: skip
        took.append(round(time.perf_counter() - start, 2))
        assert done.stdout.strip() == "[2.0, 2.0, 2.0, 2.0]", done.stderr[-300:]
    return {"seconds": took}
