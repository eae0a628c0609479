"""Planted faults: each is found, and the same program done right has none."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flambeau._core.device import AcceleratorError
from flambeau._runtime.cuda import memory
from flambeau._runtime.cuda.fake import FakeDriver
from flambeau._runtime.cuda.fake_checks import Fault
from flambeau._runtime.cuda.memory import Block, Current

SIZE = 4096


class World:
    """A fake GPU with two streams, two events, and what programs do with them."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.a, self.b, self.c = (driver.new_stream() for _ in range(3))
        self.event, self.other = driver.new_event(), driver.new_event()
        self.host = np.zeros(SIZE, np.uint8)
        self.touch = driver.register(lambda *given: None, writes=(0,))

    def block(self, stream: int = 0) -> Block:
        Current.set_stream(0, stream)
        return Block(SIZE, 0)

    def write(self, block: Any, stream: int) -> None:
        self.driver.fill(getattr(block, "address", block), 1, 1, SIZE, stream)

    def read(self, block: Any, stream: int) -> None:
        at = getattr(block, "address", block)
        self.driver.to_host(self.host.ctypes.data, at, SIZE, stream)

    def copy(self, target: Block, source: Block, stream: int) -> None:
        self.driver.copy(target.address, source.address, SIZE, stream)

    def launch(self, target: int, source: int, stream: int) -> None:
        self.driver.launch(self.touch, (1,), 32, 0, stream, struct.pack("QQ", target, source))

    def order(self, before: int, after: int) -> None:
        self.driver.record(self.event, before)
        self.driver.wait_event(after, self.event)


Plant = Callable[[World, bool], None]
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    PLANTS[function.__name__] = function
    return function


@plant
def two_streams_write(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.a)
    if right:
        w.order(w.a, w.b)
    w.write(x, w.b)
    w.driver.synchronize()


@plant
def read_before_it_is_written(w: World, right: bool) -> None:
    x, y = w.block(), w.block()
    w.write(x, w.a)
    if right:
        w.order(w.a, w.b)
    w.copy(y, x, w.b)
    w.driver.synchronize()


@plant
def overwritten_while_it_is_read(w: World, right: bool) -> None:
    x, y = w.block(), w.block()
    w.write(x, w.a)
    w.driver.synchronize_stream(w.a)
    w.copy(y, x, w.a)
    if right:
        w.order(w.a, w.b)
    w.write(x, w.b)
    w.driver.synchronize()


@plant
def event_recorded_too_early(w: World, right: bool) -> None:
    x = w.block()
    if not right:
        w.driver.record(w.event, w.a)
    w.write(x, w.a)
    if right:
        w.driver.record(w.event, w.a)
    w.driver.wait_event(w.b, w.event)
    w.write(x, w.b)
    w.driver.synchronize()


@plant
def event_waited_for_before_it_is_recorded(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.a)
    if right:
        w.driver.record(w.event, w.a)
    w.driver.wait_event(w.b, w.event)
    w.driver.record(w.event, w.a)
    w.write(x, w.b)
    w.driver.synchronize()


@plant
def the_wrong_stream_waits(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.a)
    w.order(w.a, w.b if right else w.c)
    w.write(x, w.b)
    w.driver.synchronize()


@plant
def the_wrong_event_is_waited_for(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.a)
    w.driver.record(w.event, w.a)
    w.driver.record(w.other, w.c)
    w.driver.synchronize_event(w.event if right else w.other)
    w.write(x, w.b)
    w.driver.synchronize()


@plant
def an_event_recorded_again(w: World, right: bool) -> None:
    """The wait is for the last record, which stands in another stream."""
    x = w.block()
    w.write(x, w.a)
    w.driver.record(w.event, w.a)
    if not right:
        w.driver.record(w.event, w.c)
    w.driver.wait_event(w.b, w.event)
    w.write(x, w.b)
    w.driver.synchronize()


@plant
def the_host_reads_in_another_stream(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.a)
    w.read(x, w.a if right else w.b)
    w.driver.synchronize()


@plant
def the_host_waits_for_the_wrong_stream(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.a)
    w.driver.synchronize_stream(w.a if right else w.c)
    w.read(x, w.b)


@plant
def the_default_stream_is_no_barrier(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.a)
    if right:
        w.order(w.a, 0)
    w.write(x, 0)
    w.driver.synchronize()


@plant
def kernels_race(w: World, right: bool) -> None:
    x, y = w.block(), w.block()
    w.launch(x.address, y.address, w.a)
    if right:
        w.order(w.a, w.b)
    w.launch(y.address, x.address, w.b)
    w.driver.synchronize()


@plant
def given_back_while_another_stream_reads(w: World, right: bool) -> None:
    x, y = w.block(w.a), w.block(w.b)
    w.write(x, w.a)
    w.order(w.a, w.b)
    w.copy(y, x, w.b)
    if right:
        x.record_stream(w.b)
    del x
    w.driver.synchronize()
    memory.process_events(memory.allocator(0))
    w.driver.synchronize()


@plant
def used_after_it_was_given_back(w: World, right: bool) -> None:
    x = w.block()
    address = x.address
    if not right:
        del x
    w.write(address, 0)
    w.driver.synchronize()


@plant
def a_kernel_reads_after_it_was_given_back(w: World, right: bool) -> None:
    x, y = w.block(), w.block()
    address = x.address
    if not right:
        del x
    w.launch(y.address, address, 0)
    w.driver.synchronize()


@plant
def written_behind_the_end(w: World, right: bool) -> None:
    x = w.block()
    w.driver.fill(x.address, 1, 1, SIZE if right else SIZE + 8, 0)
    w.driver.synchronize()


@plant
def memory_of_the_driver_after_free(w: World, right: bool) -> None:
    x = w.driver.allocate(SIZE)
    if not right:
        w.driver.free(x)
    w.write(x, 0)
    if right:
        w.driver.free(x)


@plant
def freed_twice(w: World, right: bool) -> None:
    x = w.driver.allocate(SIZE)
    w.driver.free(x)
    if not right:
        w.driver.free(x)


@plant
def branches_of_a_graph_race(w: World, right: bool) -> None:
    x, y = w.block(), w.block()
    w.driver.begin_capture(w.a)
    w.write(x, w.a)
    w.order(w.a, w.b)
    w.write(y, w.b)
    w.write(x if not right else y, w.b)
    w.write(x, w.a)
    w.driver.record(w.other, w.b)
    w.driver.wait_event(w.a, w.other)
    w.driver.free_graph(w.driver.end_capture(w.a))


@plant
def a_replay_races_with_a_stream(w: World, right: bool) -> None:
    x = w.block()
    w.driver.begin_capture(w.a)
    w.write(x, w.a)
    graph = w.driver.end_capture(w.a)
    w.driver.launch_graph(graph, w.a)
    if right:
        w.order(w.a, w.b)
    w.write(x, w.b)
    w.driver.synchronize()
    w.driver.free_graph(graph)


@plant
def a_graph_forgets_to_join(w: World, right: bool) -> None:
    x = w.block()
    w.driver.begin_capture(w.a)
    w.order(w.a, w.b)
    w.write(x, w.b)
    if right:
        w.driver.record(w.other, w.b)
        w.driver.wait_event(w.a, w.other)
    w.driver.free_graph(w.driver.end_capture(w.a))


@plant
def a_graph_waits_for_work_outside(w: World, right: bool) -> None:
    x = w.block()
    w.write(x, w.c)
    w.driver.record(w.event, w.c)
    if right:
        w.driver.synchronize_event(w.event)
    else:  # something that is not done yet stands before it
        w.driver.queues.streams[w.c].waiting.clear()
        w.driver.record(w.event, w.c)
        w.driver.queues.event(w.event).mark.done = False  # type: ignore[union-attr]
    w.driver.begin_capture(w.a)
    w.driver.wait_event(w.a, w.event)
    w.driver.free_graph(w.driver.end_capture(w.a))


@plant
def a_capture_asks_for_a_result(w: World, right: bool) -> None:
    x = w.block()
    w.driver.begin_capture(w.a)
    w.write(x, w.a)
    try:
        if not right:
            w.driver.synchronize_stream(w.a)
    finally:
        w.driver.free_graph(w.driver.end_capture(w.a))


@plant
def devices_race(w: World, right: bool) -> None:
    x, y = w.block(), Block(SIZE, 1)
    w.write(x, w.a)
    if right:
        w.order(w.a, w.b)
    w.copy(y, x, w.b)
    w.driver.synchronize()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PLANTS)
def test_planted(plug: Any, name: str, seed: int) -> None:
    world = World(plug(seed, devices=2))
    with pytest.raises((Fault, AcceleratorError)):
        PLANTS[name](world, False)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PLANTS)
def test_done_right(plug: Any, name: str, seed: int) -> None:
    driver = plug(seed, devices=2)
    PLANTS[name](World(driver), True)
    driver.synchronize()
    assert driver.checks is not None and not driver.checks.faults


LEAKS: dict[str, Callable[[FakeDriver], object]] = {
    "allocations": lambda driver: driver.allocate(100),
    "events": lambda driver: driver.new_event(),
    "streams": lambda driver: driver.new_stream(),
    "pinned blocks": lambda driver: driver.allocate_host(100),
    "graphs": lambda driver: captured(driver),
}


def captured(driver: FakeDriver) -> int:
    stream = driver.new_stream()
    driver.begin_capture(stream)
    graph = driver.end_capture(stream)
    driver.free_stream(stream)
    return graph


@pytest.mark.parametrize("kind", LEAKS)
def test_leaks_are_listed(plug: Any, kind: str) -> None:
    driver = plug(0)
    assert driver.leaks() == {}
    LEAKS[kind](driver)
    assert driver.leaks() == {kind: 1}


def test_given_back_memory_is_poisoned(plug: Any) -> None:
    driver = plug(0)
    block = Block(SIZE, 0)
    driver.fill(block.address, 1, 1, SIZE, 0)
    address = block.address
    del block
    again = Block(SIZE, 0)
    found = np.zeros(SIZE, np.uint8)
    driver.to_host(found.ctypes.data, again.address, SIZE, 0)
    assert again.address == address and (found == 0xFF).all()


def test_the_host_cannot_touch_device_memory() -> None:
    """It ends the process, so this happens in another one."""
    import subprocess
    import sys

    program = (
        "import ctypes; from flambeau._runtime.cuda.fake import FakeDriver\n"
        "driver = FakeDriver(); ctypes.string_at(driver.allocate(100), 4)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == -11


def test_there_are_enough() -> None:
    assert len(PLANTS) >= 20


def test_pinned_memory_that_is_overwritten_too_early(plug: Any) -> None:
    """The copy may come before or after it: some seed shows each."""
    seen = set()
    for seed in range(20):
        driver = plug(seed)
        memory.allocators.clear()
        memory.Current.arenas.clear()
        host = driver.allocate_host(4)
        view = np.frombuffer(driver.pinned[host][1], np.uint32)
        x = driver.allocate(4)
        view[0] = 1
        driver.to_device(x, host, 4, 0)
        view[0] = 2
        driver.synchronize()
        found = np.zeros(1, np.uint32)
        driver.to_host(found.ctypes.data, x, 4, 0)
        seen.add(int(found[0]))
    assert seen == {1, 2}
