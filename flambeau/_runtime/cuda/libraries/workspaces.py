"""Memory that libraries work in: one piece for a stream, used by one call after the other."""

from __future__ import annotations

from flambeau._runtime.cuda.memory import Current, running

PIECES: dict[tuple[int, int], tuple[int, int]] = {}


def workspace(nbytes: int) -> int:
    """The address of memory of the current stream, of at least `nbytes`. What is put into the
    stream later finds it free again."""
    key = Current.device, Current.stream
    address, size = PIECES.get(key, (0, 0))
    if size >= nbytes:
        return address
    driver = running()
    if address:
        driver.synchronize()
        driver.free(address)
    PIECES[key] = driver.allocate(nbytes), nbytes
    return PIECES[key][0]
