"""The caching allocator: pieces of large segments, kept for reuse by the stream that had them.

A segment is memory that the driver gave. It is cut into pieces; a piece that is given back joins
its free neighbours and becomes a hole again, and a request takes the smallest hole that is large
enough. The rules of sizes are PyTorch's, so that programs see its numbers:

    asked for      rounded up to      taken from a segment of
    <= 1 MiB       512 bytes          2 MiB (the small pool)
    < 10 MiB       512 bytes          20 MiB (the large pool)
    more           512 bytes          its own size, rounded up to 2 MiB

Every stream has holes of its own (`Arena`): work of a stream is done in order, so what it gave back
can be taken again before the device has come that far. So has every graph (a private pool), whose
addresses must stay its own.

Pieces of sizes that are often asked for stay cut as long as nothing else is needed (`Arena.bins`):
the next request of that size takes one with a look into a dict. A request that finds none looks
among the holes (`Arena.offer`), and joins all pieces before a new segment is asked for. So programs
that ask for little get PyTorch's addresses and counts, and loops take their blocks quickly.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop
from typing import Any

from flambeau._runtime.cuda import errors, settings, statistics
from flambeau._runtime.cuda.driver import Driver
from flambeau._runtime.cuda.statistics import GRAIN, is_small

MIB = 1 << 20
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT = 10 * MIB
"""Requests from this size on get a segment of their own."""
SEGMENT_GRAIN = 2 * MIB
OFTEN = 4
"""A size that is asked for more often gets a bin."""
SPARE = 4
"""The part of all memory that `Allocator.spare` may be."""
RESTLESS = 2
"""Requests served by joining all pieces after which there are too many of them."""
TOO_LARGE = 2
"""How many times as large as a request a piece is that had better wait for its own size."""
NOBODY = 2
"""References to a list that only a dict has, and the call that counts them."""

PoolId = tuple[int, int]
"""What tells a private pool from others."""


class Segment:
    """Memory that the driver gave."""

    __slots__ = ("address", "age", "arena", "piece", "size", "small")

    def __init__(self, arena: Arena, address: int, size: int, small: bool) -> None:
        self.arena, self.address, self.size, self.small = arena, address, size, small
        self.piece: Piece  # its first one
        self.age = 0  # when its last hole became one, in requests


class Piece:
    """A part of a segment, and its neighbours there."""

    __slots__ = ("address", "after", "before", "is_hole", "segment", "size")

    def __init__(self, segment: Segment, address: int, size: int) -> None:
        self.segment, self.address, self.size = segment, address, size
        self.before: Piece | None = None
        self.after: Piece | None = None
        self.is_hole = False

    @property
    def is_split(self) -> bool:
        """Whether it is not the whole segment."""
        return self.before is not None or self.after is not None


class Arena:
    """What a stream may take, within a private pool or outside of all."""

    def __init__(self, allocator: Allocator, stream: int, pool: PoolId | None) -> None:
        self.allocator, self.stream, self.pool = allocator, stream, pool
        self.log = allocator.statistics.log
        self.bins: dict[int, list[int]] = {}
        """Size in GRAINs -> a heap of the addresses of pieces that were given back."""
        self.odd: dict[int, list[int]] = {}
        """Bytes that were asked for -> the same, of pieces that are larger than that."""
        self.codes: dict[int, int] = {}
        """Address of such a piece -> its number in the log."""
        self.rare: list[int] = []
        """The same of pieces of sizes that are not asked for often, and of all while somebody
        watches: these join their neighbours with the next request that finds no bin."""
        self.asked: dict[int, int] = {}
        """How often a size was asked for since the cache was last emptied."""
        self.joins = 0
        """How often a request was served by joining all pieces."""
        self.holes: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        """Of the small pool, and of the large one: size and address, sorted."""

    def join(self) -> None:
        """Make holes of all pieces that were given back."""
        for addresses in (*self.bins.values(), *self.odd.values(), self.rare):
            while addresses:
                self.allocator.make_hole(addresses.pop())

    def forget(self) -> None:
        """No size has been asked for often, but those of blocks that are in use."""
        self.asked.clear()
        for kept in (self.bins, self.odd):
            for size in list(kept):
                if sys.getrefcount(kept[size]) <= NOBODY:
                    del kept[size]

    def offer(self, size: int) -> None:
        """Make holes for a request of what waits for no size of its own, and of the piece in a bin
        that fits better than all holes; the others go on waiting. Where pieces are joined again
        and again, one that is much too large goes on waiting, too."""
        while self.rare:
            self.allocator.make_hole(self.rare.pop())
        holes, small = self.holes[is_small(size)], is_small(size)
        place = bisect_left(holes, (size, 0))
        least = holes[place][0] if place < len(holes) else sys.maxsize
        if self.is_restless:
            least = min(least, TOO_LARGE * size)
        fits = [have for have, addresses in self.bins.items()
                if addresses and size <= have * GRAIN < least
                and self.is_small_at(addresses[0]) == small]  # fmt: skip
        if fits:
            self.allocator.make_hole(heappop(self.bins[min(fits)]))

    @property
    def is_restless(self) -> bool:
        """Whether a loop seems to have blocks that only fit when pieces are joined every time: to
        cut them anew takes longer than all else that it asks for."""
        return self.joins > RESTLESS and self.pool is None

    def is_often(self, grains: int) -> bool:
        """Count a request, and say whether its size gets a bin."""
        count = self.asked[grains] = self.asked.get(grains, 0) + 1
        return count > OFTEN

    def is_small_at(self, address: int) -> bool:
        """Whether a piece lies in the small pool."""
        return self.allocator.pieces[address].segment.small

    def best(self, size: int) -> Piece | None:
        """The smallest hole for a size, of the lowest address; it is one no more."""
        holes = self.holes[is_small(size)]
        place = bisect_left(holes, (size, 0))
        if place == len(holes) or not self.allocator.fits(size, holes[place][0]):
            return None
        piece = self.allocator.pieces[holes.pop(place)[1]]
        piece.is_hole = False
        return piece

    def add(self, piece: Piece) -> None:
        """Make a piece a hole."""
        piece.is_hole = True
        insort(self.holes[piece.segment.small], (piece.size, piece.address))

    def remove(self, piece: Piece) -> None:
        """Make a hole a piece."""
        holes = self.holes[piece.segment.small]
        del holes[bisect_left(holes, (piece.size, piece.address))]
        piece.is_hole = False


class Allocator:
    """The memory of one device."""

    def __init__(self, driver: Driver, index: int) -> None:
        self.driver, self.index = driver, index
        self.settings = settings.chosen()
        self.statistics = statistics.Statistics()
        self.pieces: dict[int, Piece] = {}
        self.segments: dict[int, Segment] = {}
        self.arenas: dict[tuple[PoolId | None, int], Arena] = {}
        self.uses: dict[PoolId, int] = {}
        """Private pool -> how many graphs and contexts use it."""
        self.total = driver.total_memory(index)
        self.fraction = self.settings.per_process_memory_fraction
        self.limit = int(self.fraction * self.total)
        self.keeps = settings.caches()
        self.requests = 0
        self.spare = 0
        """Bytes of segments that joined pieces would have saved."""
        self.watchers: list[Any] = []

    # ---- taking

    def arena(self, stream: int, pool: PoolId | None = None) -> Arena:
        """What a stream takes from, made when it is first asked for."""
        key = (pool, stream)
        if key not in self.arenas:
            self.arenas[key] = Arena(self, stream, pool)
        return self.arenas[key]

    def find(self, arena: Arena, nbytes: int) -> Piece:
        """A piece for a request. Raises torch.OutOfMemoryError."""
        size = self.rounded(nbytes)
        self.requests += 1
        arena.offer(size)
        piece = arena.best(size)
        if piece is None:  # pieces that wait for requests of their own size stay whole till now
            piece = self.more(arena, size, nbytes)
        count, nbytes_split = (-1, -piece.size) if piece.is_split else (0, 0)
        rest = piece.size - size
        if self.is_cut(piece, size, rest):
            self.cut(piece, size)
            count, nbytes_split = count + 1, nbytes_split + rest
        self.statistics.count_split(piece.segment.small, count, nbytes_split)
        return piece

    def more(self, arena: Arena, size: int, nbytes: int) -> Piece:
        """A piece where no hole is large enough: of joined pieces, else of a new segment. Where
        pieces are joined again and again a segment comes first, as long as these are few bytes
        beside those that there are."""
        if arena.is_restless and self.has_spare(segment_size(size)):
            address = self.ask(segment_size(size))
            if address is not None:
                self.spare += segment_size(size)
                return self.segment(arena, address, size)
        arena.join()
        piece = arena.best(size)
        if piece is None:
            return self.grow(arena, size, nbytes)
        arena.joins += 1
        return piece

    def has_spare(self, nbytes: int) -> bool:
        """Whether a segment may be asked for that joined pieces would save."""
        part = max(self.statistics.now("reserved_bytes") // SPARE, LARGE_SEGMENT)
        return self.spare + nbytes <= part

    def rounded(self, nbytes: int) -> int:
        """The size of a block for a request."""
        size = max(-(-nbytes // GRAIN), 1) * GRAIN
        steps = self.settings.roundup_power2_divisions.get(size.bit_length() - 1, 0)
        if steps < 2 or size < GRAIN * steps:  # noqa: PLR2004
            return size
        step = (1 << size.bit_length() - 1) // steps
        return -(-size // step) * step

    def fits(self, size: int, hole: int) -> bool:
        """Whether a hole that is large enough may serve a request."""
        most = self.settings.max_split_size
        if most is None:
            return True
        if size < most:
            return hole < most
        return hole < size + self.settings.max_non_split_rounding

    def is_cut(self, piece: Piece, size: int, rest: int) -> bool:
        """Whether what a request leaves of a piece becomes a hole."""
        if piece.segment.small:
            return rest >= GRAIN
        most = self.settings.max_split_size
        return rest > statistics.LIMIT and (most is None or size < most)

    def cut(self, piece: Piece, size: int) -> None:
        """Make a hole of what is behind the first `size` bytes."""
        rest = Piece(piece.segment, piece.address + size, piece.size - size)
        rest.before, rest.after, piece.after = piece, piece.after, rest
        if rest.after is not None:
            rest.after.before = rest
        piece.size = size
        self.pieces[rest.address] = rest
        piece.segment.arena.add(rest)

    def make_hole(self, address: int) -> None:
        """Join a piece with the holes beside it."""
        piece = self.pieces[address]
        arena = piece.segment.arena
        before, after = piece.before, piece.after
        count, nbytes = 0, 0
        if before is not None and before.is_hole:
            count, nbytes = count - 1, nbytes - before.size
            arena.remove(before)
            piece = self.absorb(before, piece)
        if after is not None and after.is_hole:
            count, nbytes = count - 1, nbytes - after.size
            arena.remove(after)
            piece = self.absorb(piece, after)
        if piece.is_split:
            count, nbytes = count + 1, nbytes + piece.size
        self.statistics.count_split(piece.segment.small, count, nbytes)
        piece.segment.age = self.requests
        arena.add(piece)
        if not self.keeps and not piece.is_split:
            self.drop(piece.segment)

    def absorb(self, piece: Piece, after: Piece) -> Piece:
        """One piece of two neighbours."""
        piece.size += after.size
        piece.after = after.after
        if after.after is not None:
            after.after.before = piece
        del self.pieces[after.address]
        return piece

    # ---- segments

    def grow(self, arena: Arena, size: int, nbytes: int) -> Piece:
        """A new segment as one piece. Raises torch.OutOfMemoryError."""
        wanted = segment_size(size)
        self.collect_garbage(wanted)
        address = self.ask(wanted)
        if address is None:
            self.statistics.events["num_alloc_retries"] += 1
            self.release()
            address = self.ask(wanted)
        if address is None:
            self.statistics.events["num_ooms"] += 1
            from flambeau._runtime.cuda.out_of_memory import report

            raise report(self, nbytes, wanted)
        return self.segment(arena, address, size)

    def segment(self, arena: Arena, address: int, size: int) -> Piece:
        """New memory of the driver, for a request of a size, as one piece."""
        wanted = segment_size(size)
        segment = Segment(arena, address, wanted, is_small(size))
        segment.piece = self.pieces[address] = Piece(segment, address, wanted)
        self.segments[address] = segment
        self.statistics.change("segment", segment.small, 1)
        self.statistics.change("reserved_bytes", segment.small, wanted)
        self.statistics.events["num_device_alloc"] += 1
        for watcher in self.watchers:
            watcher.grown(segment)
        return segment.piece

    def ask(self, size: int) -> int | None:
        """Memory of the driver, None where it has no more, or the process may have no more."""
        if self.limit < self.total and self.statistics.now("reserved_bytes") + size > self.limit:
            return None
        try:
            return self.driver.allocate(size)
        except errors.CudaError as error:
            if error.error_code != errors.OUT_OF_MEMORY:
                raise
            return None

    def release(self, pool: PoolId | None = None) -> None:
        """Give unused segments back to the driver: all, or those of one private pool."""
        for (owner, _), arena in list(self.arenas.items()):
            unused = owner is None or not self.uses.get(owner)
            if owner == pool or (pool is None and unused):
                arena.join()
                arena.forget()
                for segment in list(self.unused(arena)):
                    self.drop(segment)

    def unused(self, arena: Arena) -> Iterator[Segment]:
        """The segments of an arena of which nothing is in use."""
        for size, address in (*arena.holes[True], *arena.holes[False]):
            segment = self.segments.get(address)
            if segment is not None and segment.size == size:
                yield segment

    def drop(self, segment: Segment) -> None:
        """Give a segment that is one hole back to the driver."""
        segment.arena.remove(segment.piece)
        del self.pieces[segment.address], self.segments[segment.address]
        self.driver.free(segment.address)
        self.statistics.change("segment", segment.small, -1)
        self.statistics.change("reserved_bytes", segment.small, -segment.size)
        self.statistics.events["num_device_free"] += 1
        for watcher in self.watchers:
            watcher.dropped(segment)

    def collect_garbage(self, wanted: int) -> None:
        """Above the threshold, give segments back that have been unused for long."""
        share = self.settings.garbage_collection_threshold
        mark = share * self.limit
        excess = self.statistics.now("reserved_bytes") + wanted - mark
        if not share or excess <= 0:
            return
        found = []
        for (pool, _), arena in self.arenas.items():
            if pool is None:
                arena.join()
                found += [segment for segment in self.unused(arena) if not segment.small]
        for segment in sorted(found, key=lambda segment: segment.age):
            if excess <= 0:
                return
            excess -= segment.size
            self.drop(segment)

    # ---- questions

    def settle(self) -> None:
        """Make all that was given back holes, and count everything."""
        for arena in self.arenas.values():
            arena.join()
        self.statistics.settle()


def segment_size(size: int) -> int:
    """The bytes to ask the driver for, where a block of a size is needed."""
    if is_small(size):
        return SMALL_SEGMENT
    if size < OWN_SEGMENT:
        return LARGE_SEGMENT
    return -(-size // SEGMENT_GRAIN) * SEGMENT_GRAIN
