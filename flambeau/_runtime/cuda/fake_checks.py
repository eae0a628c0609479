"""What the fake driver finds out about programs: races, uses after free, leaks.

Every piece of work has a vector clock: what it is certain to come after, by streams' order, events
and waits of the host. Two pieces of work of which neither comes after the other must not touch the
same bytes, unless both only read them. That is found without the two having met in time.

Memory that was given back is filled with ones (nan in every float type) when its own stream comes
that far, and that counts as a write: who still uses it races with it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from typing import Any

from flambeau._runtime.cuda.fake_queues import Access, Node, Work

Clock = dict[int, int]
KINDS = ("read", "write")


class Fault(RuntimeError):
    """Something that would go wrong on a GPU, some day."""


class Touch:
    """An access that was made, and when: the stream's own count."""

    __slots__ = ("end", "start", "stream", "tick", "writes")

    def __init__(self, access: Access, stream: int, tick: int) -> None:
        self.start, self.end = access.address, access.address + access.nbytes
        self.stream, self.tick, self.writes = stream, tick, access.writes


class Checks:
    """The clocks of all streams and the host, and what was touched since.

    Args:
        owner: `owner(address)` is the allocation of the driver that an address lies in, or None.
        poison: fills memory that was given back: poison(block).
    """

    def __init__(self, owner: Callable[[int], int | None], poison: Callable[[Any], None]) -> None:
        self.owner, self.poison = owner, poison
        self.faults: list[str] = []
        self.is_poisoning = False
        self.late: str | None = None
        self.host: Clock = {}
        self.clocks: dict[int, Clock] = {}
        self.touched: dict[int, list[Touch]] = {}
        self.blocks: dict[int, int] = {}
        """Address -> bytes of blocks that are in use."""
        self.since: dict[int, int] = {}
        """Address -> how many blocks had been taken before that one."""
        self.count = 0
        self.starts: list[int] = []
        self.segments: dict[int, bool] = {}
        """Allocations of the driver that are cut into blocks -> whether they belong to a private
        pool, whose memory graphs keep."""

    def fault(self, text: str) -> None:
        """Note a fault, and end the program there; where a block dies nothing can be raised, so
        what comes next is ended."""
        self.faults.append(text)
        if self.is_poisoning:
            self.late = self.late or text
        else:
            raise Fault(text)

    def raise_late(self) -> None:
        """End the program for a fault that was found when a block died."""
        text, self.late = self.late, None
        if text:
            raise Fault(text)

    # ---- clocks

    def put(self, stream: int, work: Work, accesses: Iterable[Access],
            nodes: Iterable[Node]) -> None:  # fmt: skip
        """Work is put into a stream: check what it touches, or what the nodes of its graph do."""
        if not self.is_poisoning:
            self.raise_late()
        clock = self.clocks.setdefault(stream, {})
        join(clock, self.host)
        for other in work.waits:
            join(clock, other.clock)
        clock[stream] = clock.get(stream, 0) + 1
        work.clock = dict(clock)
        repeated: list[tuple[Access, int | None]] = [
            (access, node.noted) for node in nodes for access in node.accesses
        ]
        for access, noted in repeated or [(access, None) for access in accesses]:
            if access.nbytes:
                if not self.is_poisoning:
                    self.check_use(access, noted)
                self.check_races(stream, clock, access)

    def noted(self, accesses: Iterable[Access]) -> int:
        """Work is noted for a graph; how many blocks have been taken."""
        for access in accesses:
            if access.nbytes and not self.is_poisoning:
                self.check_use(access)
        return self.count

    def waited(self, stream: int, last: Work | None) -> None:
        """The host waited for a stream."""
        if not self.is_poisoning:
            self.raise_late()
        if last is not None:
            join(self.host, last.clock)

    def host_waited(self, work: Work) -> None:
        """The host waited for a piece of work."""
        join(self.host, work.clock)

    # ---- memory

    def check_races(self, stream: int, clock: Clock, access: Access) -> None:
        """Compare an access with all that touched the same bytes."""
        key = self.owner(access.address) or 0
        touches = self.touched.setdefault(key, [])
        end = access.address + access.nbytes
        kept = []
        for touch in touches:
            is_before = clock.get(touch.stream, 0) >= touch.tick
            meets = touch.start < end and access.address < touch.end
            if meets and not is_before and (touch.writes or access.writes):
                self.fault(
                    f"race: a {KINDS[access.writes]} in stream {stream:#x} of {access.nbytes} "
                    f"bytes at {access.address:#x} is not ordered after a {KINDS[touch.writes]} "
                    f"in stream {touch.stream:#x}"
                )
            is_covered = access.address <= touch.start and touch.end <= end
            if not (is_before and is_covered and (access.writes or not touch.writes)):
                kept.append(touch)
        kept.append(Touch(access, stream, clock[stream]))
        self.touched[key] = kept

    def check_use(self, access: Access, noted: int | None = None) -> None:
        """Whether memory is somebody's. What a graph repeats has to be the same block's still, one
        of the `noted` that had been taken when it was noted, or a private pool's, where no block
        needs to be."""
        owner = self.owner(access.address)
        if owner is None:
            self.fault(f"use after free: {access.address:#x} is no memory of the device")
        if owner not in self.segments or (noted is not None and self.segments[owner]):
            return
        place = bisect_right(self.starts, access.address) - 1
        start = self.starts[place] if place >= 0 else 0
        if access.address + access.nbytes > start + self.blocks.get(start, 0):
            self.fault(f"use after free: {access.nbytes} bytes at {access.address:#x} belong "
                       "to no block that is in use")  # fmt: skip
        elif noted is not None and self.since[start] >= noted:
            self.fault(f"use after free: a graph repeats what was done to {access.nbytes} bytes at "
                       f"{access.address:#x}, which are another block's now")  # fmt: skip

    def room(self, address: int) -> int:
        """Bytes from an address to the end of its block."""
        place = bisect_right(self.starts, address) - 1
        start = self.starts[place] if place >= 0 else 0
        return max(start + self.blocks.get(start, 0) - address, 1)

    def taken(self, block: Any) -> None:
        """A block was taken."""
        insort(self.starts, block.address)
        self.blocks[block.address] = block.nbytes
        self.since[block.address] = self.count
        self.count += 1

    def given(self, block: Any) -> None:
        """A block was given back; its own stream may still work on it."""
        del self.blocks[block.address], self.since[block.address]
        del self.starts[bisect_right(self.starts, block.address) - 1]

    def freed(self, block: Any) -> None:
        """No other stream is expected to use a block any more."""
        self.is_poisoning = True
        try:
            self.poison(block)
        finally:
            self.is_poisoning = False

    def grown(self, segment: Any) -> None:
        """A segment is cut into blocks from now on."""
        self.segments[segment.address] = segment.arena.pool is not None

    def dropped(self, segment: Any) -> None:
        """A segment is no more."""
        self.segments.pop(segment.address, None)
        self.touched.pop(segment.address, None)

    def graph(self, nodes: list[Node]) -> None:
        """Compare all pieces of work of a graph."""
        before = [node.ancestors() for node in nodes]
        for place, node in enumerate(nodes):
            for other_place in range(place):
                other = nodes[other_place]
                if other not in before[place] and node not in before[other_place]:
                    self.compare(node, other)

    def compare(self, node: Node, other: Node) -> None:
        """Two pieces of work of a graph that have no order must not meet."""
        for mine in node.accesses:
            for theirs in other.accesses:
                meets = (mine.address < theirs.address + theirs.nbytes
                         and theirs.address < mine.address + mine.nbytes)  # fmt: skip
                if meets and (mine.writes or theirs.writes):
                    self.fault(f"race: two nodes of a graph, without an order, touch "
                               f"{mine.address:#x}")  # fmt: skip


def join(clock: Clock, other: Clock) -> None:
    """Let a clock come after another one."""
    for stream, tick in other.items():
        if clock.get(stream, 0) < tick:
            clock[stream] = tick
