"""What an allocator counts: blocks and bytes, now, at most, ever taken, ever given back.

Taking and giving write one number each into a log (`Statistics.log`), because counting at once
would cost more than all the rest of it. `settle` counts what the log holds, in a few NumPy calls,
when somebody asks or the log is long; so peaks are exact.

A number in the log is the size that was asked for, negative when the block was given back. Its
block is that size rounded up to GRAIN, unless bits above LOW say which odd size it has.
"""

from __future__ import annotations

from array import array

import numpy as np

GRAIN = 512
LIMIT = 1 << 20
"""The largest block, in bytes, of the small pool."""
LOW = 44
MASK = (1 << LOW) - 1
LONG = 2048

POOLS = ("all", "large_pool", "small_pool")
LOGGED = ("allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes")
"""What follows from the log, one row each; blocks that wait for events are active still."""
COUNTED = ("segment", "reserved_bytes", "inactive_split", "inactive_split_bytes")
"""What is counted when it happens, one row each after those of the log."""
LOGGED_ROWS, ACTIVE_ROWS = slice(0, 3), slice(3, 5)
SPLIT_ROWS = slice(7, 9)
ROWS = {name: row for row, name in enumerate((*LOGGED, *COUNTED))}
EVENTS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
          "num_device_free")  # fmt: skip
OVERSIZE = ("oversize_allocations", "oversize_segments")
KINDS = ("current", "peak", "allocated", "freed")


def is_small(size: int) -> bool:
    """Whether blocks of a size belong to the small pool."""
    return size <= LIMIT


class Statistics:
    """The counters of a device's allocator; rows as in ROWS, columns as in POOLS."""

    def __init__(self) -> None:
        shape = (len(ROWS), len(POOLS))
        self.log = array("q")
        self.odd_sizes: list[int] = [0]
        self.current = np.zeros(shape, np.int64)
        self.peak = np.zeros(shape, np.int64)
        self.allocated = np.zeros(shape, np.int64)
        self.freed = np.zeros(shape, np.int64)
        self.splits: list[tuple[bool, int, int]] = []
        """Changes of how many holes are parts of segments, and of their bytes, in either pool."""
        self.events = dict.fromkeys(EVENTS, 0)

    def code(self, nbytes: int, size: int) -> int:
        """The number that stands in the log for a block of `size` bytes, taken for `nbytes`."""
        if size == (nbytes + GRAIN - 1) // GRAIN * GRAIN:
            return nbytes
        if size not in self.odd_sizes:
            self.odd_sizes.append(size)
        return nbytes | self.odd_sizes.index(size) << LOW

    def size(self, code: int) -> int:
        """The bytes of a block by its number in the log."""
        odd = code >> LOW
        return self.odd_sizes[odd] if odd else (code + GRAIN - 1) // GRAIN * GRAIN

    def settle(self) -> None:
        """Count what the logs hold, and empty them."""
        if self.splits:
            self._settle_splits()
        count = len(self.log)
        if not count:
            return
        entries = np.frombuffer(self.log[:count], np.int64)
        del self.log[:count]
        sign, entries = np.sign(entries), np.abs(entries)
        requested, size = entries & MASK, (entries + GRAIN - 1) // GRAIN * GRAIN
        of_small = size <= LIMIT
        if entries.max() > MASK:
            size = (requested + GRAIN - 1) // GRAIN * GRAIN
            of_small, odd = size <= LIMIT, entries >> LOW
            size = np.where(odd, np.array(self.odd_sizes)[odd], size)
        changes = np.stack([sign, size * sign, requested * sign])
        small = changes * of_small
        large = changes - small
        rising = np.maximum(changes, 0)
        taken = rising.sum(axis=1), (rising * ~of_small).sum(axis=1)
        small.cumsum(axis=1, out=small)
        large.cumsum(axis=1, out=large)
        for rows, found in ((LOGGED_ROWS, slice(0, 3)), (ACTIVE_ROWS, slice(0, 2))):
            for pool, running in enumerate((small + large, large, small)):
                self._count(rows, pool, running[found])
            by_pool = taken[0][found], taken[1][found], taken[0][found] - taken[1][found]
            self.allocated[rows] += np.stack(by_pool, axis=1)
            self.freed[rows] += np.stack(by_pool, axis=1)

    def _settle_splits(self) -> None:
        """The same for holes that are parts of segments."""
        listed = np.array(self.splits, np.int64)
        self.splits.clear()
        small, amounts = listed[:, :1], listed[:, 1:].T
        small = amounts * small.T
        large = amounts - small
        rising = np.maximum(amounts, 0)
        taken = (
            rising.sum(axis=1),
            np.maximum(large, 0).sum(axis=1),
            np.maximum(small, 0).sum(axis=1),
        )
        for pool, changes in enumerate((amounts, large, small)):
            self._count(SPLIT_ROWS, pool, changes.cumsum(axis=1))
        self.allocated[SPLIT_ROWS] += np.stack(taken, axis=1)
        self.freed[SPLIT_ROWS] += np.stack(taken, axis=1)

    def _count(self, rows: slice, pool: int, running: np.ndarray) -> None:
        """Follow running sums of changes."""
        before = self.current[rows, pool]
        highest = before + running.max(axis=1)
        self.peak[rows, pool] = np.maximum(self.peak[rows, pool], highest)
        self.freed[rows, pool] -= running[:, -1]  # of which `settle` adds what was taken
        self.current[rows, pool] = before + running[:, -1]

    def change(self, name: str, small: bool, delta: int) -> None:
        """Count what is not in the log."""
        row, pools = ROWS[name], [0, 2 if small else 1]
        self.current[row, pools] += delta
        self.peak[row] = np.maximum(self.peak[row], self.current[row])
        (self.allocated if delta > 0 else self.freed)[row, pools] += abs(delta)

    def wait(self, code: int) -> None:
        """A block was given back that other streams still use: it stays active."""
        self.settle()
        small = is_small(self.size(code & MASK))
        for name, amount in zip(LOGGED[:3], (1, self.size(code), code & MASK), strict=True):
            self.change(name, small, -amount)

    def waited(self, code: int) -> None:
        """No stream uses the block any more."""
        self.settle()
        small = is_small(self.size(code & MASK))
        self.change("active", small, -1)
        self.change("active_bytes", small, -self.size(code))

    def count_split(self, small: bool, count: int, nbytes: int) -> None:
        """So many more holes are parts of segments, of so many bytes."""
        if count or nbytes:
            self.splits.append((small, count, nbytes))
            if len(self.splits) > LONG:
                self._settle_splits()

    def reset_peaks(self) -> None:
        """Let the peaks begin again at what is in use now."""
        self.settle()
        self.peak[:] = self.current

    def reset_sums(self) -> None:
        """Let what was ever taken and given back begin again at 0."""
        self.settle()
        self.allocated[:] = self.freed[:] = 0
        self.events = dict.fromkeys(EVENTS, 0)

    def now(self, name: str) -> int:
        """The current number of a row over both pools."""
        return int(self.current[ROWS[name], 0])

    def value(self, name: str, kind: str) -> int:
        """A counter over both pools, by the names of KINDS."""
        self.settle()
        return int(getattr(self, kind)[ROWS[name], 0])

    def listed(self) -> dict[str, int]:
        """All counters by PyTorch's names: `allocated_bytes.all.peak`."""
        self.settle()
        found = dict(self.events)
        tables = (self.current, self.peak, self.allocated, self.freed)
        for name, row in ROWS.items():
            for column, pool in enumerate(POOLS):
                for kind, table in zip(KINDS, tables, strict=True):
                    found[f"{name}.{pool}.{kind}"] = int(table[row, column])
        found |= {f"{name}.{kind}": 0 for name in OVERSIZE for kind in KINDS}
        return found
