"""The driver's functions: copies, pinned memory, launches, streams, events, graphs."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import flambeau
from flambeau._runtime.cuda import pinned
from flambeau._runtime.cuda.memory import running
from scripts.gpu_check.driver.kernels import K, Kernels, Loaded, taken
from scripts.gpu_check.driver.results import raised, same

MIB = 1 << 20


def devices() -> dict[str, Any]:
    d = running(0)
    Loaded.kernels = Kernels()
    free, total = d.memory_info()
    assert 0 < free <= total == d.total_memory(0) or abs(total - d.total_memory(0)) < total // 20
    assert len(d.uuid(0)) == 16 and d.device_count() >= 1
    capability = (d.attribute(0, 75), d.attribute(0, 76))
    properties = flambeau.cuda.get_device_properties(0)
    same((properties.major, properties.minor), capability)
    return {"name": d.device_name(0), "capability": capability, "version": d.version(),
            "multiprocessors": d.attribute(0, 16), "fake": d.fake,
            "repr": repr(properties)}  # fmt: skip


def copies() -> None:
    d = K.driver
    numbers = np.arange(1 << 18, dtype=np.uint32)
    x, y = d.allocate(numbers.nbytes), d.allocate(numbers.nbytes)
    d.to_device(x, numbers.ctypes.data, numbers.nbytes, 0)
    d.copy(y, x, numbers.nbytes, 0)
    same(taken(y, numbers.size), numbers, "copy")
    for width, value in ((1, 0xAB), (2, 0xABCD), (4, 0xDEADBEEF)):
        d.fill(y, value, width, 1000 // width, 0)
        expected = np.frombuffer(value.to_bytes(width, "little") * (1000 // width), np.uint32)
        same(taken(y, 250), expected, f"fill {width}")
        same(taken(y + 1000, 10), numbers[250:260], "behind what was filled")
    d.free(x)
    d.free(y)


def pinned_memory() -> None:
    d = K.driver
    stream = d.new_stream()
    host = d.allocate_host(1 << 20)
    view = np.frombuffer((ctypes.c_uint32 * (1 << 18)).from_address(host), np.uint32)
    x = d.allocate(1 << 20)
    view[:] = np.arange(1 << 18)
    d.to_device(x, host, 1 << 20, stream)
    K.go("add", x, 1 << 18, 5, blocks=1 << 10, threads=256, stream=stream)
    d.synchronize_stream(stream)
    view[:] = 0
    d.to_host(host, x, 1 << 20, stream, False)
    d.synchronize_stream(stream)
    same(view, np.arange(1 << 18) + 5, "pinned")
    d.free_host(host)
    d.free(x)
    d.free_stream(stream)
    block = pinned.HostBlock(1000)
    start = block.address
    del block
    same(pinned.HostBlock(900).address, start, "pinned memory is reused")


def kernels() -> dict[str, Any]:
    d = K.driver
    x = d.allocate(4096)
    d.fill(x, 0, 4, 1024, 0)
    for value in range(1, 11):
        K.go("add", x, 1000, value, blocks=4, threads=256)
    same(taken(x, 1024), [55] * 1000 + [0] * 24, "add")
    for place in (0, 40_000, 100_000, 200_000):
        K.go("far", x, place, shared=place + 16)
        same(taken(x, 1), [place], "shared memory")
    found: dict[str, Any] = {}
    if not d.fake:
        raised((200, 218), lambda: d.load_module(b"nonsense\0"))
        raised(500, lambda: d.function(K.module, "missing"))
    raised(1, lambda: d.free(x + 512)) if d.fake else None
    d.free(x)
    return found


def streams_and_events() -> dict[str, Any]:
    d = K.driver
    first, second = d.new_stream(0), d.new_stream(-1)
    x = d.allocate(4096)
    d.fill(x, 0, 4, 1024, first)
    start, end, plain = d.new_event(True), d.new_event(True), d.new_event()
    d.record(start, first)
    K.go("wait", 5_000_000, stream=first)
    K.go("add", x, 1024, 7, blocks=4, threads=256, stream=first)
    d.record(end, first)
    busy = not d.stream_done(first) and not d.event_done(end)
    d.wait_event(second, end)
    K.go("add", x, 1024, 1, blocks=4, threads=256, stream=second)
    d.record(plain, second)
    d.synchronize_event(plain)
    same(d.event_done(end) and d.stream_done(second), True, "done")
    same(taken(x, 1024), [8] * 1024, "order over streams")
    took = d.elapsed(start, end)
    assert 4.9 < took < 9, took
    if not d.fake:
        assert busy, "the host waited for the launch"
        raised(400, lambda: d.elapsed(start, plain))
    for event in (start, end, plain):
        d.free_event(event)
    for stream in (first, second):
        d.free_stream(stream)
    d.free(x)
    d.synchronize()
    return {"5 ms of waiting measured as ms": round(took, 3)}


def graphs() -> dict[str, Any]:
    d = K.driver
    main, side = d.new_stream(), d.new_stream()
    x, y = d.allocate(4096), d.allocate(4096)
    d.fill(x, 0, 4, 1024, main)
    d.fill(y, 0, 4, 1024, main)
    d.synchronize_stream(main)
    fork, join = d.new_event(), d.new_event()
    d.begin_capture(main)
    same(d.capture_status(main), 1)
    K.go("add", x, 1024, 1, blocks=4, threads=256, stream=main)
    d.record(fork, main)
    d.wait_event(side, fork)
    K.go("add", y, 1024, 10, blocks=4, threads=256, stream=side)
    K.go("add", x, 1024, 2, blocks=4, threads=256, stream=main)
    inside = d.allocate(MIB)  # taking memory is allowed meanwhile
    d.record(join, side)
    d.wait_event(main, join)
    graph = d.end_capture(main)
    same(d.capture_status(main), 0)
    same(taken(x, 1024), [0] * 1024, "nothing was done")
    executable = d.instantiate(graph)
    d.free_graph(graph)
    for _ in range(5):
        d.launch_graph(executable, main)
    d.synchronize_stream(main)
    same(taken(x, 1024), [15] * 1024, "replays")
    same(taken(y, 1024), [50] * 1024, "replays")
    d.free_executable(executable)
    d.begin_capture(main)
    raised(900, lambda: d.synchronize_stream(main))
    same(d.capture_status(main), 2)
    raised(901, lambda: d.end_capture(main))
    d.begin_capture(main)
    try:
        d.to_device(x, np.zeros(4, np.uint32).ctypes.data, 16, main)
        raise AssertionError("a copy from pageable memory was captured")
    except RuntimeError as error:
        assert "unless the CPU tensor is pinned" in str(error), error
    d.free_graph(d.end_capture(main))
    for address in (x, y, inside):
        d.free(address)
    for event in (fork, join):
        d.free_event(event)
    for stream in (main, side):
        d.free_stream(stream)
    return {}
