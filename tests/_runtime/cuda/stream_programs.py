"""Random programs of streams, events, copies and kernels, right by construction.

    python tests/_runtime/cuda/stream_programs.py 10000             the seeds 0 to 9999
    python tests/_runtime/cuda/stream_programs.py 10000 --first 500000

Every program puts work into several streams and waits exactly where its data demand it: by events,
by the host, or not at all where one stream does both. On the fake driver, whose streams run in an
order of their own, no fault may be found, and every number must be what one piece of work after
the other gives. `broken` leaves waits out, which must be found.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import struct
import sys
from typing import Any

import numpy as np

from flambeau._runtime.cuda import memory
from flambeau._runtime.cuda.fake import FakeDriver
from flambeau._runtime.cuda.fake_checks import Fault
from flambeau._runtime.cuda.memory import Block, Current

COUNT = 16
"""Numbers in a buffer."""


class Buffer:
    """Memory, what it must hold, and the last work that wrote and read it."""

    def __init__(self, block: Block, stream: int) -> None:
        self.block, self.stream = block, stream
        self.numbers = np.zeros(COUNT, np.uint32)
        self.written: tuple[int, int] | None = None
        self.read: list[tuple[int, int]] = []


class Program:
    """A program on a driver: `steps` pieces of work.

    Args:
        driver: a fake one with a seed.
        chance: draws the program.
        broken: the share of waits that are left out.
    """

    def __init__(self, driver: FakeDriver, chance: random.Random, broken: float = 0.0) -> None:
        self.driver, self.chance, self.broken = driver, chance, broken
        self.streams = [0, *[driver.new_stream() for _ in range(chance.randrange(1, 4))]]
        self.events: list[int] = []
        self.add = driver.register(self._add, writes=(0,))
        self.buffers = [self.fresh() for _ in range(chance.randrange(2, 5))]

    def _add(self, grid: Any, threads: int, shared: int, packed: bytes) -> None:
        target, source, value = struct.unpack("QQQ", packed)
        self.cells(target)[:] = self.cells(source) + np.uint32(value)

    def cells(self, address: int) -> np.ndarray:
        kind = ctypes.c_uint32 * COUNT
        return np.frombuffer(kind.from_address(self.driver.host(address)), np.uint32)

    def fresh(self) -> Buffer:
        """A new buffer, filled in its stream."""
        stream = self.chance.choice(self.streams)
        Current.set_stream(0, stream)
        buffer = Buffer(Block(4 * COUNT, 0), stream)
        value = self.chance.randrange(100)
        self.driver.fill(buffer.block.address, value, 4, COUNT, stream)
        buffer.numbers[:] = value
        buffer.written = self.mark(stream)
        return buffer

    def mark(self, stream: int) -> tuple[int, int]:
        """An event behind the work that is now in a stream."""
        event = self.driver.new_event()
        self.driver.record(event, stream)
        self.events.append(event)
        return stream, event

    def after(self, stream: int, marks: list[tuple[int, int]]) -> None:
        """Let what comes next in a stream come after marks."""
        for other, event in marks:
            if other == stream or self.chance.random() < self.broken:
                continue
            if self.chance.random() < 0.15:
                self.driver.synchronize_event(event)
            elif self.chance.random() < 0.1:
                self.driver.synchronize_stream(other)
            else:
                self.driver.wait_event(stream, event)

    def step(self) -> None:
        """A piece of work: a sum, a copy, a look, or a buffer that goes and comes."""
        what = self.chance.choice(("add", "add", "copy", "look", "renew", "upload"))
        source, target = self.chance.choice(self.buffers), self.chance.choice(self.buffers)
        stream = self.chance.choice(self.streams)
        if what == "renew":
            self.buffers.remove(target)
            self.release(target)
            self.buffers.append(self.fresh())
            return
        written = [source.written] if source.written else []
        if what == "look":
            self.after(stream, written)
            self.look(source, stream)
            return
        others = [target.written] if target.written else []
        self.after(stream, [*written, *others, *target.read])
        self.write(what, target, source, stream)

    def write(self, what: str, target: Buffer, source: Buffer, stream: int) -> None:
        """Put work that writes a buffer into a stream."""
        value = self.chance.randrange(100)
        if what == "add":
            packed = struct.pack("QQQ", target.block.address, source.block.address, value)
            self.driver.launch(self.add, (1,), 32, 0, stream, packed)
            target.numbers = source.numbers + np.uint32(value)
        elif what == "copy" and target is not source:
            self.driver.copy(target.block.address, source.block.address, 4 * COUNT, stream)
            target.numbers = source.numbers.copy()
        else:
            numbers = np.full(COUNT, value, np.uint32)
            at = target.block.address
            self.driver.to_device(at, numbers.ctypes.data, 4 * COUNT, stream)
            numbers[:] = 0  # it has been read
            target.numbers = np.full(COUNT, value, np.uint32)
        mark = self.mark(stream)
        source.read.append(mark)
        target.written, target.read = mark, []

    def look(self, buffer: Buffer, stream: int) -> None:
        """Copy a buffer to the host, and compare."""
        found = np.zeros(COUNT, np.uint32)
        self.driver.to_host(found.ctypes.data, buffer.block.address, 4 * COUNT, stream)
        buffer.read.append(self.mark(stream))
        if not np.array_equal(found, buffer.numbers):
            raise Fault(f"wrong numbers: {found[:3]} for {buffer.numbers[:3]}")

    def release(self, buffer: Buffer) -> None:
        """Give a buffer back, with the streams that still use it, or after a wait."""
        marks = [*buffer.read, *([buffer.written] if buffer.written else [])]
        if self.chance.random() < 0.5:
            self.after(buffer.stream, marks)
            return
        for stream, _ in marks:
            if self.chance.random() >= self.broken:
                buffer.block.record_stream(stream)

    def run(self, steps: int) -> None:
        """All of it, and a look at the end. Raises Fault."""
        for _ in range(steps):
            self.step()
        self.driver.synchronize()
        for buffer in self.buffers:
            self.look(buffer, 0)

    def close(self) -> None:
        """Give everything back."""
        self.driver.synchronize()
        self.buffers.clear()
        memory.empty_cache()
        for event in self.events:
            self.driver.free_event(event)
        for stream in self.streams[1:]:
            self.driver.free_stream(stream)


def run(driver: FakeDriver, seed: int, steps: int = 30, broken: float = 0.0) -> str | None:
    """Run the program of a seed; the fault that was found, if any."""
    chance = random.Random(seed)
    assert driver.queues.random is not None
    driver.queues.random.seed(seed)
    program = Program(driver, chance, broken)
    try:
        program.run(steps)
    except Fault as fault:
        return str(fault)
    program.close()
    Current.set_stream(0, 0)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first program")
    chosen = parser.parse_args()
    end, found = chosen.first + chosen.count, 0
    for start in range(chosen.first, end, 500):
        driver = FakeDriver(seed=0)
        memory.driver = lambda driver=driver: driver  # type: ignore[assignment, misc]
        memory.allocators.clear()
        memory.waiting.clear()
        memory.Current.arenas.clear()
        for seed in range(start, min(start + 500, end)):
            fault = run(driver, seed)
            if fault:
                found += 1
                print(f"program {seed}: {fault}")
                break
    print(f"{chosen.count} programs from seed {chosen.first}, {found} with a fault")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
