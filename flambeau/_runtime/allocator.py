"""The memory pool: large blocks that die go back to it, not to the system.

A block fresh from the system costs a page fault for every page, five sixths of the time of `a + b`
on large tensors. The pool (its kernels: `memory_kernels`) keeps what is freed, cuts it to size and
joins it again, and gives back what it has not needed for a while.

It is NumPy's data allocator (NEP 49): once it is installed, all arrays of 32 KiB and more, those of
NumPy's own functions and of the user's program too, come from it, without a line of Python. It is
installed when the first kernel is loaded, so that programs that need no kernel pay nothing.
FLAMBEAU_MEMORY=system keeps it out; so do systems other than Linux and a missing llvmlite.

NumPy keeps its allocator in a context variable, and threads begin with an empty context: `ready()`
is called wherever large work is launched and installs the pool in the thread's context too. What a
thread allocated before comes from the system's allocator; every array remembers its own.

With FLAMBEAU_DEBUG=memory all arrays, small ones too, come from the pool; new and freed memory is
filled with nan, and `check()` raises where something was written behind the end of an array or
freed twice. Launching a kernel calls it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from flambeau._runtime import cpu
from flambeau._runtime import memory_kernels as layout

DEBUG = "memory" in os.environ.get("FLAMBEAU_DEBUG", "").split("|")
CHOICES = ("pool", "system")
CHOICE = os.environ.get("FLAMBEAU_MEMORY", "pool")
if CHOICE not in CHOICES:
    raise ValueError(f"FLAMBEAU_MEMORY is {CHOICE!r}; it can be {', '.join(CHOICES)}")

SMALL = 1 if DEBUG else 32 << 10
"""Requests below this many bytes are left to NumPy's own allocator."""
HUGE = 2 << 20
SET_HANDLER, GET_HANDLER = 304, 305
"""Places of PyDataMem_SetHandler and _GetHandler in NumPy's table of C functions."""
FAULTS = {
    layout.DOUBLE_FREE: "memory was freed twice",
    layout.OVERRUN: "something was written behind the end of an array",
    layout.WILD_FREE: "memory was freed that was never handed out, or its header was overwritten",
}


class Functions(ctypes.Structure):
    """NumPy's PyDataMemAllocator."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("use", Functions)]


class Pool:
    """The heap of this process: its state, its C functions, and NumPy's handle of it."""

    def __init__(self) -> None:
        from flambeau._runtime import engine

        listed = (layout.pool_malloc, layout.pool_calloc, layout.pool_realloc, layout.pool_free)
        code = engine.functions((*listed, layout.pool_trim), DEBUG=DEBUG)
        self.words: Any = (ctypes.c_int64 * layout.WORDS)()
        self.state = ctypes.addressof(self.words)
        # PYFUNCTYPE keeps the GIL: nobody forks while the heap is changed
        self.trim = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * 2)(code["pool_trim"])
        base, size = reserve()
        words = self.words
        words[layout.BASE] = words[layout.END] = base
        words[layout.LIMIT] = base + size
        words[layout.SMALL] = SMALL
        words[layout.CAP] = cache_limit()
        words[layout.NEXT_LOOK] = layout.WINDOW
        system = Handler.from_address(capsule_pointer(get_handler())).use
        for place, name in enumerate(("ctx", "malloc", "calloc", "realloc", "free")):
            words[layout.SYSTEM + place] = getattr(system, name) or 0
        places = [code[native.name] for native in listed]
        self.handler = Handler(b"flambeau", 1, Functions(self.state, *places))
        self.capsule = new_capsule(ctypes.addressof(self.handler), CAPSULE_NAME, None)
        # Arrays that outlive this module free their memory through these.
        for kept in (self.words, self.handler, self.capsule):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


CAPSULE_NAME = b"mem_handler"
new_capsule: Any = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


def capsule_pointer(capsule: Any) -> int:
    """What NumPy's capsule of an allocator points to."""
    return cpu.capsule_pointer(capsule, CAPSULE_NAME)


@cache
def _numpy_function(place: int, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)(cpu.numpy_function(place))


def get_handler() -> Any:
    """The capsule of the allocator of the current context."""
    return _numpy_function(GET_HANDLER)()


def set_handler(capsule: Any) -> Any:
    """Make a capsule's allocator that of the current context; the capsule before it."""
    return _numpy_function(SET_HANDLER, ctypes.py_object)(capsule)


def reserve() -> tuple[int, int]:
    """Addresses for the heap, as many bytes as the machine has memory; no memory yet. Where
    addresses are limited (`ulimit -v`), a quarter of them: what finds no room there is left to the
    system's allocator, which needs the others."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    wanted = max(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), 1 << 30)
    size = min(wanted, addresses_allowed() // 4) // HUGE * HUGE
    private_anonymous_unreserved = 0x2 | 0x20 | 0x4000
    failed = ctypes.c_void_p(-1).value
    while size >= layout.GROWTH:
        found = library.mmap(None, size + HUGE, 0, private_anonymous_unreserved, -1, 0)
        if found != failed:
            base = (found + HUGE - 1) // HUGE * HUGE
            use_huge_pages = 14
            library.madvise(base, size, use_huge_pages)
            return base, size
        size = size // 2 // HUGE * HUGE  # a limit on addresses (ulimit -v)
    raise MemoryError("no addresses for the memory pool")


def addresses_allowed() -> int:
    """How many bytes of addresses this process may have (RLIMIT_AS)."""
    import resource  # not on Windows, which has no pool

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def cache_limit() -> int:
    """How many bytes the pool may keep free: FLAMBEAU_MEMORY_CACHE, or half of the memory."""
    chosen = os.environ.get("FLAMBEAU_MEMORY_CACHE")
    if chosen:
        return int(chosen)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


class Shared:
    """The process's pool, once it has one; whether there can be one."""

    pool: Pool | None = None
    possible: bool = CHOICE == "pool" and sys.platform == "linux"


_READY: ContextVar[bool] = ContextVar("flambeau's memory pool is installed", default=False)
is_ready: Any = _READY.get


def ready() -> None:
    """Install the pool in the current context, if it is not; the first call makes it."""
    if is_ready():
        return
    _READY.set(True)
    if not Shared.possible:
        return
    if Shared.pool is None:
        try:
            Shared.pool = Pool()
        except (MemoryError, OSError):
            Shared.possible = False
            return
    set_handler(Shared.pool.capsule)


@contextmanager
def using(capsule: Any) -> Iterator[None]:
    """Let a capsule's allocator be that of the current context; kernels leave it there."""
    installed = _READY.set(True)
    before = set_handler(capsule)
    try:
        yield
    finally:
        set_handler(before)
        _READY.reset(installed)


def check() -> None:
    """Raise for the first fault that the debug form has noted (FLAMBEAU_DEBUG=memory).

    Raises:
        RuntimeError: memory was freed twice, or written behind the end of an array.
    """
    if Shared.pool is None:
        return
    words = Shared.pool.words
    fault, where = words[layout.FAULT], words[layout.FAULT_AT]
    if fault:
        words[layout.FAULT] = 0
        raise RuntimeError(f"{FAULTS[fault]}: the block at 0x{where:x}")


# ---- what torch.cpu tells


COUNTERS = {
    "allocated_bytes.all.current": layout.LIVE, "allocated_bytes.all.peak": layout.LIVE_PEAK,
    "allocated_bytes.all.allocated": layout.TAKEN, "allocated_bytes.all.freed": layout.FREED,
    "allocation.all.current": layout.COUNT, "allocation.all.peak": layout.COUNT_PEAK,
    "allocation.all.allocated": layout.TAKES, "allocation.all.freed": layout.FREES,
    "reserved_bytes.all.current": layout.HELD, "reserved_bytes.all.peak": layout.HELD_PEAK,
    "inactive_split_bytes.all.current": layout.DIRTY,
    "num_device_alloc": layout.GROWTHS, "num_device_free": layout.TRIMS,
    "num_ooms": layout.REFUSED,
}  # fmt: skip


def statistics() -> dict[str, int]:
    """Counts of the pool by the names of `torch.cuda.memory_stats`; all 0 while there is none."""
    if Shared.pool is None:
        return dict.fromkeys(COUNTERS, 0)
    words = Shared.pool.words
    return {name: words[place] for name, place in COUNTERS.items()}


PEAKS = {layout.LIVE_PEAK: layout.LIVE, layout.COUNT_PEAK: layout.COUNT,
         layout.HELD_PEAK: layout.HELD}  # fmt: skip
"""Peaks and what they are the peaks of."""


def reset_peaks() -> None:
    """Let the peaks begin again at what is in use now."""
    if Shared.pool is not None:
        words = Shared.pool.words
        for peak, now in PEAKS.items():
            words[peak] = words[now]


def empty_cache() -> None:
    """Give all memory that is kept free back to the system."""
    if Shared.pool is not None:
        Shared.pool.trim(Shared.pool.state, 0)
