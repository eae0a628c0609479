"""The allocator: random programs, running out of memory, pools of a program."""

from __future__ import annotations

import random
import re
from typing import Any

import flambeau
from flambeau._runtime.cuda import memory, pools
from flambeau._runtime.cuda.memory import Block, Current
from scripts.gpu_check.driver.kernels import K, taken
from scripts.gpu_check.driver.results import same


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


UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


def out_of_memory() -> dict[str, Any]:
    """More than there is, and more than the hundredth that is allowed of it, however large."""
    total = K.driver.memory_info()[1]
    whole = refusal(1 << 44, 1.0)
    part = refusal(total // 50, 0.01)
    assert whole.startswith("CUDA out of memory. Tried to allocate 16384.00 GiB. GPU 0 has a")
    found = re.search(r"(\d+\.\d\d) (MiB|GiB) allowed; Of the allocated memory", part)
    assert found is not None, part
    allowed = float(found[1]) * UNITS[found[2]]
    assert abs(allowed - total / 100) < total / 1000, (allowed, total)
    block = Block(1 << 20, 0)
    assert block.address
    return {"text": part[:200]}


def refusal(nbytes: int, fraction: float) -> str:
    """What is said to who asks for so many bytes, of that fraction of the GPU's memory."""
    flambeau.cuda.set_per_process_memory_fraction(fraction)
    try:
        Block(nbytes, 0)
    except flambeau.OutOfMemoryError as error:
        return str(error)
    finally:
        flambeau.cuda.set_per_process_memory_fraction(1.0)
    raise AssertionError("there was memory enough")


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
