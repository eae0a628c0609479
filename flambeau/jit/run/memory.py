"""The limit of memory, kept where all arrays get theirs: at NumPy's data allocator (NEP 49).

While a program runs under a limit, an allocator stands before the one that was there. It asks the
program's meter, and refuses what would go beyond the limit before anything is taken; so no rule has
to tell how large the result of an operator will be. Memory goes back to the allocator that stood
there before, also when an array outlives the program.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flambeau._runtime import allocator
from flambeau._runtime.allocator import Functions, Handler

if TYPE_CHECKING:
    from flambeau.jit.run.limits import Meter

POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t


class _Running(threading.local):
    """The meter of the program that runs in this thread."""

    meter: Meter | None = None


running = _Running()


def _allowed(size: int) -> bool:
    meter = running.meter
    return meter is None or meter.allows(size)


class Guard:
    """An allocator that asks, and hands on to another one what it allows."""

    known: dict[int, Guard] = {}  # by the address of the other one; arrays may need them for ever

    def __init__(self, inner: Functions) -> None:
        malloc = ctypes.PYFUNCTYPE(POINTER, POINTER, SIZE)(inner.malloc)
        calloc = ctypes.PYFUNCTYPE(POINTER, POINTER, SIZE, SIZE)(inner.calloc)
        realloc = ctypes.PYFUNCTYPE(POINTER, POINTER, POINTER, SIZE)(inner.realloc)

        def guarded_malloc(context: int, size: int) -> Any:
            return malloc(context, size) if _allowed(size) else None

        def guarded_calloc(context: int, count: int, size: int) -> Any:
            return calloc(context, count, size) if _allowed(count * size) else None

        def guarded_realloc(context: int, block: int, size: int) -> Any:
            return realloc(context, block, size) if _allowed(size) else None

        self.callbacks = (
            ctypes.CFUNCTYPE(POINTER, POINTER, SIZE)(guarded_malloc),
            ctypes.CFUNCTYPE(POINTER, POINTER, SIZE, SIZE)(guarded_calloc),
            ctypes.CFUNCTYPE(POINTER, POINTER, POINTER, SIZE)(guarded_realloc),
        )
        places = [ctypes.cast(callback, POINTER).value for callback in self.callbacks]
        self.handler = Handler(b"flambeau limit", 1, Functions(inner.ctx, *places, inner.free))
        self.capsule = allocator.new_capsule(
            ctypes.addressof(self.handler), allocator.CAPSULE_NAME, None
        )

    @staticmethod
    def before(capsule: Any) -> Guard:
        """The guard that stands before an allocator."""
        address = allocator.capsule_pointer(capsule)
        if address not in Guard.known:
            made = Guard(Handler.from_address(address).use)
            Guard.known[address] = made
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
            Guard.known[ctypes.addressof(made.handler)] = made  # before itself it stands already
        return Guard.known[address]


@contextmanager
def limited(meter: Meter) -> Iterator[None]:
    """Let a meter decide on the memory that this thread takes.

    Raises:
        LimitExceeded: it refused.
    """
    saved, running.meter = running.meter, meter
    meter.refused = False
    try:
        with allocator.using(Guard.before(allocator.get_handler()).capsule):
            yield
    except MemoryError as error:
        if not meter.refused:
            raise
        raise meter.beyond_memory().with_traceback(error.__traceback__) from None
    finally:
        running.meter = saved
