"""Copies from one GPU to another, without the host between them."""

from __future__ import annotations

from typing import Any

from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.memory import Current, On, recorded, running
from flambeau._tensor.device_array import DeviceArray, contiguous, extent, like


def across(data: DeviceArray, index: int) -> Any:
    """The same elements on another GPU, with the same strides where they lie side by side.

    The copy is done in the source's stream, which first waits for the target's: the new memory may
    be what its work has just given back. The target's stream waits for the copy.
    """
    source = data.place.index or 0
    with On(source):
        if extent(data) != (0, data.nbytes):
            data = contiguous(data)
    with On(index):
        result = like(data, index)
        free = recorded(running(), Current.stream)
    if not data.size:
        return result
    with On(source):
        use = running()
        use.wait_event(Current.stream, free)
        use.free_event(free)
        use.copy(address(result), address(data), data.nbytes, Current.stream)
        done = recorded(use, Current.stream)
    with On(index):
        use.wait_event(Current.stream, done)
        use.free_event(done)
    return result
