"""The kernels of the memory pool: one heap of large blocks, cut to size and joined again.

The heap is a range of addresses that was reserved once. It consists of blocks that follow each
other without gaps; each begins with a header of 64 bytes. Free blocks stand in lists by size
(sixteen sizes to a doubling), a bitmap says which lists have any, and neighbours that are both
free are joined at once ("two-level segregated fit", Masmano et al. 2004, with one flat bitmap).
New memory is taken from the system only when no free block is large enough, so what the process
holds stays close to the most that was ever alive at a time.

NumPy calls `pool_malloc` and its kin for the memory of arrays (NEP 49). Requests below `small`
bytes, and those that the heap cannot serve, go on to the functions that NumPy uses otherwise.
"""

from __future__ import annotations

import mmap
import platform

from flambeau._compiler.language import (
    atomic_exchange,
    atomic_store,
    call_result,
    cast,
    copy_memory,
    count_leading_zeros,
    count_trailing_zeros,
    external,
    i8,
    i32,
    i64,
    intrinsic,
    larger,
    pointer,
    smaller,
    static,
    u64,
    zero_memory,
)
from flambeau._compiler.native import native

X86 = platform.machine().lower() in ("x86_64", "amd64", "i686")
PAGE = max(mmap.PAGESIZE, 4096)
GRAIN_BITS = 12
GRAIN = 1 << GRAIN_BITS  # sizes of blocks, headers included, are multiples of this
GROWTH = 32 << 20  # the heap grows by multiples of this (and never touches what nobody asked for)
HUGE = 2 << 20  # a free block this large is given back in pieces that are whole huge pages
WINDOW = 4096  # allocations after which the free memory is compared with what was in use
SLACK = 64 << 20
BINS = 640
BIN_WORDS = BINS // 64
LOOKS = 16  # blocks of a list of about the right size that are looked at

# The state, in words of 64 bits.
LOCK = 0
BASE, END, LIMIT, LAST = 8, 9, 10, 11  # the heap: start, end so far, end at most, its last block
SMALL, SAVED, FAULT, FAULT_AT = 12, 13, 14, 15
LIVE, LIVE_PEAK, TAKEN, FREED = 16, 17, 18, 19  # bytes of payload; TAKEN and FREED only grow
COUNT, COUNT_PEAK, TAKES, FREES = 20, 21, 22, 23  # blocks
HELD, HELD_PEAK, DIRTY = 24, 25, 26  # bytes of blocks in use + bytes free but kept; the latter
GROWTHS, TRIMS, REFUSED = 27, 28, 29
RECENT, BEFORE, NEXT_LOOK = 30, 31, 32  # most bytes in use in this window and in the last one
CAP = 33  # at most so many bytes are kept free
SYSTEM = 40  # context and malloc, calloc, realloc, free of NumPy's own
MAP = 48
HEADS = 64
WORDS = HEADS + BINS

# A header, in words. NEXT and PREVIOUS link free blocks of about one size.
SIZE, BELOW, STATUS, PAYLOAD, NEXT, PREVIOUS, DIRT, MARK = range(8)
HEADER = 64
FREE, USED = 0x46524545, 0x55534544
ZERO = 1 << 40  # beside the status: the payload is known to be 0
MARKED = 0x666C616D62656175

RED = 64  # bytes behind a payload that must not change (debug form)
POISON = 255  # every float of such bytes is nan
DOUBLE_FREE, OVERRUN, WILD_FREE = 1, 2, 3


@native
def at(address: i64):
    """Words at an address."""
    return cast(pointer(i64), address)


@native
def lock(state):
    """Wait for the heap; it is held for well under a microsecond, mostly.

    With a GIL nobody ever waits: NumPy allocates under it. So a fork finds the heap whole.
    """
    rounds = 0
    while atomic_exchange(at(state) + LOCK, 1) != 0:
        rounds += 1
        if X86:
            intrinsic("llvm.x86.sse2.pause", None)
        if rounds & 0x3FF == 0:
            external("sched_yield", i32)


@native
def unlock(state):
    """Let the next one in."""
    atomic_store(at(state) + LOCK, 0)


@native
def note(state, fault, where):
    """Remember the first thing that went wrong."""
    s = at(state)
    if s[FAULT] == 0:
        s[FAULT] = fault
        s[FAULT_AT] = where


# ---- free blocks by size


@native
def bin_of(size):
    """The list for blocks of a size: exact up to 31 grains, then sixteen to a doubling."""
    n = size >> GRAIN_BITS
    level = larger(63 - count_leading_zeros(n) - 4, 0)
    return smaller((level << 4) + (n >> level), BINS - 1)


@native
def push(state, block, size):
    """Put a free block at the front of its list."""
    s = at(state)
    b = at(block)
    index = bin_of(size)
    first = s[HEADS + index]
    b[SIZE] = size
    b[NEXT] = first
    b[PREVIOUS] = 0
    if first != 0:
        at(first)[PREVIOUS] = block
    s[HEADS + index] = block
    s[MAP + (index >> 6)] = s[MAP + (index >> 6)] | (i64(1) << (index & 63))


@native
def unlink(state, block):
    """Take a free block out of its list."""
    s = at(state)
    b = at(block)
    after = b[NEXT]
    before = b[PREVIOUS]
    if after != 0:
        at(after)[PREVIOUS] = before
    if before != 0:
        at(before)[NEXT] = after
    else:
        index = bin_of(b[SIZE])
        s[HEADS + index] = after
        if after == 0:
            s[MAP + (index >> 6)] = s[MAP + (index >> 6)] & ~(i64(1) << (index & 63))


@native
def find(state, size):
    """A free block of at least `size` bytes, from the list of the smallest that will do; or 0."""
    s = at(state)
    index = bin_of(size)
    block = s[HEADS + index]
    looks = 0
    while (block != 0) & (looks < LOOKS):
        if at(block)[SIZE] >= size:
            return block
        block = at(block)[NEXT]
        looks += 1
    index += 1
    found = i64(0)
    word = index >> 6
    bits = i64(0)
    if word < BIN_WORDS:
        bits = s[MAP + word] & (i64(-1) << (index & 63))
    while (bits == 0) & (word < BIN_WORDS - 1):
        word += 1
        bits = s[MAP + word]
    if bits != 0:
        found = s[HEADS + (word << 6) + count_trailing_zeros(bits)]
    return found


# ---- cutting, joining, growing


@native
def grow(state, size):
    """Make the last block a free one of at least `size` bytes; 0 where the system refuses."""
    s = at(state)
    last = s[LAST]
    end = s[END]
    have = i64(0)
    if last != 0:
        if (at(last)[STATUS] & 0xFFFFFFFF) == FREE:
            have = at(last)[SIZE]
    more = (size - have + GROWTH - 1) & -GROWTH
    if more > s[LIMIT] - end:
        more = (size - have + HUGE - 1) & -HUGE
    if (more > s[LIMIT] - end) | (size < 0):
        return i64(0)
    if external("mprotect", i32, cast(pointer(i8), end), more, i32(3)) != 0:
        return i64(0)
    s[END] = end + more
    s[GROWTHS] = s[GROWTHS] + 1
    if have != 0:
        unlink(state, last)
        push(state, last, have + more)
    else:
        fresh = at(end)
        fresh[BELOW] = last
        fresh[STATUS] = FREE | ZERO
        fresh[DIRT] = 0
        fresh[MARK] = MARKED
        s[LAST] = end
        last = end
        push(state, end, more)
    return last


@native
def cut(state, block, size):
    """Take `size` bytes from the start of a free block; the rest stays free."""
    s = at(state)
    b = at(block)
    whole = b[SIZE]
    dirt = b[DIRT]
    unlink(state, block)
    rest = whole - size
    s[DIRTY] = s[DIRTY] - smaller(dirt, size)
    if rest > 0:
        left = block + size
        r = at(left)
        r[BELOW] = block
        r[STATUS] = b[STATUS]
        r[DIRT] = larger(dirt - size, 0)
        r[MARK] = MARKED
        if s[LAST] == block:
            s[LAST] = left
        else:
            at(left + rest)[BELOW] = left
        push(state, left, rest)
    b[SIZE] = size


@native
def join(state, block):
    """Make a block free, together with its free neighbours."""
    s = at(state)
    b = at(block)
    start = block
    size = b[SIZE]
    dirt = size
    s[DIRTY] = s[DIRTY] + size
    after = block + size
    if after < s[END]:
        if (at(after)[STATUS] & 0xFFFFFFFF) == FREE:
            unlink(state, after)
            size += at(after)[SIZE]
            dirt += at(after)[DIRT]
            if s[LAST] == after:
                s[LAST] = start
    below = b[BELOW]
    if below != 0:
        if (at(below)[STATUS] & 0xFFFFFFFF) == FREE:
            unlink(state, below)
            size += at(below)[SIZE]
            dirt += at(below)[DIRT]
            if s[LAST] == start:
                s[LAST] = below
            b[STATUS] = 0
            start = below
    if start + size < s[END]:
        at(start + size)[BELOW] = start
    at(start)[STATUS] = FREE
    at(start)[DIRT] = dirt
    push(state, start, size)


@native(outline=True)
def trim(state, keep):
    """Give the pages of free blocks back, highest first, until no more than `keep` bytes are free
    and kept."""
    s = at(state)
    block = s[LAST]
    while (block != 0) & (s[DIRTY] > keep):
        b = at(block)
        if ((b[STATUS] & 0xFFFFFFFF) == FREE) & (b[DIRT] > 0):
            first = (block + HEADER + PAGE - 1) & -PAGE
            end = block + b[SIZE]
            size = (end & -PAGE) - first
            if (size > 0) & ((keep == 0) | (size >= HUGE)):
                if external("madvise", i32, cast(pointer(i8), first), size, i32(4)) == 0:
                    zero_memory(cast(pointer(i8), block + HEADER), first - block - HEADER)
                    zero_memory(cast(pointer(i8), first + size), end - first - size)
                    s[DIRTY] = s[DIRTY] - b[DIRT]
                    s[HELD] = s[HELD] - b[DIRT]
                    s[TRIMS] = s[TRIMS] + 1
                    b[DIRT] = 0
                    b[STATUS] = FREE | ZERO
        block = b[BELOW]


@native
def look(state):
    """Once in a window: keep free what the last two windows had in use, and a quarter more."""
    s = at(state)
    wanted = larger(s[RECENT], s[BEFORE])
    s[BEFORE] = s[RECENT]
    s[RECENT] = s[HELD] - s[DIRTY]
    s[NEXT_LOOK] = s[TAKES] + WINDOW
    used = s[HELD] - s[DIRTY]
    keep = larger(wanted + (wanted >> 2) + SLACK - used, 0)
    trim(state, keep)


@native(outline=True)
def take(state, payload, DEBUG: static):
    """A block for `payload` bytes, or 0."""
    s = at(state)
    reach = payload + HEADER
    if DEBUG:
        reach += RED
    size = (reach + GRAIN - 1) & -GRAIN
    block = i64(0)
    if (payload >= 0) & (size > 0) & (size <= s[LIMIT] - s[BASE]):
        lock(state)
        block = find(state, size)
        if block == 0:
            block = grow(state, size)
        if block != 0:
            settle(state, block, size, payload)
        else:
            s[REFUSED] = s[REFUSED] + 1
        unlock(state)
    return block


@native
def settle(state, block, size, payload):
    """Cut a free block, and count it."""
    s = at(state)
    b = at(block)
    kept = smaller(b[DIRT], size)
    cut(state, block, size)
    b[STATUS] = USED | (b[STATUS] & ZERO)
    b[PAYLOAD] = payload
    s[HELD] = s[HELD] + size - kept
    s[HELD_PEAK] = larger(s[HELD_PEAK], s[HELD])
    s[RECENT] = larger(s[RECENT], s[HELD] - s[DIRTY])
    s[LIVE] = s[LIVE] + payload
    s[LIVE_PEAK] = larger(s[LIVE_PEAK], s[LIVE])
    s[TAKEN] = s[TAKEN] + payload
    s[COUNT] = s[COUNT] + 1
    s[COUNT_PEAK] = larger(s[COUNT_PEAK], s[COUNT])
    s[TAKES] = s[TAKES] + 1
    if s[TAKES] >= s[NEXT_LOOK]:
        look(state)


@native
def fill(address, count):
    """Set bytes to the poison."""
    external("memset", pointer(i8), cast(pointer(i8), address), i32(POISON), count)


@native(outline=True)
def give(state, data, DEBUG: static):
    """Make the block of a payload free again."""
    s = at(state)
    block = data - HEADER
    b = at(block)
    sound = True
    if DEBUG:
        sound = inspect_block(state, block)
    if sound:
        lock(state)
        payload = b[PAYLOAD]
        s[LIVE] = s[LIVE] - payload
        s[FREED] = s[FREED] + payload
        s[COUNT] = s[COUNT] - 1
        s[FREES] = s[FREES] + 1
        join(state, block)
        if s[DIRTY] > s[CAP]:
            trim(state, s[CAP] >> 1)
        unlock(state)


@native
def inspect_block(state, block):
    """Debug form: whether a block may be freed; its bytes become poison."""
    b = at(block)
    sound = False
    if (block & (GRAIN - 1)) | (b[MARK] ^ MARKED) != 0:
        note(state, WILD_FREE, block + HEADER)
    else:
        if (b[STATUS] & 0xFFFFFFFF) != USED:
            note(state, DOUBLE_FREE, block + HEADER)
        else:
            sound = True
            end = block + HEADER + b[PAYLOAD]
            changed = 0
            for i in range(end, block + b[SIZE]):
                if cast(pointer(i8), i)[0] != -1:
                    changed += 1
            if changed != 0:
                note(state, OVERRUN, block + HEADER)
            fill(block + HEADER, b[SIZE] - HEADER)
    return sound


# ---- what NumPy calls: C functions whose first argument is the state


@native
def pool_malloc(state: i64, size: i64, DEBUG: static):
    """`void *malloc(void *ctx, size_t size)`."""
    s = at(state)
    data = i64(0)
    if cast(u64, size) >= cast(u64, s[SMALL]):
        block = take(state, size, DEBUG)
        if block != 0:
            data = block + HEADER
            if DEBUG:
                fill(data, at(block)[SIZE] - HEADER)
    if data == 0:
        data = call_result(i64, s[SYSTEM + 1], s[SYSTEM], size)
    return data


@native
def pool_calloc(state: i64, count: i64, each: i64, DEBUG: static):
    """`void *calloc(void *ctx, size_t nelem, size_t elsize)`; only used memory is cleared."""
    s = at(state)
    data = i64(0)
    size = count * each
    fits = (each == 1) | ((cast(u64, count) >> 31 == 0) & (cast(u64, each) >> 31 == 0))
    if fits & (cast(u64, size) >= cast(u64, s[SMALL])):
        block = take(state, size, DEBUG)
        if block != 0:
            b = at(block)
            data = block + HEADER
            if (b[STATUS] & ZERO) == 0:
                zero_memory(cast(pointer(i8), data), size)
            if DEBUG:
                fill(data + size, b[SIZE] - HEADER - size)
    if data == 0:
        data = call_result(i64, s[SYSTEM + 2], s[SYSTEM], count, each)
    return data


@native
def pool_free(state: i64, data: i64, size: i64, DEBUG: static):
    """`void free(void *ctx, void *ptr, size_t size)`."""
    s = at(state)
    if (data >= s[BASE]) & (data < s[LIMIT]):
        give(state, data, DEBUG)
    else:
        call_result(None, s[SYSTEM + 4], s[SYSTEM], data, size)


@native
def pool_realloc(state: i64, data: i64, size: i64, DEBUG: static):
    """`void *realloc(void *ctx, void *ptr, size_t new_size)`."""
    s = at(state)
    result = i64(0)
    if (data >= s[BASE]) & (data < s[LIMIT]):
        result = pool_malloc(state, size, DEBUG)
        if result != 0:
            old = at(data - HEADER)[PAYLOAD]
            copy_memory(cast(pointer(i8), result), cast(pointer(i8), data), smaller(old, size))
            give(state, data, DEBUG)
    else:
        result = call_result(i64, s[SYSTEM + 3], s[SYSTEM], data, size)
    return result


@native
def pool_trim(state: i64, keep: i64):
    """Give back free memory beyond `keep` bytes."""
    lock(state)
    trim(state, keep)
    unlock(state)
