"""The memory pool: contents survive, blocks are joined again, it can be switched off."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau._runtime import allocator, memory_kernels
from flambeau._runtime.launch import kernel

pytest.importorskip("llvmlite")
if not allocator.Shared.possible:
    pytest.skip("no pool on this system", allow_module_level=True)

K = memory_kernels
LARGE = 1 << 20


def run_python(code: str, *, limit: int = 120, **environment: str) -> str:
    """What a new interpreter prints; it must end without an error."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=limit,
        env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(autouse=True)
def pool() -> allocator.Pool:
    allocator.ready()
    assert allocator.Shared.pool is not None
    gc.collect()
    return allocator.Shared.pool


def words_at(address: int, count: int = 8) -> list[int]:
    return list((allocator.ctypes.c_int64 * count).from_address(address))


def walk(pool: allocator.Pool) -> list[list[int]]:
    """Every block of the heap; what must hold of the heap holds."""
    state = list(pool.words)
    blocks, below, here = [], 0, state[K.BASE]
    while here < state[K.END]:
        block = words_at(here)
        assert block[K.MARK] == K.MARKED
        assert block[K.BELOW] == below
        assert block[K.SIZE] > 0 and block[K.SIZE] % K.GRAIN == 0
        blocks.append([here, *block])
        below, here = here, here + block[K.SIZE]
    assert here == state[K.END] and below == state[K.LAST]
    check_counts(state, blocks)
    return blocks


def check_counts(state: list[int], blocks: list[list[int]]) -> None:
    used = [b for b in blocks if b[1 + K.STATUS] & 0xFFFFFFFF == K.USED]
    free = [b for b in blocks if b[1 + K.STATUS] & 0xFFFFFFFF == K.FREE]
    assert len(used) + len(free) == len(blocks)
    assert state[K.COUNT] == len(used)
    assert state[K.LIVE] == sum(b[1 + K.PAYLOAD] for b in used)
    assert state[K.DIRTY] == sum(b[1 + K.DIRT] for b in free)
    assert state[K.HELD] - state[K.DIRTY] == sum(b[1 + K.SIZE] for b in used)
    for one, next_one in zip(blocks, blocks[1:], strict=False):
        assert not (one in free and next_one in free), "two free neighbours"
    listed = []
    for index in range(K.BINS):
        here = state[K.HEADS + index]
        assert bool(here) == bool(state[K.MAP + index // 64] >> index % 64 & 1)
        while here:
            listed.append(here)
            here = words_at(here)[K.NEXT]
    assert sorted(listed) == [b[0] for b in free]


def holds(pool: allocator.Pool, data: np.ndarray) -> bool:
    return pool.words[K.BASE] <= data.ctypes.data < pool.words[K.END]


def test_large_arrays_come_from_the_pool_and_small_ones_do_not(pool: allocator.Pool):
    assert holds(pool, np.empty(LARGE, np.uint8))
    assert holds(pool, np.ones(LARGE) + 1)
    assert not holds(pool, np.empty(100))
    tensor = torch.rand(512, 512)
    assert holds(pool, tensor.numpy())
    assert np.empty(LARGE).ctypes.data % 64 == 0


def test_memory_is_used_again():
    for _ in range(3):
        np.ones(LARGE)
    before = torch.cpu.memory_stats()
    for _ in range(100):
        np.ones(LARGE)
    after = torch.cpu.memory_stats()
    assert after["num_device_alloc"] == before["num_device_alloc"]
    assert after["reserved_bytes.all.current"] == before["reserved_bytes.all.current"]
    assert after["allocation.all.allocated"] - before["allocation.all.allocated"] == 100


@pytest.mark.parametrize("seed", range(4))
def test_contents_survive_and_the_heap_stays_whole(pool: allocator.Pool, seed: int):
    random = np.random.default_rng(seed)
    alive: list[tuple[int, np.ndarray]] = []
    for turn in range(600):
        if alive and random.random() < 0.5:
            mark, data = alive.pop(int(random.integers(len(alive))))
            assert (data == mark).all()
            del data
        else:
            size = int(2 ** random.uniform(16, 21.5))
            make = np.zeros if random.random() < 0.3 else np.empty
            data = make(size, np.uint8)
            assert make is np.empty or not data.any()
            data[:] = turn % 251
            alive.append((turn % 251, data))
            del data
        if len(alive) > 40:
            del alive[::3]
        if turn % 50 == 0:
            walk(pool)
        if turn % 200 == 199:
            allocator.empty_cache()
    for mark, data in alive:
        assert (data == mark).all()
    data = None
    alive.clear()
    walk(pool)


def test_zeros_after_use_and_after_trimming():
    for size in (1 << 16, 100_000, 3 << 20):
        np.full(size, 7, np.uint8)
        assert not np.zeros(size, np.uint8).any()
        np.full(size, 7, np.uint8)
        allocator.empty_cache()
        assert not np.zeros(size, np.uint8).any()


def test_resize_keeps_contents():
    data = np.arange(100)
    for size in (50_000, 1_000_000, 20_000, 300_000):
        kept = min(size, data.size)
        data.resize(size, refcheck=False)
        assert (data[:100] == np.arange(100)).all()
        assert not data[kept:].any()


def test_joined_blocks_serve_larger_requests(pool: allocator.Pool):
    allocator.empty_cache()
    parts = [np.ones(8 * LARGE, np.uint8) for _ in range(8)]
    reserved = torch.cpu.memory_reserved()
    del parts
    whole = np.ones(63 * LARGE, np.uint8)
    assert torch.cpu.memory_reserved() <= reserved + LARGE
    assert whole.all()
    walk(pool)


def test_peaks_and_empty_cache():
    torch.cpu.reset_peak_memory_stats()
    before = torch.cpu.memory_allocated()
    data = np.ones(4 * LARGE, np.uint8)
    assert torch.cpu.memory_allocated() == before + 4 * LARGE
    del data
    assert torch.cpu.memory_allocated() == before
    assert torch.cpu.max_memory_allocated() == before + 4 * LARGE
    assert torch.cpu.max_memory_reserved() >= torch.cpu.max_memory_allocated()
    torch.cpu.empty_cache()
    stats = torch.cpu.memory_stats()
    assert stats["inactive_split_bytes.all.current"] == 0
    assert stats["reserved_bytes.all.current"] < before + 4 * LARGE
    torch.cpu.reset_peak_memory_stats()
    assert torch.cpu.max_memory_allocated() == before


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_goes_back_to_the_system():
    data = np.ones(64 * LARGE, np.uint8)
    high = resident()
    del data
    torch.cpu.empty_cache()
    assert resident() < high - 48 * LARGE


def test_what_is_not_needed_for_a_while_goes_back():
    data = np.ones(256 * LARGE, np.uint8)
    del data
    for _ in range(3 * K.WINDOW):
        np.empty(1 << 16, np.uint8)
    assert torch.cpu.memory_stats()["inactive_split_bytes.all.current"] < 128 * LARGE


def test_threads_share_the_pool(pool: allocator.Pool):
    """Blocks are freed by other threads than those that took them; contents stay apart."""
    wrong: list[int] = []
    exchange: list[np.ndarray] = []

    def work(number: int) -> None:
        allocator.ready()
        random = np.random.default_rng(number)
        for _ in range(200):
            data = np.full(int(random.integers(1 << 16, 1 << 19)), number, np.uint8)
            exchange.append(data)
            if len(exchange) > 8:
                other = exchange.pop(0)
                if (other != other[0]).any():
                    wrong.append(number)

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert not wrong
    exchange.clear()
    walk(pool)


def test_a_thread_gets_the_pool_with_its_first_parallel_work(pool: allocator.Pool):
    found: list[bool] = []

    def work() -> None:
        found.append(holds(pool, np.empty(LARGE)))
        empty.parallel(2)
        found.append(holds(pool, np.empty(LARGE)))

    empty = kernel(nothing)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False, True]


@K.native
def nothing():
    """A kernel that does nothing."""


def test_a_process_that_forks_while_threads_allocate():
    code = """
import os, threading, numpy as np
from flambeau._runtime import allocator
allocator.ready()
stop = False
def churn():
    allocator.ready()
    while not stop:
        np.ones(1 << 17)
crowd = [threading.Thread(target=churn) for _ in range(3)]
[thread.start() for thread in crowd]
kept = np.full(1 << 20, 5)
for _ in range(20):
    child = os.fork()
    if child == 0:
        for size in range(1 << 16, 1 << 20, 1 << 16):
            assert (np.full(size, 3) == 3).all()
        os._exit(0 if (kept == 5).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    kept[:] = 5
stop = True
[thread.join() for thread in crowd]
print("done")
"""
    assert run_python(code) == "done\n"


def test_the_interpreter_ends_with_arrays_and_threads_alive():
    code = """
import sys, threading, numpy as np
from flambeau._runtime import allocator
allocator.ready()
class Late:
    data = np.ones(1 << 20)
    def __del__(self, make=np.ones):
        make(1 << 18)
sys.late = Late()
def churn():
    while True:
        np.ones(1 << 17)
threading.Thread(target=churn, daemon=True).start()
cycle = [np.ones(1 << 20)]
cycle.append(cycle)
"""
    assert run_python(code) == ""


SAYS = """
import numpy as np
from flambeau._runtime import allocator
allocator.ready()
data = np.ones(1 << 20)
print(allocator.statistics()["allocation.all.current"])
"""


def test_switched_off():
    assert run_python(SAYS) == "1\n"
    assert run_python(SAYS, FLAMBEAU_MEMORY="system") == "0\n"


def test_a_limit_on_addresses():
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))" + SAYS
    code += """
try:
    np.ones(1 << 32, np.uint8)
except MemoryError:
    print("no memory")
"""
    assert run_python(code) == "1\nno memory\n"


def test_import_makes_no_pool():
    code = "import flambeau as torch; x = torch.rand(100) + 1; print(torch.cpu.memory_stats())"
    assert "'allocated_bytes.all.allocated': 0" in run_python(code, FLAMBEAU_ENGINE="numpy")


DEBUG = """
import ctypes, numpy as np
from flambeau._runtime import allocator
allocator.ready()
def say():
    try:
        allocator.check()
        print("fine")
    except RuntimeError as error:
        print(error)
"""


def test_debug_form_fills_memory():
    code = (
        DEBUG
        + """
print(np.isnan(np.empty(3)).all(), np.isnan(np.empty(100_000, np.float16)).all(), np.zeros(3).any())
data = np.ones(5, np.float32)
place = (ctypes.c_float * 5).from_address(data.ctypes.data)
del data
print(list(place))
say()
"""
    )
    nans = [float("nan")] * 5
    assert run_python(code, FLAMBEAU_DEBUG="memory") == f"True True False\n{nans}\nfine\n"


@pytest.mark.parametrize("size", [1, 13, 4000, 1 << 20])
def test_debug_form_finds_writes_behind_the_end(size: int):
    code = (
        DEBUG
        + f"""
data = np.empty({size}, np.uint8)
ctypes.memset(data.ctypes.data + {size}, 0, 1)
del data
say()
say()
"""
    )
    first, second = run_python(code, FLAMBEAU_DEBUG="memory").splitlines()
    assert first.startswith("something was written behind the end of an array")
    assert second == "fine"


def test_debug_form_finds_double_frees():
    code = (
        DEBUG
        + """
free = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_size_t)(
    allocator.Shared.pool.handler.use.free)
malloc = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
    allocator.Shared.pool.handler.use.malloc)
state = allocator.Shared.pool.state
place = malloc(state, 1000)
free(state, place, 1000)
say()
free(state, place, 1000)
say()
place = malloc(state, 1000)
free(state, place + 8, 1000)
say()
"""
    )
    lines = run_python(code, FLAMBEAU_DEBUG="memory").splitlines()
    assert lines[0] == "fine"
    assert lines[1].startswith("memory was freed twice")
    assert lines[2].startswith("memory was freed that was never handed out")


def test_debug_form_raises_where_a_kernel_writes_too_far():
    code = """
from __future__ import annotations
import numpy as np
from flambeau._compiler.native import from_source
from flambeau._runtime.launch import kernel
bad = kernel(from_source("bad", "def bad(x: pointer(f32), n: i64):\\n    x[n] = 0.0\\n", {}))
x = np.zeros(10, np.float32)
bad(x, 9)
bad(x, 10)
del x
try:
    bad(np.zeros(4, np.float32), 3)
except RuntimeError as error:
    print(error)
"""
    found = run_python(code, FLAMBEAU_DEBUG="memory")
    assert found.startswith("something was written behind the end")


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import numpy as np
import flambeau as torch
x = torch.ones(200_000)
y = x + x  # the pool is there
large = np.empty(5 << 29, np.uint8)
small = [torch.ones(1 << 20) for _ in range(50)]
print(large.nbytes, sum(one.sum().item() for one in small) / (1 << 20), torch.rand(99, 99).shape)
"""


def test_limited_addresses_are_left_to_others() -> None:
    """Five eighths of what `ulimit -v` allows in one array, and a program that goes on."""
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert done.stdout == f"{5 << 29} 50.0 torch.Size([99, 99])\n", done.stderr
