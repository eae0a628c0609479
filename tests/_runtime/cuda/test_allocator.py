"""The caching allocator: sizes, reuse, statistics, limits."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from flambeau._core.device import OutOfMemoryError
from flambeau._runtime.cuda import memory, pools, settings
from flambeau._runtime.cuda.memory import Block, Current

MIB = 1 << 20


def stats(name: str, pool: str = "all", kind: str = "current") -> int:
    owner = memory.allocator(0)
    owner.settle()
    return owner.statistics.listed()[f"{name}.{pool}.{kind}"]


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [(0, 0), (1, 512), (512, 512), (513, 1024), (4000, 4096), (MIB, MIB), (MIB + 4, MIB + 512),
     (10 * MIB, 10 * MIB), (10 * MIB + 4, 10 * MIB + 512)],
)  # fmt: skip
def test_sizes_are_rounded(plug: Any, nbytes: int, size: int) -> None:
    plug()
    block = Block(nbytes, 0)
    assert stats("allocated_bytes") == size and stats("requested_bytes") == nbytes
    assert (block.address % 512 == 0) and bool(block.address) == bool(nbytes)


@pytest.mark.parametrize(
    ("mib", "reserved"),
    [(0.5, 2), (1, 2), (1.5, 20), (9, 20), (10, 10), (11, 12), (30, 30), (100, 100)],
)
def test_segments(plug: Any, mib: float, reserved: int) -> None:
    driver = plug()
    block = Block(int(mib * MIB), 0)
    assert stats("reserved_bytes") == reserved * MIB == sum(driver.sizes.values())
    del block
    assert stats("reserved_bytes") == reserved * MIB
    memory.empty_cache()
    assert stats("reserved_bytes") == 0 and not driver.sizes


def test_memory_is_reused_from_the_lowest_address(plug: Any) -> None:
    plug()
    first, second = Block(4000, 0), Block(4000, 0)
    assert second.address - first.address == 4096
    low = first.address
    del first, second
    assert Block(3900, 0).address == low


def test_holes_join_and_are_split(plug: Any) -> None:
    driver = plug()
    blocks = [Block(65536 * 4, 0) for _ in range(8)]
    assert stats("inactive_split") == 0 and stats("segment") == 1
    start = blocks[0].address
    del blocks[1::2]
    assert stats("inactive_split") == 4 and stats("inactive_split_bytes") == 4 * 262144
    blocks.clear()
    assert stats("inactive_split") == 0
    whole = Block(MIB, 0)
    assert whole.address == start and len(driver.sizes) == 1


def test_the_smallest_hole_is_taken(plug: Any) -> None:
    plug()
    blocks = [Block(size * 512, 0) for size in (8, 1, 4, 1, 2, 1)]
    four = blocks[2].address
    blocks[0] = blocks[2] = None  # type: ignore[call-overload]
    assert Block(3 * 512, 0).address == four


def test_a_large_hole_is_kept_whole_where_little_would_be_left(plug: Any) -> None:
    plug()
    block = Block(20 * MIB - 1000, 0)
    assert stats("allocated_bytes") == 20 * MIB and stats("requested_bytes") == 20 * MIB - 1000
    address = block.address
    del block
    for _ in range(3):  # also where it waits in the list of odd sizes
        assert Block(20 * MIB - 1000, 0).address == address
    assert stats("allocated_bytes") == 0


def test_every_stream_has_its_own(plug: Any) -> None:
    driver = plug()
    stream = driver.new_stream()
    block = Block(4000, 0)
    address = block.address
    del block
    Current.set_stream(0, stream)
    assert Block(4000, 0).address != address
    Current.set_stream(0, 0)
    assert Block(4000, 0).address == address


def test_a_recorded_stream_keeps_a_block(plug: Any) -> None:
    driver = plug(seed=1)
    stream = driver.new_stream()
    block = Block(4000, 0)
    address = block.address
    block.record_stream(stream)
    driver.queues.put(stream, None)
    held = driver.new_event()
    driver.queues.streams[stream].waiting.clear()  # the stream stands still
    driver.queues.put(stream, None, waits=(driver.queues.put(0, None),))
    del block
    assert stats("allocated_bytes") == 0 and stats("active_bytes") == 4096
    driver.synchronize()
    memory.process_events(memory.allocator(0))
    assert stats("active_bytes") == 0
    assert Block(4000, 0).address == address
    driver.free_event(held)


class Model:
    """What the counters must be, by counting."""

    def __init__(self) -> None:
        self.now, self.peak, self.taken = [0, 0, 0], [0, 0, 0], [0, 0, 0]

    def change(self, nbytes: int, size: int, sign: int) -> None:
        for place, amount in enumerate((1, size, nbytes)):
            self.now[place] += sign * amount
            self.peak[place] = max(self.peak[place], self.now[place])
            self.taken[place] += amount if sign > 0 else 0


@pytest.mark.parametrize("seed", range(3))
def test_counters_equal_a_plain_count(plug: Any, seed: int) -> None:
    plug()
    chance = random.Random(seed)
    models = {"small_pool": Model(), "large_pool": Model(), "all": Model()}
    held: list[tuple[Block, int]] = []

    def change(nbytes: int, size: int, sign: int) -> None:
        models["small_pool" if nbytes <= MIB else "large_pool"].change(nbytes, size, sign)
        models["all"].change(nbytes, size, sign)

    for _ in range(5000):
        if held and chance.random() < 0.5:
            block, size = held.pop(chance.randrange(len(held)))
            change(block.nbytes, size, -1)
            del block
        else:
            nbytes = chance.choice((1, 600, 4096, MIB, 3 * MIB, chance.randrange(1, 24 * MIB)))
            block = Block(nbytes, 0)
            size = memory.allocator(0).pieces[block.address].size
            assert size >= nbytes
            held.append((block, size))
            del block
            change(nbytes, size, 1)
    names = ("allocation", "allocated_bytes", "requested_bytes")
    for pool, model in models.items():
        for place, name in enumerate(names):
            got = [stats(name, pool, kind) for kind in ("current", "peak", "allocated")]
            assert got == [model.now[place], model.peak[place], model.taken[place]], (pool, name)
            assert stats(name, pool, "freed") == model.taken[place] - model.now[place]
        assert stats("active_bytes", pool, "peak") == model.peak[1]
    held.clear()
    memory.empty_cache()
    assert stats("reserved_bytes") == 0 and not memory.allocator(0).pieces


@pytest.mark.parametrize("seed", range(3))
def test_no_two_blocks_overlap(plug: Any, seed: int) -> None:
    driver = plug()
    chance = random.Random(seed)
    streams = [0, driver.new_stream(), driver.new_stream()]
    held: list[Block] = []
    for _ in range(3000):
        if held and chance.random() < 0.52:
            held.pop(chance.randrange(len(held)))
        else:
            Current.set_stream(0, chance.choice(streams))
            held.append(Block(int(2 ** chance.uniform(0, 25)), 0))
        if chance.random() < 0.01:
            memory.empty_cache()
    spans = sorted((block.address, block.address + block.nbytes) for block in held)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    segments = memory.allocator(0).segments
    for segment in segments.values():
        size, piece = 0, segment.piece
        while piece is not None:
            assert piece.address == segment.address + size
            size, piece = size + piece.size, piece.after  # type: ignore[assignment]
        assert size == segment.size


def test_out_of_memory_gives_back_first_and_says_how_much(plug: Any) -> None:
    plug()
    owner = memory.allocator(0)
    owner.limit = 100 * MIB
    kept = Block(30 * MIB, 0)
    spare = Block(60 * MIB, 0)
    del spare
    again = Block(65 * MIB, 0)  # the 60 MiB go back for it
    assert owner.statistics.events["num_alloc_retries"] == 1 and again.address
    with pytest.raises(OutOfMemoryError) as found:
        Block(50 * MIB, 0)
    text = str(found.value)
    assert text.startswith("CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total "
                           "capacity of 79.18 GiB of which ")  # fmt: skip
    assert "100.00 MiB allowed; Of the allocated memory 96.00 MiB is allocated by PyTorch" in text
    assert ", and 0 bytes is reserved by PyTorch but unallocated. If reserved" in text
    assert owner.statistics.events["num_ooms"] == 1
    assert kept.address and issubclass(OutOfMemoryError, RuntimeError)


def test_garbage_is_collected_above_the_threshold(plug: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.5")
    plug()
    owner = memory.allocator(0)
    owner.limit = 100 * MIB
    old, new = Block(20 * MIB, 0), Block(20 * MIB, 0)
    first = old.address
    del old
    Block(1, 0)
    owner.settle()
    del new
    Block(22 * MIB, 0)
    assert first not in owner.segments and stats("reserved_bytes") == (20 + 22 + 2) * MIB


def test_private_pools_keep_to_themselves(plug: Any) -> None:
    plug()
    outside = Block(4000, 0)
    address = outside.address
    del outside
    pool = pools.new()
    pools.retain(0, pool)
    with pools.routed(0, pool):
        inside = Block(4000, 0)
    assert inside.address != address and Block(4000, 0).address == address
    segment = memory.allocator(0).pieces[inside.address].segment
    del inside
    memory.empty_cache()
    assert segment.address in memory.allocator(0).segments  # the pool is in use
    pools.release(0, pool)
    memory.empty_cache()
    assert not memory.allocator(0).segments


@pytest.mark.parametrize(
    ("text", "error"),
    [("words:1", "Unrecognized key 'words' in CUDA allocator config."),
     ("max_split_size_mb:5", "CachingAllocator option max_split_size_mb too small, must be >= 20"),
     ("garbage_collection_threshold:2", "garbage_collect_threshold is invalid, set it in "),
     ("roundup_power2_divisions:3", "For roundups, the divisions has to be power of 2"),
     ("max_split_size_mb", "Error parsing CachingAllocator settings")],
)  # fmt: skip
def test_words_that_make_no_sense(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        settings.read(text)


def test_words_of_the_settings(plug: Any, monkeypatch: Any) -> None:
    found = settings.read("max_split_size_mb:32, roundup_power2_divisions:[256:1,512:2,>:8],"
                          "garbage_collection_threshold:0.6")  # fmt: skip
    assert found.max_split_size == 32 * MIB and found.garbage_collection_threshold == 0.6
    assert [found.roundup_power2_divisions[p] for p in (28, 29, 30, 40)] == [1, 2, 8, 8]
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "roundup_power2_divisions:4")
    plug()
    held = Block(1200 * 1024, 0)
    assert stats("allocated_bytes") == 1280 * 1024 and held.nbytes == 1200 * 1024


def test_nothing_is_kept_where_that_is_not_wanted(plug: Any) -> None:
    driver = plug()
    owner = memory.allocator(0)
    memory.keep(0, False)
    Block(30 * MIB, 0)
    owner.settle()
    assert not driver.sizes


def test_every_device_has_its_own_memory(plug: Any) -> None:
    driver = plug(devices=2)
    first, second = Block(4000, 0), Block(4000, 1)
    assert [driver.device_of(block.address) for block in (first, second)] == [0, 1]
    assert memory.allocator(1).statistics.value("allocated_bytes", "current") == 4096
