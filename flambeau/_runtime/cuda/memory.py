"""Device memory by the block: it goes back when nobody holds it any more.

    block = Block(nbytes, device)       # of the current stream of that device
    block.address

Taking and giving back are the hottest lines of every operator (benchmarks/cuda_memory.py): both end
in a heap of addresses of the right size, and a number in the allocator's log. All else is in
`allocator.py`.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from flambeau._runtime.cuda.driver import Driver, driver
from flambeau._runtime.cuda.statistics import GRAIN, LONG

if TYPE_CHECKING:  # the allocator is loaded when there is a device
    from flambeau._runtime.cuda.allocator import Allocator, Arena


class OfThread(threading.local):
    """Of a thread: the device and the stream that work is put into; 0 is the default stream."""

    device = 0
    stream = 0

    def __init__(self) -> None:
        self.streams: dict[int, int] = {}
        """Device -> its current stream, where it is another one than the default stream."""
        self.pools: dict[int, tuple[int, int]] = {}
        """Device -> the private pool that memory is taken from, where there is one."""
        self.arenas: dict[int, Arena] = {}
        """Device -> what its current stream takes from."""

    def set_device(self, index: int) -> None:
        """Choose the device of this thread."""
        self.device, self.stream = index, self.streams.get(index, 0)

    def set_stream(self, device: int, stream: int) -> None:
        """Choose the stream of a device."""
        self.streams[device] = stream
        self.arenas.pop(device, None)
        if device == self.device:
            self.stream = stream

    def set_pool(self, device: int, pool: tuple[int, int] | None) -> None:
        """Choose the private pool of a device, None for what all share."""
        self.pools.pop(device, None)
        if pool is not None:
            self.pools[device] = pool
        self.arenas.pop(device, None)


Current = OfThread()


class On:
    """`with On(index):` work of this thread goes to a device, to its current stream."""

    __slots__ = ("before", "index")

    def __init__(self, index: int) -> None:
        self.index = index

    def __enter__(self) -> None:
        self.before = Current.device
        Current.set_device(self.index)
        running()

    def __exit__(self, *exc: object) -> None:
        Current.set_device(self.before)
        running()


HERE: Any = nullcontext()


def there(index: int | None) -> Any:
    """A context in which work of this thread goes to a device: `On`, where it is another one."""
    return HERE if index == Current.device else On(index or 0)


def running(device: int | None = None) -> Driver:
    """The driver, for code that is only reached where there is one; it works on `device`, by
    default the current one.

    Raises:
        AssertionError: there is none.
    """
    found = driver()
    if found is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    found.use(Current.device if device is None else device)
    return found


allocators: dict[int, Allocator] = {}
"""Device -> its allocator."""
making = threading.Lock()


def allocator(device: int) -> Allocator:
    """The allocator of a device, made when it is first asked for."""
    with making:
        if device not in allocators:
            from flambeau._runtime.cuda.allocator import Allocator

            made = allocators[device] = Allocator(running(device), device)
            if made.driver.watcher is not None:
                made.watchers.append(made.driver.watcher)
        return allocators[device]


def arena(device: int) -> Arena:
    """What this thread takes memory of a device from."""
    found = Current.arenas.get(device)
    if found is None:
        stream = Current.streams.get(device, 0)
        found = allocator(device).arena(stream, Current.pools.get(device))
        Current.arenas[device] = found
    return found


lock = threading.RLock()
"""Held while pieces are cut, joined or asked of the driver."""


class Block:
    """Memory of a device, `address` to `address + nbytes`; of 0 bytes it has the address 0.

    Raises torch.OutOfMemoryError.
    """

    __slots__ = ("__weakref__", "address", "arena", "code", "device", "kept", "nbytes", "streams")

    address: int
    arena: Arena
    kept: list[int]
    """Where the address waits after it was given back."""
    code: int
    streams: set[int] | None
    """The other streams that use it, None where only its own does; a set, even an empty one, where
    giving it back is more than putting it away."""

    def __init__(self, nbytes: int, device: int) -> None:
        # try, and attributes one by one: this is all that most allocations are
        self.nbytes, self.device = nbytes, device
        try:
            arena = self.arena = Current.arenas[device]
            kept = self.kept = arena.bins[(nbytes + 511) >> 9]
            self.address = heappop(kept)
            self.code = nbytes
            self.streams = None
            arena.log.append(nbytes)
        except (KeyError, IndexError):
            found(self)

    def __del__(self) -> None:
        if self.streams is None:
            heappush(self.kept, self.address)
            log = self.arena.log
            log.append(-self.code)
            if len(log) > LONG:
                self.arena.allocator.statistics.settle()
        else:
            give_back(self)

    def record_stream(self, stream: int) -> None:
        """Let no other stream have the memory before the work that is now in `stream` is done."""
        if stream != self.arena.stream and self.address:
            self.streams = (self.streams or set()) | {stream}


def found(block: Block) -> None:
    """Take memory for a block where none of its size waits."""
    device, nbytes = block.device, block.nbytes
    block.kept, block.code, block.streams, block.address = [], 0, None, 0
    block.arena = where = arena(device)
    if not nbytes:
        return
    try:
        block.kept = where.odd[nbytes]
        block.address = heappop(block.kept)
        block.code = where.codes[block.address]
    except (KeyError, IndexError):
        with lock:
            search(block)
    where.log.append(block.code)
    for watcher in where.allocator.watchers:
        watcher.taken(block)


def search(block: Block) -> None:
    """Take a piece out of a hole, and say where it goes when it is given back."""
    where, nbytes = block.arena, block.nbytes
    owner = where.allocator
    owner.driver.use(owner.index)
    process_events(owner)
    piece = owner.find(where, nbytes)
    block.address = piece.address
    block.code = owner.statistics.code(nbytes, piece.size)
    if owner.watchers or not owner.keeps:
        block.kept, block.streams = where.rare, set()
    elif not where.is_often(-(-nbytes // GRAIN)):
        block.kept = where.rare
    elif block.code == nbytes:
        block.kept = where.bins.setdefault(-(-nbytes // GRAIN), [])
    else:
        block.kept = where.odd.setdefault(nbytes, [])
        where.codes[piece.address] = block.code
    if owner.index != Current.device:
        owner.driver.use(Current.device)


# ---- giving back what is watched, or what several streams use


class Waiting:
    """A block that was given back while other streams may still use it, and events in them.

    While a graph is captured no event of the streams outside can be recorded: that is done later.
    """

    __slots__ = ("address", "arena", "code", "events", "kept", "nbytes", "streams")

    def __init__(self, block: Block, streams: set[int]) -> None:
        self.nbytes, self.streams = block.nbytes, streams
        self.address, self.arena, self.code = block.address, block.arena, block.code
        self.kept = block.kept
        self.events: list[int] = []

    def record(self) -> None:
        """Put events behind what is now in the streams."""
        use = self.arena.allocator.driver
        self.events += [recorded(use, stream) for stream in self.streams]
        self.streams = set()


waiting: dict[int, list[Waiting]] = {}
"""Device -> its blocks that wait for events."""


def give_back(block: Block) -> None:
    """Give a block back that other streams use, or that is watched."""
    where = block.arena
    owner = where.allocator
    for watcher in owner.watchers:
        watcher.given(block)
    if not block.streams:
        heappush(block.kept, block.address)
        where.log.append(-block.code)
        for watcher in owner.watchers:
            watcher.freed(block)
        if not owner.keeps:
            with lock:
                where.join()
        return
    with lock:
        owner.driver.use(owner.index)
        owner.statistics.wait(block.code)
        held = Waiting(block, block.streams)
        if not capturing.count:
            held.record()
        waiting.setdefault(owner.index, []).append(held)
        owner.driver.use(Current.device)


def recorded(use: Driver, stream: int) -> int:
    """A new event at the end of a stream."""
    event = use.new_event()
    use.record(event, stream)
    return event


def process_events(owner: Allocator, wait: bool = False) -> None:
    """Keep the blocks for reuse whose other streams have done with them.

    Args:
        owner: whose blocks.
        wait: wait for all of them.
    """
    blocks = waiting.get(owner.index)
    if not blocks or capturing.count:
        return
    for block in list(blocks):
        block.record()
        if wait:
            for event in block.events:
                owner.driver.synchronize_event(event)
        if all(owner.driver.event_done(event) for event in block.events):
            blocks.remove(block)
            for event in block.events:
                owner.driver.free_event(event)
            owner.statistics.waited(block.code)
            heappush(block.kept, block.address)
            for watcher in owner.watchers:
                watcher.freed(block)


class capturing:  # noqa: N801  (a count, like `waiting`)
    """How many streams are being captured: meanwhile no event may be asked."""

    count = 0


def empty_cache() -> None:
    """Give all segments of which nothing is in use back to the driver."""
    with lock:
        for owner in allocators.values():
            owner.driver.use(owner.index)
            process_events(owner, wait=True)
            owner.release()
        if allocators:
            running()


def blocks() -> list[Block]:
    """The blocks that are in use; the garbage collector knows all of them."""
    import gc

    return [found for found in gc.get_objects() if type(found) is Block]


# ---- watchers


def watch(device: int, watcher: Any) -> None:
    """Tell a watcher of every block: `taken`, `given` back, `freed` when no stream uses it; and of
    segments: `grown`, `dropped`. Blocks that are in use already are told when they come back."""
    owner = allocator(device)
    with lock:
        owner.watchers.append(watcher)
        look_at_all(owner)


def look_at_all(owner: Allocator) -> None:
    """Let every block, those that are in use too, take the long way back."""
    for where in owner.arenas.values():
        where.join()
        where.bins.clear()
        where.odd.clear()
    for block in blocks():
        if block.device == owner.index and block.address:
            block.streams, block.kept = block.streams or set(), block.arena.rare


def keep(device: int, keeps: bool) -> None:
    """Keep what is given back for reuse, or give it to the driver as soon as it is a segment."""
    owner = allocator(device)
    with lock:
        owner.keeps = keeps
        look_at_all(owner)


def unwatch(device: int, watcher: Any) -> None:
    """Tell a watcher no more."""
    with lock:
        allocator(device).watchers.remove(watcher)
