"""Writes of arrays to arrays of which one, at least, is on a GPU."""

from __future__ import annotations

import numpy as np

from flambeau._ops.copying import copies
from flambeau._ops.cuda.table import WRITING
from flambeau._runtime.cuda.memory import Current, On
from flambeau._tensor.device_array import DeviceArray, assigned, overwrite, to_host
from flambeau._tensor.peer_copies import across


def assign(target: np.ndarray, source: np.ndarray) -> None:
    """Overwrite with values that are broadcast and converted as `copy_` does."""
    place = (target if isinstance(target, DeviceArray) else source).place  # type: ignore[union-attr]
    if place.index != Current.device:
        with On(place.index):
            assign(target, source)
        return
    if isinstance(target, DeviceArray) and isinstance(source, DeviceArray):
        if source.place is not place:
            source = across(source, place.index)
        kernel = WRITING.get("copy_")
        if kernel is not None and kernel(target, source) is not NotImplemented:
            return
    numbers = to_host(source) if isinstance(source, DeviceArray) else source
    if not isinstance(target, DeviceArray):
        copies.assign(target, numbers)
        return
    here = to_host(target)
    copies.assign(here, numbers)
    overwrite(target, here)


assigned.append(assign)
