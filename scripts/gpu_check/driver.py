"""The driver, the allocator, streams, events and graphs on a GPU; PyTorch beside them.

    python scripts/gpu_check/driver.py --out FILE.json

Without a GPU the fake driver is asked, with kernels in Python; what needs PyTorch's CUDA is left
out then. Checks come first, costs after them; every item stands in the file as soon as it is done.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import io
import json
import os
import random
import statistics
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))


def has_gpu() -> bool:
    try:
        return not ctypes.CDLL("libcuda.so.1").cuInit(0)
    except OSError:
        return False


if not has_gpu():
    os.environ.setdefault("FLAMBEAU_EMULATE_CUDA", "1")

import flambeau  # noqa: E402
from flambeau._runtime.cuda import errors, memory, pinned, pools  # noqa: E402
from flambeau._runtime.cuda.memory import Block, Current, running  # noqa: E402

PTX = """.version 7.0
.target sm_52
.address_size 64

.visible .entry nothing(.param .u64 x) {
    ret;
}

.visible .entry add(.param .u64 x, .param .u64 n, .param .u64 value) {
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [n];
    ld.param.u32 %r5, [value];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %d3, %r4;
    setp.ge.u64 %p, %d3, %d2;
    @%p bra DONE;
    cvta.to.global.u64 %d1, %d1;
    shl.b64 %d4, %d3, 2;
    add.s64 %d5, %d1, %d4;
    ld.global.u32 %r6, [%d5];
    add.u32 %r6, %r6, %r5;
    st.global.u32 [%d5], %r6;
DONE:
    ret;
}

.visible .entry wait(.param .u64 nanoseconds) {
    .reg .pred %p;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [nanoseconds];
    mov.u64 %d2, %globaltimer;
AGAIN:
    mov.u64 %d3, %globaltimer;
    sub.u64 %d4, %d3, %d2;
    setp.lt.u64 %p, %d4, %d1;
    @%p bra AGAIN;
    ret;
}

.extern .shared .align 16 .b8 room[];

.visible .entry far(.param .u64 x, .param .u64 place) {
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [x];
    ld.param.u32 %r1, [place];
    mov.u32 %r2, room;
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %r1;
    bar.sync 0;
    ld.shared.u32 %r3, [%r2];
    cvta.to.global.u64 %d1, %d1;
    st.global.u32 [%d1], %r3;
    ret;
}
"""
NAMES = ("nothing", "add", "wait", "far")
MIB = 1 << 20
RESULTS: dict[str, Any] = {}


class Places:
    """Where the results go."""

    out = Path()


def write() -> None:
    if Places.out.name:
        Places.out.write_text(json.dumps(RESULTS, indent=1), encoding="utf-8")


def item(function: Any) -> Any:
    """Run an item, and note what came of it."""
    name, start = function.__name__, time.perf_counter()
    try:
        found = function()
        RESULTS[name] = {"ok": True, **(found or {})}
    except BaseException as error:  # so that one failure does not stop the rest
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error}".split("\n")[0][:300]
        RESULTS[name] = {"ok": False, "error": text, "where": f"{last.name}:{last.lineno}"}
    RESULTS[name]["seconds"] = round(time.perf_counter() - start, 2)
    print(f"{name:34s} {RESULTS[name]}", flush=True)
    write()


def same(left: Any, right: Any, what: str = "") -> None:
    if not np.array_equal(np.asarray(left), np.asarray(right)):
        raise AssertionError(f"{what}: {str(left)[:80]} is not {str(right)[:80]}")


def raised(codes: Any, call: Any) -> None:
    """The driver's error of a number, or of one of several, is raised."""
    expected = codes if isinstance(codes, tuple) else (codes,)
    try:
        call()
    except errors.CudaError as error:
        assert error.error_code in expected, f"{error.error_code}: {error}"
        return
    raise AssertionError(f"no error {codes}")


class Kernels:
    """The kernels above; on the fake driver what they do, in Python."""

    def __init__(self) -> None:
        self.driver = running(0)
        if self.driver.fake:
            self.module = 0
            for name, writes in zip(NAMES, ((), (0,), (), (0,)), strict=True):
                setattr(self, name, self.driver.register(getattr(self, f"_{name}"), writes))
        else:
            self.module = self.driver.load_module(PTX.encode() + b"\0")
            for name in NAMES:
                setattr(self, name, self.driver.function(self.module, name))

    def _nothing(self, grid: Any, threads: int, shared: int, packed: bytes) -> None:
        pass

    def _add(self, grid: Any, threads: int, shared: int, packed: bytes) -> None:
        x, n, value = struct.unpack("QQQ", packed)
        n = min(n, grid[0] * threads)
        cells = (ctypes.c_uint32 * n).from_address(self.driver.host(x))
        np.frombuffer(cells, np.uint32)[:] += np.uint32(value)

    def _wait(self, grid: Any, threads: int, shared: int, packed: bytes) -> None:
        time.sleep(struct.unpack("Q", packed)[0] / 1e9)

    def _far(self, grid: Any, threads: int, shared: int, packed: bytes) -> None:
        x, place = struct.unpack("QQ", packed)
        ctypes.c_uint32.from_address(self.driver.host(x)).value = place

    def go(self, name: str, *arguments: int, blocks: int = 1, threads: int = 32,
           shared: int = 0, stream: int = 0) -> None:  # fmt: skip
        packed = struct.pack(f"{len(arguments)}Q", *arguments)
        self.driver.launch(getattr(self, name), (blocks,), threads, shared, stream, packed)


class Loaded:
    """The kernels, once they are loaded."""

    kernels: Any = None


class Lazy:
    """Stands for them before."""

    def __getattr__(self, name: str) -> Any:
        return getattr(Loaded.kernels, name)


K: Any = Lazy()


def taken(address: int, count: int, stream: int = 0) -> np.ndarray:
    """Numbers of 32 bits of device memory."""
    found = np.zeros(count, np.uint32)
    K.driver.to_host(found.ctypes.data, address, found.nbytes, stream)
    return found


# ---- the driver's functions


def devices() -> dict[str, Any]:
    d = running(0)
    Loaded.kernels = Kernels()
    least, greatest = d.stream_priorities()
    same((least, greatest <= -1), (0, True))
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
    own = np.zeros(1 << 18, np.uint32)
    d.register_host(own.ctypes.data, own.nbytes)
    d.to_host(own.ctypes.data, x, 1 << 20, stream, False)
    d.synchronize_stream(stream)
    d.unregister_host(own.ctypes.data)
    same(own, np.arange(1 << 18) + 5, "registered")
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
        found["registers of add"] = d.function_attribute(K.add, 4)
        raised((200, 218), lambda: d.load_module(b"nonsense\0"))
        raised(500, lambda: d.function(K.module, "missing"))
        other = d.load_module(PTX.encode() + b"\0")
        d.unload_module(other)
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
    same(d.graph_nodes(graph), 3, "nodes")
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


# ---- the allocator


def allocator_under_random_programs() -> dict[str, Any]:
    """Every block is filled with a number of its own, in its stream, and still has it later."""
    d = K.driver
    chance = random.Random(5)
    streams = [0, d.new_stream(), d.new_stream()]
    held: list[tuple[Block, int, int]] = []
    looked = 0
    for step in range(3000):
        if held and chance.random() < 0.5:
            block, stream, number = held.pop(chance.randrange(len(held)))
            if chance.random() < 0.2:
                count = min(block.nbytes // 4, 4096)
                same(taken(block.address, count, stream), [number] * count, "a block's numbers")
                looked += 1
            if chance.random() < 0.2:
                other = chance.choice(streams)
                done = memory.recorded(d, stream)
                d.wait_event(other, done)
                K.go("add", block.address, block.nbytes // 4, 1, threads=256,
                     blocks=min(block.nbytes // 1024 + 1, 1 << 16), stream=other)  # fmt: skip
                block.record_stream(other)
                d.free_event(done)
            del block
        else:
            stream = chance.choice(streams)
            Current.set_stream(0, stream)
            block = Block(int(2 ** chance.uniform(2, 24)) // 4 * 4, 0)
            d.fill(block.address, step, 4, block.nbytes // 4, stream)
            held.append((block, stream, step))
            del block
        if step % 500 == 499:
            memory.empty_cache()
    spans = sorted((block.address, block.address + block.nbytes) for block, _, _ in held)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False)), "blocks overlap"
    held.clear()
    Current.set_stream(0, 0)
    d.synchronize()
    memory.empty_cache()
    counts = memory.allocator(0).statistics
    same(counts.value("allocated_bytes", "current"), 0)
    same(counts.value("active_bytes", "current"), 0)
    same(counts.value("reserved_bytes", "current"), 0)
    return {"blocks looked at": looked, "segments": counts.events["num_device_alloc"]}


def out_of_memory() -> dict[str, Any]:
    cuda = flambeau.cuda
    texts = []
    for nbytes, fraction in ((1 << 44, 1.0), (1 << 31, 0.01)):
        cuda.set_per_process_memory_fraction(fraction)
        try:
            Block(nbytes, 0)
            raise AssertionError("there was memory enough")
        except flambeau.OutOfMemoryError as error:
            texts.append(str(error))
    cuda.set_per_process_memory_fraction(1.0)
    assert texts[0].startswith("CUDA out of memory. Tried to allocate 16384.00 GiB. GPU 0 has a")
    assert "MiB allowed; Of the allocated memory" in texts[1]
    block = Block(1 << 20, 0)
    assert block.address
    return {"text": texts[1][:200]}


def private_pools() -> None:
    pool = pools.new()
    pools.retain(0, pool)
    plain = Block(4000, 0).address
    with pools.routed(0, pool):
        inside = Block(4000, 0)
    assert inside.address != plain
    pools.release(0, pool)
    del inside
    memory.empty_cache()
    same(len(memory.allocator(0).segments), 0)


# ---- the same programs with PyTorch

SNIPPETS = {
    "rounding": """
b = torch.cuda.memory_allocated()
for n in (0, 1, 128, 129, 1000, 262144, 262145, 2621440, 2621441):
    x = torch.empty(n, device='cuda')
    print(n, torch.cuda.memory_allocated() - b, x.untyped_storage().nbytes(), x.data_ptr() % 512)
    del x
""",
    "segments": """
torch.cuda.empty_cache(); r = torch.cuda.memory_reserved()
for mb in (0.5, 1, 1.5, 9, 10, 11, 30, 100):
    x = torch.empty(int(mb * 2**18), device='cuda')
    print(mb, (torch.cuda.memory_reserved() - r) / 2**20)
    del x; torch.cuda.empty_cache()
""",
    "reuse": """
torch.cuda.empty_cache(); a = torch.empty(1000, device='cuda'); p = a.data_ptr(); del a
b = torch.empty(900, device='cuda'); print(b.data_ptr() == p)
c = torch.empty(1000, device='cuda'); print(c.data_ptr() - p)
""",
    "split": """
torch.cuda.empty_cache(); r = torch.cuda.memory_reserved()
xs = [torch.empty(2**16, device='cuda') for _ in range(10)]
print(torch.cuda.memory_reserved() - r, [x.data_ptr() - xs[0].data_ptr() for x in xs])
def counts():
    s = torch.cuda.memory_stats()
    print({k: v for k, v in s.items() if 'inactive_split' in k and 'current' in k})
counts(); del xs[1::2]; counts()
""",
    "peak": """
torch.cuda.reset_peak_memory_stats(); b = torch.cuda.memory_allocated()
x = torch.empty(2**20, device='cuda'); y = torch.empty_like(x)
z = [torch.empty_like(x) for _ in 'ab']
print((torch.cuda.max_memory_allocated() - b) / 2**20); del y, z
print((torch.cuda.memory_allocated() - b) / 2**20); torch.cuda.reset_peak_memory_stats()
print((torch.cuda.max_memory_allocated() - b) / 2**20)
""",
    "keys": "print(sorted(torch.cuda.memory_stats()))",
    "nested": "print(sorted(torch.cuda.memory_stats_as_nested_dict()))",
    "snapshot": """
x = torch.empty(1000, device='cuda'); s = torch.cuda.memory_snapshot()
print(sorted(set(s[0]) - {'stream'}), sorted(s[0]['blocks'][0]))
""",
    "fraction": """
try: torch.cuda.set_per_process_memory_fraction(1.5)
except ValueError as e: print(e)
print(torch.cuda.get_per_process_memory_fraction())
""",
    "streams": """
s = torch.cuda.Stream(); d = torch.cuda.default_stream(); c = torch.cuda.current_stream()
print(c == d, s == d, d.cuda_stream, s.query(), s.device, s.priority, hash(d) == hash(c))
print(torch.cuda.Stream.priority_range())
print([torch.cuda.Stream(priority=p).priority for p in (-1, -9)])
print(re.sub('0x[0-9a-f]+', 'X', repr(s)), s.device_index, s.device_type)
""",
    "events": """
e = torch.cuda.Event(enable_timing=True); f = torch.cuda.Event(enable_timing=True); print(e.query())
e.record(); f.record(); f.synchronize(); print(e.elapsed_time(f) >= 0, e.query(), f.query())
print(torch.cuda.Event())
for a, b in ((torch.cuda.Event(), e), (torch.cuda.Event(enable_timing=True), e)):
    try: a.elapsed_time(b)
    except Exception as x: print(type(x).__name__, x)
""",
    "stream pools": """
torch.cuda.empty_cache(); x = torch.empty(1000, device='cuda'); p = x.data_ptr(); del x
with torch.cuda.stream(torch.cuda.Stream()): y = torch.empty(1000, device='cuda')
print(y.data_ptr() == p)
z = torch.empty(1000, device='cuda'); print(z.data_ptr() == p)
""",
    "properties": """
p = torch.cuda.get_device_properties(0); print(sorted(a for a in dir(p) if a[0] != '_'))
print(repr(p)); print([getattr(p, a) for a in dir(p) if a[0] != '_' and a != 'uuid'])
""",
    "graph": """
g = torch.cuda.CUDAGraph(); x = torch.zeros(4, device='cuda'); s = torch.cuda.Stream()
with torch.cuda.stream(s): y = x * 2 + 1
torch.cuda.current_stream().wait_stream(s)
with torch.cuda.graph(g): y = x * 2 + 1
print(torch.cuda.is_current_stream_capturing()); x.fill_(3); g.replay()
print(y.tolist(), type(g.pool()))
try: torch.cuda.CUDAGraph().replay()
except RuntimeError as e: print(str(e).splitlines()[0])
""",
    "info": "f, t = torch.cuda.mem_get_info(); print(f < t, t, type(f))",
    "pinned": """
x = torch.ones(3).pin_memory(); print(x.is_pinned(), torch.ones(3).is_pinned(), x[1:].is_pinned())
y = x.to('cuda', non_blocking=True); torch.cuda.synchronize(); print(y.tolist())
print(torch.empty(2, pin_memory=True).is_pinned(), x.clone().is_pinned())
""",
}  # fmt: skip


def answer(library: Any, code: str) -> str:
    """What a snippet prints."""
    import re

    gc.collect()
    library.cuda.empty_cache()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<snippet>", "exec"), {"torch": library, "re": re})
        except Exception as error:
            print(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return out.getvalue()


def torch_with_cuda() -> Any:
    """PyTorch, where it is installed and has a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def like_pytorch() -> dict[str, Any]:
    torch = torch_with_cuda()
    ours = {name: answer(flambeau, code) for name, code in SNIPPETS.items()}
    if torch is None:
        failed = [f"{name}: {text}" for name, text in ours.items() if "Error: " in text]
        assert not failed, failed
        return {"compared": 0}
    theirs = {name: answer(torch, code) for name, code in SNIPPETS.items()}
    different = {name: {"PyTorch": theirs[name], "flambeau": ours[name]}
                 for name in SNIPPETS if theirs[name] != ours[name]}  # fmt: skip
    return {"ok": not different, "compared": len(SNIPPETS), "different": different}


# ---- costs


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
    import subprocess

    code = "import flambeau as torch; print((torch.ones(4, device='cuda') + 1).tolist())"
    took = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              cwd=Path(__file__).parents[2], check=False)  # fmt: skip
        took.append(round(time.perf_counter() - start, 2))
        assert done.stdout.strip() == "[2.0, 2.0, 2.0, 2.0]", done.stderr[-300:]
    return {"seconds": took}


ITEMS = (
    devices, copies, pinned_memory, kernels, streams_and_events, graphs,
    allocator_under_random_programs, out_of_memory, private_pools, like_pytorch, costs,
    graph_costs, costs_of_tensors, costs_of_pytorch, start_up,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path())
    Places.out = parser.parse_args().out
    for function in ITEMS:
        item(function)
    failed = [name for name, found in RESULTS.items() if not found["ok"]]
    print(f"{len(RESULTS) - len(failed)} of {len(RESULTS)} hold; failed: {failed}")


if __name__ == "__main__":
    main()
