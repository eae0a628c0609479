"""Random programs of streams with one fault, which the fake driver has to find.

    python tests/_runtime/cuda/planted_programs.py 1000             the seeds 0 to 999
    python tests/_runtime/cuda/planted_programs.py 1000 --first 500000

A right program of `stream_programs` runs for a while; then a fault is planted, of a kind, with
operations, parts of buffers and streams that are drawn. What the fault lacks (a wait, a block that
lives, something given back) the same program has when it is done right, and then nothing is found.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core.device import AcceleratorError
from flambeau._runtime.cuda import memory, pools
from flambeau._runtime.cuda.fake import FakeDriver
from flambeau._runtime.cuda.fake_checks import Fault
from flambeau._runtime.cuda.memory import Block, Current
from tests._runtime.cuda.stream_programs import COUNT, Program

NBYTES = 4 * COUNT
Plant = Callable[["Planted", bool], None]
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    PLANTS[function.__name__] = function
    return function


class Planted:
    """A program that has come so far, and what a fault is made of."""

    def __init__(self, driver: FakeDriver, chance: random.Random) -> None:
        self.driver, self.chance = driver, chance
        self.program = Program(driver, chance)
        self.host = np.zeros(2 * COUNT, np.uint32)
        self.blocks: list[Block] = []
        self.held: list[Callable[[], Any]] = []
        """What gives back what was made here."""
        for _ in range(chance.randrange(12)):
            self.program.step()

    # ---- what is made

    def stream(self) -> int:
        """A new stream, which comes after nothing."""
        stream = self.driver.new_stream()
        self.held.append(lambda: self.driver.free_stream(stream))
        return stream

    def event(self) -> int:
        event = self.driver.new_event()
        self.held.append(lambda: self.driver.free_event(event))
        return event

    def block(self, stream: int) -> Block:
        """A block with numbers in it, which all streams of before have done with."""
        Current.set_stream(0, stream)
        block = Block(NBYTES, 0)
        self.driver.fill(block.address, 3, 4, COUNT, stream)
        self.driver.synchronize()
        return block

    # ---- what is done

    def part(self, address: int) -> tuple[int, int]:
        """A part of a block that has its middle, so that any two of them meet."""
        first = self.chance.randrange(COUNT // 2)
        last = self.chance.randrange(COUNT // 2 + 1, COUNT + 1)
        return address + 4 * first, 4 * (last - first)

    def write(self, address: int, stream: int) -> None:
        """Write to a part, somehow."""
        at, nbytes = self.part(address)
        how = self.chance.choice(("fill", "copy", "upload", "launch", "graph"))
        if how == "fill":
            self.driver.fill(at, 5, 1, nbytes, stream)
        elif how == "copy":
            self.driver.copy(at, self.scratch(stream), nbytes, stream)
        elif how == "upload":
            self.driver.to_device(at, self.host.ctypes.data, nbytes, stream)
        elif how == "launch":
            packed = struct.pack("QQQ", address, self.scratch(stream), 1)
            self.driver.launch(self.program.add, (1,), 32, 0, stream, packed)
        else:
            self.replay(lambda inner: self.driver.fill(at, 5, 1, nbytes, inner), stream)

    def read(self, address: int, stream: int) -> None:
        """Read a part, somehow."""
        at, nbytes = self.part(address)
        how = self.chance.choice(("copy", "look", "launch", "graph"))
        if how == "copy":
            self.driver.copy(self.scratch(stream), at, nbytes, stream)
        elif how == "look":
            self.driver.to_host(self.host.ctypes.data, at, nbytes, stream)
        elif how == "launch":
            packed = struct.pack("QQQ", self.scratch(stream), address, 1)
            self.driver.launch(self.program.add, (1,), 32, 0, stream, packed)
        else:
            target = self.scratch(stream)
            self.replay(lambda inner: self.driver.copy(target, at, nbytes, inner), stream)

    def scratch(self, stream: int) -> int:
        """Memory of a stream that nobody else uses."""
        Current.set_stream(0, stream)
        block = Block(NBYTES, 0)
        self.blocks.append(block)
        return block.address

    def replay(self, work: Callable[[int], None], stream: int) -> None:
        """Work as a graph of one node."""
        self.driver.launch_graph(self.captured(work), stream)

    def captured(self, work: Callable[[int], None]) -> int:
        """The graph of some work."""
        inner = self.stream()
        self.driver.begin_capture(inner)
        work(inner)
        graph = self.driver.end_capture(inner)
        self.held.append(lambda: self.driver.free_graph(graph))
        return graph

    def use(self, address: int, stream: int) -> None:
        """Read or write."""
        self.chance.choice((self.read, self.write))(address, stream)

    def order(self, before: int, after: int) -> None:
        """Let a stream wait for another one, somehow."""
        how = self.chance.choice(("event", "host", "stream", "far", "all", "asked"))
        event = self.event()
        if how == "stream":
            self.driver.synchronize_stream(before)
        elif how == "all":
            self.driver.synchronize()
        elif how == "far":  # by way of a third one
            between, second = self.stream(), self.event()
            self.driver.record(event, before)
            self.driver.wait_event(between, event)
            self.driver.record(second, between)
            self.driver.wait_event(after, second)
        else:
            self.driver.record(event, before)
            if how == "host":
                self.driver.synchronize_event(event)
            elif how == "asked":
                while not self.driver.event_done(event):
                    pass
            else:
                self.driver.wait_event(after, event)

    def mislead(self, before: int, after: int) -> None:
        """Waits that do not order the two."""
        how = self.chance.choice(("none", "early", "other", "backwards", "again"))
        event, other = self.event(), self.stream()
        if how == "early":
            self.driver.wait_event(after, event)
            self.driver.record(event, before)
        elif how == "other":
            self.driver.record(event, other)
            self.driver.wait_event(after, event)
        elif how == "backwards":
            self.driver.record(event, after)
            self.driver.wait_event(before, event)
        elif how == "again":
            self.driver.record(event, before)
            self.driver.record(event, other)
            self.driver.wait_event(after, event)

    # ---- the end

    def close(self) -> None:
        """Give everything back that is not meant to leak, and raise for what was left."""
        self.driver.synchronize()
        self.blocks.clear()
        self.program.close()
        for give_back in reversed(self.held):
            give_back()
        memory.empty_cache()
        Current.set_stream(0, 0)
        left = self.driver.leaks()
        if left:
            raise Fault(f"leaks: {left}")


# ---- races


@plant
def written_then_used(p: Planted, right: bool) -> None:
    """Two streams, of which one writes."""
    a, b = p.stream(), p.stream()
    x = p.block(a)
    p.write(x.address, a)
    (p.order if right else p.mislead)(a, b)
    p.use(x.address, b)
    x.record_stream(b)


@plant
def read_then_written(p: Planted, right: bool) -> None:
    """Overwritten under a reader."""
    a, b = p.stream(), p.stream()
    x = p.block(a)
    at, nbytes = p.part(x.address)
    p.driver.copy(p.scratch(a), at, nbytes, a)
    (p.order if right else p.mislead)(a, b)
    p.write(x.address, b)
    x.record_stream(b)


@plant
def one_of_several_readers_is_forgotten(p: Planted, right: bool) -> None:
    """Many streams read; who writes waits for all but one."""
    readers = [p.stream() for _ in range(p.chance.randrange(2, 5))]
    last = p.stream()
    x = p.block(last)
    forgotten = p.chance.choice(readers)
    for reader in readers:
        at, nbytes = p.part(x.address)
        p.driver.copy(p.scratch(reader), at, nbytes, reader)
    for reader in readers:
        if right or reader != forgotten:
            event = p.event()
            p.driver.record(event, reader)
            p.driver.wait_event(last, event)
    p.write(x.address, last)


@plant
def given_back_under_another_stream(p: Planted, right: bool) -> None:
    """The block's own stream may have it again before the other one has done."""
    a, b = p.stream(), p.stream()
    x = p.block(a)
    at, nbytes = p.part(x.address)
    if p.chance.random() < 0.5:
        p.driver.copy(p.scratch(b), at, nbytes, b)
    else:
        p.driver.fill(at, 1, 1, nbytes, b)
    if right and p.chance.random() < 0.5:
        p.order(b, a)
    elif right:
        x.record_stream(b)
    elif p.chance.random() < 0.5:
        x.record_stream(p.stream())
    del x
    p.scratch(a)


@plant
def nodes_of_a_graph_race(p: Planted, right: bool) -> None:
    """Two branches of a graph touch the same bytes."""
    a, b = p.stream(), p.stream()
    x = p.block(a)
    begins, joins = p.event(), p.event()
    (at, nbytes), (second, length) = p.part(x.address), p.part(x.address)
    target = p.scratch(b)
    p.driver.begin_capture(a)
    p.driver.record(begins, a)
    p.driver.wait_event(b, begins)
    p.driver.fill(at, 1, 1, nbytes, a)
    if right:
        again = p.event()
        p.driver.record(again, a)
        p.driver.wait_event(b, again)
    p.driver.copy(target, second, length, b)
    p.driver.record(joins, b)
    p.driver.wait_event(a, joins)
    graph = p.driver.end_capture(a)
    p.held.append(lambda: p.driver.free_graph(graph))
    p.driver.launch_graph(graph, a)


@plant
def replays_race(p: Planted, right: bool) -> None:
    """A graph in two streams, or beside work of one."""
    a, b = p.stream(), p.stream()
    x = p.block(a)
    at, nbytes = p.part(x.address)
    graph = p.captured(lambda inner: p.driver.fill(at, 1, 1, nbytes, inner))
    p.driver.launch_graph(graph, a)
    (p.order if right else p.mislead)(a, b)
    if p.chance.random() < 0.5:
        p.driver.launch_graph(graph, b)
    else:
        p.use(x.address, b)
    x.record_stream(b)


# ---- uses after free


@plant
def used_after_it_was_given_back(p: Planted, right: bool) -> None:
    a = p.stream()
    x = p.block(a)
    address = x.address
    if not right:
        del x
    at, nbytes = p.part(address)
    how = p.chance.choice(("fill", "copy", "look", "upload"))
    if how == "fill":
        p.driver.fill(at, 1, 1, nbytes, a)
    elif how == "copy":
        other = p.program.buffers[0].block
        p.driver.copy(other.address, at, nbytes, a)
        other.record_stream(a)
    elif how == "look":
        p.driver.to_host(p.host.ctypes.data, at, nbytes, a)
    else:
        p.driver.to_device(at, p.host.ctypes.data, nbytes, a)


@plant
def replayed_after_it_was_given_back(p: Planted, right: bool) -> None:
    """What a graph reads and writes has to live as long as it, or lie in its own pool."""
    a = p.stream()
    pool, own = pools.new(), right and p.chance.random() < 0.5
    if own:
        pools.retain(0, pool)
        p.held.append(lambda: pools.release(0, pool))
        Current.set_pool(0, pool)
    x = p.block(a)
    Current.set_pool(0, None)
    at, nbytes = p.part(x.address)
    graph = p.captured(lambda inner: p.driver.fill(at, 1, 1, nbytes, inner))
    for _ in range(p.chance.randrange(3)):
        p.driver.launch_graph(graph, a)
    if own or not right:
        del x
    if p.chance.random() < 0.5:
        p.scratch(a)  # where the block was
    p.driver.launch_graph(graph, a)


@plant
def used_behind_its_end(p: Planted, right: bool) -> None:
    a = p.stream()
    x = p.block(a)
    more = 0 if right else p.chance.choice((1, 4, 16, 512))
    at = x.address + 4 * p.chance.randrange(COUNT)
    nbytes = x.address + NBYTES - at + more
    if p.chance.random() < 0.5:
        p.driver.fill(at, 1, 1, nbytes, a)
    else:
        p.driver.to_device(at, np.zeros(1024, np.uint8).ctypes.data, nbytes, a)


@plant
def given_back_twice(p: Planted, right: bool) -> None:
    what = p.chance.choice(("event", "memory", "pinned", "graph"))
    make, free = {
        "event": (p.driver.new_event, p.driver.free_event),
        "memory": (lambda: p.driver.allocate(100), p.driver.free),
        "pinned": (lambda: p.driver.allocate_host(100), p.driver.free_host),
        "graph": (lambda: _graph(p), p.driver.free_graph),
    }[what]  # fmt: skip
    made = make()
    free(made)
    if not right:
        free(made)


@plant
def used_after_it_was_destroyed(p: Planted, right: bool) -> None:
    """Events, streams and graphs that are no more."""
    a, event, graph = p.driver.new_stream(), p.driver.new_event(), _graph(p)
    uses = {
        "stream": lambda: p.driver.fill(p.program.buffers[0].block.address, 0, 1, 0, a),
        "event": lambda: p.driver.record(event, 0),
        "graph": lambda: p.driver.launch_graph(graph, 0),
    }
    use = uses[p.chance.choice(tuple(uses))]
    if right:
        use()
    p.driver.free_stream(a)
    p.driver.free_event(event)
    p.driver.free_graph(graph)
    if not right:
        use()


def _graph(p: Planted) -> int:
    stream = p.driver.new_stream()
    p.driver.begin_capture(stream)
    graph = p.driver.end_capture(stream)
    p.driver.free_stream(stream)
    return graph


# ---- leaks


@plant
def something_is_not_given_back(p: Planted, right: bool) -> None:
    make, free = p.chance.choice((
        (p.driver.new_event, p.driver.free_event),
        (p.driver.new_stream, p.driver.free_stream),
        (lambda: p.driver.allocate(p.chance.randrange(1, 5000)), p.driver.free),
        (lambda: p.driver.allocate_host(p.chance.randrange(1, 5000)), p.driver.free_host),
        (lambda: _graph(p), p.driver.free_graph),
    ))  # fmt: skip
    made = [make() for _ in range(p.chance.randrange(1, 4))]
    kept = 0 if right else p.chance.randrange(1, len(made) + 1)
    for one in made[kept:]:
        free(one)


@plant
def a_block_lives_too_long(p: Planted, right: bool) -> None:
    """A reference that is forgotten somewhere keeps a whole segment."""
    keep = FORGOTTEN if not right else []
    keep.append(p.block(p.stream()))


FORGOTTEN: list[Block] = []


def fresh(seed: int) -> FakeDriver:
    """A driver, and nothing of those before it."""
    FORGOTTEN.clear()
    driver = FakeDriver(seed)
    memory.allocators.clear()
    memory.waiting.clear()
    Current.arenas.clear()
    Current.streams.clear()
    Current.pools.clear()
    return driver


def run(driver: FakeDriver, seed: int, right: bool = False) -> tuple[str, str | None]:
    """The kind of the seed's fault, and what was found."""
    chance = random.Random(seed)
    kind = chance.choice(tuple(PLANTS))
    planted = None
    try:
        planted = Planted(driver, chance)
        PLANTS[kind](planted, right)
        planted.close()
    except (Fault, AcceleratorError, KeyError) as fault:
        return kind, f"{type(fault).__name__}: {fault}"
    return kind, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first program")
    chosen = parser.parse_args()
    found: Counter[str] = Counter()
    wrong = 0
    for seed in range(chosen.first, chosen.first + chosen.count):
        for right in (False, True):
            driver = fresh(seed)
            memory.driver = lambda driver=driver: driver  # type: ignore[assignment, misc]
            kind, fault = run(driver, seed, right)
            found[kind] += not right and fault is not None
            if (fault is None) != right:
                wrong += 1
                print(f"program {seed}, {kind}, {'right' if right else 'planted'}: {fault}")
    print(f"{chosen.count} programs from seed {chosen.first}, {wrong} wrong; found: {dict(found)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
