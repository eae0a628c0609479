"""Work that needs more of the stack than a thread may have.

Python's `threading.stack_size` goes down to 32 KiB, and threads of other libraries have what those
gave them. LLVM's passes need a few hundred KiB; where a stack ends, they would write to memory of
others. Where the thread that asks for machine code has a small stack, another thread makes it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

ENOUGH = 2 << 20
"""Bytes of a stack that is taken as it is."""
LARGE = 16 << 20
"""Bytes of the stack of a thread that is made for the work."""
changing = threading.Lock()
"""Held while the size of new stacks is another than the program's."""


@cache
def _functions() -> Any:
    """The C library, if it can be asked for the stack of a thread."""
    library = ctypes.pythonapi
    if not hasattr(library, "pthread_getattr_np"):
        return None
    library.pthread_self.restype = ctypes.c_void_p
    library.pthread_getattr_np.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.pthread_attr_getstacksize.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)]
    library.pthread_attr_destroy.argtypes = [ctypes.c_char_p]
    return library


def size() -> int:
    """The bytes of this thread's stack; where the system does not say, what new ones get."""
    library = _functions()
    if library is None:
        return threading.stack_size() or ENOUGH
    attributes, found = ctypes.create_string_buffer(256), ctypes.c_size_t(0)
    if library.pthread_getattr_np(library.pthread_self(), attributes):
        return ENOUGH
    library.pthread_attr_getstacksize(attributes, ctypes.byref(found))
    library.pthread_attr_destroy(attributes)
    return found.value or ENOUGH


def with_enough(work: Callable[[], T]) -> T:
    """What `work` gives, which may need a large stack; it looks at no setting of its thread."""
    return work() if size() >= ENOUGH else _elsewhere(work)


def _elsewhere(work: Callable[[], T]) -> T:
    """The result, or the error, of work in a thread with a large stack."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with changing:
        before = threading.stack_size(LARGE)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
